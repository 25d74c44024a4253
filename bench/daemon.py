"""What does HTTP cost: ``POST /act`` over loopback, a click and a picture, beside the same in process?

With 1, 4 and 16 clients that ask at once; a batch is one at a time, so each waits for those before it. Beside it stands
modal-computer-use, in process and by its own daemon on the same display. And what does one good client notice of 64
others that mean no good or are slow (bench/hostile.py)?
"""

from __future__ import annotations

import asyncio
import json
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench.click import MODAL
from bench.modal_daemon import ModalDaemon, modal_daemon
from bench.sides import PEERS_PYTHON, Answer, HeldPeer, NotInstalled, in_turns
from deskhand.backends import Daemon, LocalDisplay
from deskhand.backends.base import Backend
from deskhand.testing import XServer, window_manager, xvfb

WORDS = "a click and a PNG of 1280x800 by POST /act over loopback, without settling"
CLIENTS = (1, 4, 16)
HOSTILE = 64
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
        _daemon(server, Path(folder)) as (url, token_file),
    ):
        # A backend belongs to its event loop, so all of them live in this one.
        over_http = [Daemon(url, token_file=token_file) for _ in range(max(CLIENTS))]
        in_process = LocalDisplay(server.display, server.xauthority)

        def together(backends: list[Backend]) -> float:
            return runner.run(_at_once(backends))

        stack = AsyncExitStack()
        theirs: ModalDaemon | None = None

        def over_their_http() -> float:
            if theirs is None:
                raise NotInstalled
            return runner.run(theirs.act())

        try:
            try:
                theirs = runner.run(stack.enter_async_context(modal_daemon(server, Path(folder))))
            except NotInstalled:
                answer.notes.append("modal-computer-use's own daemon could not be made to run (xdotool, xdpyinfo?)")
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
                        if theirs is not None:
                            sides["modal-computer-use, over HTTP"] = over_their_http
                    taken = in_turns(sides, rounds, answer)
                    answer.add(f"{count} at once", taken)
            _tell_overhead(answer)
            with _attackers(url, token_file) as beside:
                alone = partial(together, list(over_http[:1]))
                sides = {
                    "alone": partial(_median, alone),
                    f"beside {HOSTILE}": partial(beside, partial(_median, alone)),
                    f"beside {HOSTILE} in their first half second": partial(beside, partial(_rush, alone), "rush"),
                }
                answer.add("one good client", in_turns(sides, max(1, rounds // 3), answer))
        finally:
            runner.run(stack.aclose())
            for backend in (*over_http, in_process):
                runner.run(backend.aclose())
    return answer


def _median(measure: Callable[[], float], times: int = 5) -> float:
    return statistics.median(measure() for _ in range(times))


def _rush(measure: Callable[[], float], seconds: float = 0.5) -> float:
    """The median of as many as end within ``seconds``, and of the one that does not."""
    over = time.perf_counter() + seconds
    taken = []
    while time.perf_counter() < over:
        taken.append(measure())
    return statistics.median(taken)


@contextmanager
def _attackers(url: str, token_file: Path) -> Iterator[Callable[..., float]]:
    """Gives what measures while they are at it, or, told ``rush``, from when they begin.

    A process of their own, whose work is not the good client's.
    """
    words = [sys.executable, "-m", "bench.hostile", url.removeprefix("http://"), str(token_file), str(HOSTILE)]
    process = subprocess.Popen(
        words, cwd=Path(__file__).resolve().parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def turn(now: str, how: str = "") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{how}\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == now

    def beside(measure: Callable[[], float], how: str = "") -> float:
        turn("on", how)
        try:
            return measure()
        finally:
            turn("off")

    try:
        yield beside
        process.stdin.close()
        assert process.wait(60) == 0, "one of them was not refused"
    finally:
        process.kill()
        process.wait()


def _tell_overhead(answer: Answer) -> None:
    for count in CLIENTS:
        rows = {row.side: row.seconds for row in answer.rows if row.case == f"{count} at once"}
        added = (rows["ours, over HTTP"] - rows["ours, in process"]) / count
        answer.facts[f"added to each batch, {count} at once"] = f"{added * 1000:.2f} ms"
    rows = {row.side: row.seconds for row in answer.rows if row.case == "1 at once"}
    if "modal-computer-use, over HTTP" in rows:
        added = rows["modal-computer-use, over HTTP"] - rows["modal-computer-use, in process"]
        answer.facts["added by modal-computer-use's daemon"] = f"{added * 1000:.2f} ms"
        answer.notes.append("ours presses the button for 8 ms of server time, which theirs does not")


async def _at_once(backends: list[Backend]) -> float:
    """Seconds until every one of them has its picture."""
    start = time.perf_counter()
    outcomes = await asyncio.gather(*(backend.act(_BATCH) for backend in backends))
    seconds = time.perf_counter() - start
    assert all(outcome.ok and outcome.picture for outcome in outcomes)
    return seconds


@contextmanager
def _daemon(server: XServer, folder: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and its token's file."""
    path = folder / "token"
    path.touch(0o600)
    path.write_text(secrets.token_urlsafe(32), encoding="ascii")
    package = Path(__file__).resolve().parents[1] / "src"
    words = [sys.executable, "-m", "deskhand", "serve", "--token-file", str(path), "--log-level", "info"]
    env = {**server.env, "PYTHONPATH": str(package), "NO_COLOR": "1"}
    process = subprocess.Popen([*words, "--listen", "127.0.0.1:0"], env=env, stderr=subprocess.PIPE, text=True)
    try:
        yield _address(process), path
    finally:
        process.terminate()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    told = json.loads(process.stderr.readline())
    # What it logs must be read, or it would wait for somebody to do so.
    threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
    return f"http://{told['listen']}"
