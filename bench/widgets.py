"""Text fields of real toolkits that tell what stands in them."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.sides import SYSTEM_PYTHON, NotInstalled
from deskhand.hand.hand import Hand

_FIXTURES = Path(__file__).parents[1] / "tests/fixtures"
#: The fixture, and what its Python must be able to run.
_TOOLKITS = {
    "GTK 3": ("gtk", "import gi; gi.require_version('Gtk', '3.0')"),
    "GTK 4": ("gtk4", "import gi; gi.require_version('Gtk', '4.0')"),
    "Qt 5": ("qt", "import PyQt5.QtWidgets"),
    "Qt 6": ("qt", "import PyQt6.QtWidgets"),
    "Tk": ("tk", "import tkinter"),
}
KINDS = (*_TOOLKITS, "xterm", "Firefox")
#: Seconds for a window to come up, and for the last character to arrive.
PATIENCE, ARRIVAL = 60.0, 3.0
#: What is wrong already, and has been the same for this long, does not become right.
WRONG_FOR = 0.5


@dataclass
class Widget:
    """One that has the keyboard focus. ``read`` gives all of its text, ``clear`` makes it forget what it holds."""

    read: Callable[[], str]
    clear: Callable[[], None]

    def comes_to(self, text: str) -> bool:
        """Whether it holds exactly ``text`` before long."""
        held, since = self.read(), time.monotonic()
        deadline = since + ARRIVAL
        while held != text:
            now = time.monotonic()
            if now > deadline or (now > since + WRONG_FOR and not text.startswith(held)):
                return False
            time.sleep(0.01)  # what stands in another process has no event of its own
            before, held = held, self.read()
            if held != before:
                since = now
        return True


@contextmanager
def widget(kind: str, hand: Hand, env: Mapping[str, str], folder: Path) -> Iterator[Widget]:
    """A text field of that kind, focused.

    Raises:
        NotInstalled: the toolkit is not there, or shows no window.
    """
    log = folder / f"{kind.replace(' ', '')}-{time.monotonic_ns()}"
    log.touch()
    env = {**env, "LC_ALL": "C.UTF-8", "GTK_IM_MODULE": "gtk-im-context-simple", "NO_AT_BRIDGE": "1"}
    if kind == "Firefox":
        yield from _firefox(hand, env, folder)
        return
    if kind == "xterm":
        shell = f"stty raw -echo; echo ready; exec cat >{log}"
        command = ["xterm", "-u8", "-e", "sh", "-c", shell]
    else:
        name, needed = _TOOLKITS[kind]
        if subprocess.run([SYSTEM_PYTHON, "-c", needed], capture_output=True, check=False).returncode:
            raise NotInstalled
        command = [SYSTEM_PYTHON, str(_FIXTURES / f"{name}_text.py"), str(log), *(["--6"] if kind == "Qt 6" else [])]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not _until(lambda: any(window["active"] for window in hand.windows()), PATIENCE):
            raise NotInstalled
        if kind == "xterm":
            yield _xterm(log)
        else:
            yield Widget(lambda: _last_text(log), _clearing(hand, "ctrl+slash" if kind == "Tk" else "ctrl+a"))
    finally:
        process.kill()
        process.wait()
        _until(lambda: not any(window["active"] for window in hand.windows()), ARRIVAL)


def _xterm(log: Path) -> Widget:
    """What cat has written; clearing it remembers where the new part begins."""
    start = [0]

    def read() -> str:
        return log.read_bytes()[start[0] :].decode("utf-8", "replace")

    def clear() -> None:
        start[0] = log.stat().st_size

    return Widget(read, clear)


def _clearing(hand: Hand, select_all: str) -> Callable[[], None]:
    def clear() -> None:
        keys = [{"action": "key", "keys": select_all}, {"action": "key", "keys": "Delete"}]
        hand.act({"actions": keys, "settle": {"mode": "quiet"}})

    return clear


def _last_text(log: Path) -> str:
    lines = log.read_bytes().rpartition(b"\n")[0].splitlines()
    for line in reversed(lines):
        facts = json.loads(line)
        if "text" in facts:
            return str(facts["text"])
    return ""


_PAGE = b"""<!doctype html><meta charset=utf-8><title>field</title><textarea id=t autofocus rows=20 cols=90></textarea>
<script>
let sending = false, again = false
async function tell() {  // one after the other: two at once may arrive in any order
  again = true
  if (sending) return
  sending = true
  while (again) {
    again = false
    await fetch("/", {method: "POST", body: t.value})
  }
  sending = false
}
t.oninput = tell
t.onfocus = tell
t.focus()
</script>"""


class _Field(http.server.BaseHTTPRequestHandler):
    text = ""
    ready = False

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(_PAGE)))
        self.end_headers()
        self.wfile.write(_PAGE)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode("utf-8")
        type(self).text = body
        type(self).ready = True
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing: the terminal is the benchmark's."""


def _firefox(hand: Hand, env: Mapping[str, str], folder: Path) -> Iterator[Widget]:
    class Field(_Field):
        pass

    profile = folder / f"profile-{time.monotonic_ns()}"
    profile.mkdir()
    settings = ("browser.aboutwelcome.enabled", "browser.shell.checkDefaultBrowser")
    (profile / "user.js").write_text("".join(f'user_pref("{name}", false);\n' for name in settings))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Field) as server:
        thread = threading.Thread(target=server.serve_forever, name="field", daemon=True)
        thread.start()
        page = f"http://127.0.0.1:{server.server_port}/"
        command = ["firefox-esr", "--profile", str(profile), "--no-remote", "--new-instance", page]
        try:
            process = subprocess.Popen(
                command,
                env={**env, "HOME": str(folder)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise NotInstalled from None
        try:
            if not _until(lambda: Field.ready and any(one["active"] for one in hand.windows()), PATIENCE):
                raise NotInstalled
            yield Widget(lambda: Field.text, _clearing(hand, "ctrl+a"))
        finally:
            os.killpg(process.pid, 9)
            process.wait()
            server.shutdown()
            thread.join()


def _until(condition: Callable[[], Any], seconds: float) -> bool:
    """Whether it becomes true: what stands in another process has no event of its own."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
