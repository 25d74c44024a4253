"""What is pressed while a window manager keeps the pointer frozen is let go all the same.

openbox grabs clicks synchronously: until it has looked at one, the server keeps everything after it in a queue, so a
button that was pressed is not down yet, and a release that was sent has not happened yet.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from tests.probes import pressed
from tests.x_windows import x_window

from deskhand.hand import windows
from deskhand.hand.display import Display
from deskhand.hand.errors import ActionFailed
from deskhand.hand.x11 import core, xres
from deskhand.testing import XServer
from deskhand.testing.batches import until


@pytest.fixture
def display(openbox_display: XServer) -> Iterator[Display]:
    with Display(openbox_display.display) as display:
        yield display


@pytest.fixture
def manager(display: Display) -> Iterator[int]:
    """The window manager's pid; it goes on at the end whatever happens."""
    window = windows.manager_window(display.conn)
    assert window is not None
    pid = xres.client_pid(display.conn, window)
    assert pid is not None
    yield pid
    os.kill(pid, signal.SIGCONT)


def test_a_press_that_waits_behind_a_frozen_click_is_released(
    display: Display, manager: int, openbox_display: XServer
) -> None:
    with x_window(display.conn, openbox_display, "clicked") as window:
        x, y, width, height = windows.window_facts(display.conn, window)["rect"]
        display.pointer.move((x + width // 2, y + height // 2))
        os.kill(manager, signal.SIGSTOP)
        with pytest.raises(ActionFailed, match="the window manager keeps the click back"):
            display.pointer.click("left")
        display.pointer.press("right")
        mask = core.query_pointer(display.conn).mask
        assert mask & 1 << 8, "the click was not frozen, so this shows nothing"
        assert not mask & 1 << 10, "the press was not kept back, so this shows nothing"
        display.ledger.release_all()
        assert display.ledger.held == []
        os.kill(manager, signal.SIGCONT)
        # Another click, answered by openbox, comes after all that was in the queue.
        display.pointer.click("left")
        until(lambda: not pressed(openbox_display), "nothing is pressed")
