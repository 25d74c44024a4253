"""What does HTTP cost: ``POST /act`` over loopback, a click and a picture, beside the same in process?

With 1, 4 and 16 clients that ask at once; a batch is one at a time, so each waits for those before it. The daemon of
modal-computer-use wants to start a desktop of its own: its backend is asked in process, which flatters it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.click import MODAL
from bench.sides import PEERS_PYTHON, Answer, HeldPeer, in_turns
from deskhand.backends import Daemon, LocalDisplay
from deskhand.backends.base import Backend
from deskhand.testing import XServer, window_manager, xvfb

WORDS = "a click and a PNG of 1280x800 by POST /act over loopback, without settling"
CLIENTS = (1, 4, 16)
_BATCH: dict[str, Any] = {
    "actions": [{"action": "click", "x": 200, "y": 200}],
    "settle": {"mode": "none"},
    "picture": True,
}
_ACT = """
options = ScreenshotOptions(format="png")
def act(given):
    do(backend.mouse_click(200, 200))
    do(backend.screenshot_bytes(options, prefer_native_png=True))
"""


def ask(rounds: int) -> Answer:
    answer = Answer("daemon", WORDS)
    with (
        tempfile.TemporaryDirectory() as folder,
        xvfb() as server,
        window_manager(server),
        asyncio.Runner() as runner,
        _daemon(server, Path(folder)) as (url, token),
    ):
        # A backend belongs to its event loop, so all of them live in this one.
        over_http = [Daemon(url, token=token) for _ in range(max(CLIENTS))]
        in_process = LocalDisplay(server.display, server.xauthority)

        def together(backends: list[Backend]) -> float:
            return runner.run(_at_once(backends))

        try:
            with HeldPeer(PEERS_PYTHON, MODAL + _ACT, {**server.env, "BENCH_SIZE": "1280x800"}) as modal:
                for count in CLIENTS:
                    http: list[Backend] = list(over_http[:count])
                    local: list[Backend] = [in_process] * count
                    sides: dict[str, Callable[[], float]] = {
                        "ours, over HTTP": partial(together, http),
                        "ours, in process": partial(together, local),
                    }
                    if count == 1:
                        sides["modal-computer-use, in process"] = modal.seconds
                    taken = in_turns(sides, rounds, answer)
                    answer.add(f"{count} at once", taken)
            _tell_overhead(answer)
        finally:
            for backend in (*over_http, in_process):
                runner.run(backend.aclose())
    return answer


def _tell_overhead(answer: Answer) -> None:
    for count in CLIENTS:
        rows = {row.side: row.seconds for row in answer.rows if row.case == f"{count} at once"}
        added = (rows["ours, over HTTP"] - rows["ours, in process"]) / count
        answer.facts[f"added to each batch, {count} at once"] = f"{added * 1000:.2f} ms"


async def _at_once(backends: list[Backend]) -> float:
    """Seconds until every one of them has its picture."""
    start = time.perf_counter()
    outcomes = await asyncio.gather(*(backend.act(_BATCH) for backend in backends))
    seconds = time.perf_counter() - start
    assert all(outcome.ok and outcome.picture for outcome in outcomes)
    return seconds


@contextmanager
def _daemon(server: XServer, folder: Path) -> Iterator[tuple[str, str]]:
    token = secrets.token_urlsafe(32)
    path = folder / "token"
    path.touch(0o600)
    path.write_text(token, encoding="ascii")
    package = Path(__file__).resolve().parents[1] / "src"
    words = [sys.executable, "-m", "deskhand", "serve", "--token-file", str(path), "--log-level", "info"]
    env = {**server.env, "PYTHONPATH": str(package), "NO_COLOR": "1"}
    process = subprocess.Popen([*words, "--listen", "127.0.0.1:0"], env=env, stderr=subprocess.PIPE, text=True)
    try:
        yield _address(process), token
    finally:
        process.terminate()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    told = json.loads(process.stderr.readline())
    # What it logs must be read, or it would wait for somebody to do so.
    threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
    return f"http://{told['listen']}"
