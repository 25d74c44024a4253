"""The lines of ``docs/how-to/live-view.md`` are run as they stand, with a port and a display of the test's own."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from deskhand.testing import XServer
from tests.commands import environment

PAGE = Path(__file__).resolve().parent.parent / "docs/how-to/live-view.md"


def test_the_lines_open_the_page(display: XServer, tmp_path: Path) -> None:
    (lines,) = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve, view = (line for line in lines.splitlines() if line.startswith("deskhand "))
    # Nothing in the page waits for computerd, as its reader does.
    ready = f"until curl -s -o /dev/null http://127.0.0.1:{port}/health; do :; done"
    served = serve.replace("serve", f"serve --listen 127.0.0.1:{port}")
    viewed = view.replace("view", f"view --url http://127.0.0.1:{port}")
    script = lines.replace(serve, f"{served}\n{ready}").replace(view, viewed) + "echo $!; wait"
    assert shutil.which("curl")
    path = f"{Path(sys.executable).parent}:{environment(display)['PATH']}"
    running = subprocess.Popen(
        ["sh", "-c", script], cwd=tmp_path, env=environment(display, PATH=path), stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    address, pid = running.stdout.readline().strip(), int(running.stdout.readline())
    try:
        assert address.startswith(f"http://127.0.0.1:{port}/live?ticket=")
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.status == 200
            assert answer.headers["Set-Cookie"]
    finally:
        subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(pid)], check=True)
        running.wait(30)
    assert list((tmp_path / "traces").glob("*/index.html"))
