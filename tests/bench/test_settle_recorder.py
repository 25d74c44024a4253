"""What the recorder writes down is what happened on the screen."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.settle.measures import cosmetic
from bench.settle.pixels import Differences
from bench.settle.recorder import Look, Recording, foreground_busy, record
from bench.settle.scenarios import SCENARIOS, pages
from bench.settle.traces import read, write

from deskhand.hand.errors import SetupError
from deskhand.hand.hand import Hand
from deskhand.hand.pixels import Layout
from deskhand.hand.screen import Capture
from deskhand.hand.x11 import Connection, core
from deskhand.testing import window_manager, xvfb

WIDTH, HEIGHT = 1280, 32
LAYOUT = Layout(4, 32, False, (0xFF0000, 0xFF00, 0xFF))


def look(at: float, *painted: tuple[int, int, int, int]) -> Look:
    """Black, with white boxes [x, y, width, height]."""
    data = bytearray(4 * WIDTH * HEIGHT)
    for x, y, width, height in painted:
        for row in range(y, y + height):
            start = 4 * (row * WIDTH + x)
            data[start : start + 4 * width] = b"\xff" * (4 * width)
    return Look(at, bytes(data))


def differences(zero: float = 10.0) -> Differences:
    first = Capture(look(0.0).data, (0, 0, WIDTH, HEIGHT), (WIDTH, HEIGHT), LAYOUT, 0.0, (0, 0))
    return Differences(first, zero)


def test_what_differs_is_found() -> None:
    (frame,) = differences().frames([look(10.5, (7, 9, 3, 2), (20, 16, 8, 8))])
    assert frame.time == 0.5
    assert frame.pixels == 3 * 2 + 8 * 8
    assert frame.box == (7, 9, 21, 15)
    assert frame.tiles == (160, 161, 322, 323)


def test_a_look_at_the_same_screen_is_no_frame() -> None:
    assert differences().frames([look(10.1), look(10.2, (0, 0, 1, 1)), look(10.3, (0, 0, 1, 1))])[0].pixels == 1
    assert len(differences().frames([look(10.1), look(10.2)])) == 0


def test_the_same_content_has_the_same_number() -> None:
    found = differences()
    on, off, again = found.frames([look(1.0, (0, 0, 8, 8)), look(2.0), look(3.0, (64, 8, 8, 8))])
    assert on.contents == again.contents
    assert off.contents != on.contents
    assert found.numbers(look(0.0).data, [0]) == list(off.contents)


@pytest.fixture
def drawing() -> Iterator[tuple[str, Callable[[], None]]]:
    """A display with one white window that can be moved, and how to move it."""
    with xvfb(1280, 800) as server, Connection.open(server.display) as conn:
        window = core.create_window(conn, 100, 100, 64, 48, background=0xFFFFFF)
        core.map_window(conn, window)
        conn.sync()

        def move() -> None:
            core.configure_window(conn, window, x=400)
            conn.sync()

        yield server.display, move


@pytest.mark.slow
def test_a_recording_holds_what_came_after_the_action(
    drawing: tuple[str, Callable[[], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    display, move = drawing
    monkeypatch.setattr("bench.settle.recorder.BEFORE", 0.3)
    monkeypatch.setattr("bench.settle.recorder.AFTER", 1.0)

    def act(hand: Hand) -> Iterator[int]:
        yield 0
        move()

    with Hand(display) as hand:
        made = record(hand, display, None, "moved", "click", act)
    write(tmp_path / "made.json.xz", [{**made, "rep": 0, "loaded": False}])
    (trace,) = read(tmp_path / "made.json.xz")
    assert (trace.kind, trace.action, trace.before) == ("moved", "click", ())
    boxes = [frame.box for frame in trace.frames]
    left = min(box[0] for box in boxes)
    right = max(box[0] + box[2] for box in boxes)
    assert (left, right) == (100, 464)
    assert cosmetic(trace, 0.9)


def test_a_screen_of_another_width_is_refused() -> None:
    with xvfb(640, 480) as server, pytest.raises(SetupError, match="1280x800"):
        Recording(server.display, None, 0)


def test_a_terminal_is_busy_while_its_command_runs(tmp_path: Path) -> None:
    """The part of the terminal is played by a process that gives its child a session with a terminal of its own."""
    marks = [tmp_path / name for name in ("running", "go", "done")]
    shell = (
        "import os, pty, sys, time\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0:\n"
        f"    os.execvp('bash', ['bash', '-ic', 'set -m; (touch {marks[0]}; until [ -e {marks[1]} ]; do sleep 0.02; "
        f"done); touch {marks[2]}; read line'])\n"
        "while True:\n"
        "    try:\n"
        "        if not os.read(fd, 1000): break\n"
        "    except OSError: break\n"
    )
    terminal = subprocess.Popen([sys.executable, "-c", shell], stdin=subprocess.DEVNULL)
    try:
        _await(marks[0].exists)
        assert foreground_busy(terminal.pid)
        marks[1].touch()
        _await(marks[2].exists)
        assert not foreground_busy(terminal.pid)
        assert not foreground_busy(os.getpid())
    finally:
        terminal.kill()
        terminal.wait()


def test_every_scenario_acts_on_a_page_or_an_application() -> None:
    with pages() as address:
        for name, scenario in SCENARIOS.items():
            assert scenario.what in ("click", "key", "type", "move", "scroll"), name
            assert callable(scenario.act(address))


@pytest.mark.slow
def test_a_window_that_is_typed_into_is_recorded(tmp_path: Path) -> None:
    """The whole way, with an xterm and a window manager: pixels, and what the terminal runs."""
    with xvfb(1280, 800) as server, window_manager(server):
        xterm = subprocess.Popen(["xterm", "-e", "bash", "--norc"], env=server.env, stderr=subprocess.DEVNULL)
        try:
            with Hand(server.display) as hand:
                _await(lambda: any(window["active"] for window in hand.windows()))

                def act(hand: Hand) -> Iterator[int]:
                    yield core.get_input_focus(hand.display.conn)
                    hand.act({"actions": [{"action": "type", "text": "sleep 0.3\n"}], "settle": {"mode": "none"}})

                made = record(hand, server.display, None, "xt-sleep", "type", act)
        finally:
            xterm.terminate()
            xterm.wait()
    assert made["class"] == "XTerm"
    assert made["frames"]
    assert made["pings"] == [] or all(row[3] == "B" for row in made["pings"])
    assert [busy for _time, busy in made["tty"]] == [False, True, False]


def _await(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.02)
