"""A screen with a person at it: an X server (Xephyr) whose keyboard and mouse are driven from the server it runs in."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from deskhand import OwnScreen
from deskhand.hand.x11 import Connection, core, xtest
from deskhand.testing import XServer, xvfb
from deskhand.testing.batches import run, until
from deskhand.testing.received import pressed

MOVE = {"action": "move", "x": 5, "y": 5}
CLICK = {"action": "click", "x": 50, "y": 60}
LONG = {"action": "wait", "seconds": 50}
LOOK: dict[str, Any] = {"actions": [{"action": "screenshot"}]}


class PersonAtIt:
    """What they do comes from the devices "Xephyr virtual keyboard" and "Xephyr virtual mouse"."""

    ESCAPE, A, SHIFT, CONTROL, ALT, Q = 9, 38, 50, 37, 64, 24

    def __init__(self, outer: Connection, screen: XServer) -> None:
        self._outer = outer
        self._screen = screen

    def press(self, *codes: int) -> None:
        """Press them, in this order; they are down on the person's screen when this returns."""
        for code in codes:
            xtest.fake_input(self._outer, xtest.KEY_PRESS, code)
        self._outer.sync()
        self._arrived(codes, down=True)

    def release(self, *codes: int) -> None:
        """Let them go, the last first; they are up on the person's screen when this returns."""
        for code in reversed(codes):
            xtest.fake_input(self._outer, xtest.KEY_RELEASE, code)
        self._outer.sync()
        self._arrived(codes, down=False)

    def _arrived(self, codes: Sequence[int], down: bool) -> None:
        """Xephyr is a program that gets these keys as any other does, and passes them on when its turn comes."""
        keys = {f"key {code}" for code in codes}
        until(lambda: keys & set(pressed(self._screen)) == (keys if down else set()), f"{keys} have arrived")

    def key(self, *codes: int, times: int = 1) -> None:
        for _ in range(times):
            self.press(*codes)
            self.release(*codes)
            # As long as a finger takes at least; waited by the server.
            xtest.fake_input(self._outer, xtest.MOTION, 0, 640, 400, delay_ms=50)
        self._outer.sync()

    def move(self, x: int, y: int) -> None:
        xtest.fake_input(self._outer, xtest.MOTION, 0, x, y)
        self._outer.sync()

    def click(self) -> None:
        xtest.fake_input(self._outer, xtest.BUTTON_PRESS, 1)
        xtest.fake_input(self._outer, xtest.BUTTON_RELEASE, 1)
        self._outer.sync()


Shared = tuple[XServer, PersonAtIt]


@contextmanager
def screen_with_a_person() -> Iterator[tuple[XServer, PersonAtIt]]:
    """A server of 1280x800 pixels, and the person at it."""
    with xvfb() as outer, Connection.open(outer.display) as conn, tempfile.TemporaryFile() as log:
        core.select_input(conn, conn.root, core.SUBSTRUCTURE_NOTIFY)
        reader, writer = os.pipe()
        try:
            process = subprocess.Popen(
                ["Xephyr", "-displayfd", str(writer), "-screen", "1280x800", "-noreset", "-nolisten", "tcp"],
                env=outer.env,
                pass_fds=(writer,),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        except FileNotFoundError:
            os.close(reader)
            pytest.skip("Xephyr is not installed (Debian: xserver-xephyr)")
        finally:
            os.close(writer)
        try:
            with os.fdopen(reader, "rb") as line:
                number = line.readline().strip()
            assert number, "Xephyr did not start"
            display = f":{int(number)}"
            screen = XServer(display, None, process.pid, {**outer.env, "DISPLAY": display})
            person = PersonAtIt(conn, screen)
            person.move(640, 400)
            yield screen, person
        finally:
            process.terminate()
            process.wait(20)


def at(server: XServer, work: Callable[[OwnScreen], Awaitable[Any]], **options: Any) -> Any:
    """Run ``work`` with a backend that waits for a person only as long as they hold something down."""
    options = {"quiet": 0.0, "patience": 20.0, **options}

    async def whole() -> Any:
        backend = OwnScreen(server.display, server.xauthority, **options)
        try:
            return await work(backend)
        finally:
            await backend.aclose()

    return run(whole())


async def begun(backend: OwnScreen, batch: dict[str, Any], server: XServer) -> asyncio.Task[Any]:
    """A batch under way, which holds something down by now."""
    running = asyncio.create_task(backend.act(batch))
    await asyncio.to_thread(until, lambda: pressed(server) or running.done(), "something is pressed")
    return running
