"""Is the desktop there? Asked of the X server itself, over a connection of its own, at every probe.

Nothing else uses that connection or its thread, so that no batch and no client can make a probe wait.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deskhand.errors import DeskhandError, DisplayLost, DisplayTimeout
from deskhand.hand import pixels, state
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection

#: Seconds the X server, and the launcher's socket, may take: together less than a probe's usual second.
PATIENCE, LAUNCHER_PATIENCE = 0.7, 0.2
#: Seconds between two attempts to connect, at first and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_GET_SCREEN_SAVER = 108


class Health:
    """What ``GET /health`` tells.

    Args:
        display: The display's name; None: DISPLAY.
        xauthority: The cookie's file.
        launcher: The launcher's socket, when there is one.
        wait_for_desktop: Not healthy, once, before the screen has shown more than one colour: a desktop that has just
            been started has not painted itself yet.
    """

    def __init__(
        self,
        display: str | None,
        xauthority: str | None = None,
        launcher: str | None = None,
        wait_for_desktop: bool = False,
    ) -> None:
        self._place = (display, xauthority)
        self._launcher = launcher
        self._waits = wait_for_desktop
        self._conn: Connection | None = None
        self._why = ""
        self._pause, self._again = _FIRST_PAUSE, 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="deskhand-health")
        self._asking: asyncio.Task[dict[str, Any]] | None = None
        #: What the last probe found; None before the first.
        self.last: dict[str, Any] | None = None

    async def check(self) -> dict[str, Any]:
        """``{"ok", "display", "launcher"?}``: each part "ok", or what is wrong with it in a sentence."""
        # Probes that come at once share one look.
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._look())
        return await asyncio.shield(self._asking)

    async def aclose(self) -> None:
        if self._conn is not None:
            self._conn.cut()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> dict[str, Any]:
        found = await asyncio.get_running_loop().run_in_executor(self._thread, self._ask)
        self.last = found
        return found

    def _ask(self) -> dict[str, Any]:
        found: dict[str, Any] = {"ok": True}
        for part, ask in (("display", self._display), ("launcher", self._launcher_answers)):
            if part == "launcher" and self._launcher is None:
                continue
            why = _problem_with(ask)
            found[part] = why or "ok"
            found["ok"] = found["ok"] and not why
        if found["display"] == "ok" and self._conn is not None:
            found["screen_saver"] = "off" if self._saver == 0 else f"after {self._saver} s"
        return found

    def _display(self) -> None:
        # All that is asked has one deadline: a server that hangs is told of within the second, too.
        deadline = time.monotonic() + PATIENCE
        if self._conn is None or self._conn.closed:
            self._connect(deadline)
        try:
            answer = self._answer(deadline)
        except DisplayTimeout:
            raise
        except DisplayLost:
            # It may have been another server's: what is there now decides.
            self._connect(deadline)
            answer = self._answer(deadline)
        (self._saver,) = struct.unpack_from("=H", answer, 8)
        if self._waits:
            assert self._conn is not None
            screen = Screen(self._conn)
            try:
                if pixels.is_blank(screen.capture().rgb()):
                    raise DisplayLost("the desktop is still starting: its screen has one colour")
            finally:
                screen.close()
            self._waits = False

    def _answer(self, deadline: float) -> bytes:
        assert self._conn is not None
        self._conn.timeout = _left(deadline)
        try:
            return self._conn.call(_GET_SCREEN_SAVER, 0)
        finally:
            self._conn.timeout = PATIENCE

    def _connect(self, deadline: float) -> None:
        now = time.monotonic()
        if now < self._again:
            raise DisplayLost(self._why)
        display, xauthority = self._place
        if xauthority is None and display is not None:
            desktop = state.find_desktop(display)
            xauthority = str(desktop["xauthority"]) if desktop is not None else None
        try:
            self._conn = Connection.open(display, xauthority, _left(deadline))
        except DeskhandError as error:
            self._why = str(error)
            self._again = now + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            raise
        self._pause = _FIRST_PAUSE

    def _launcher_answers(self) -> None:
        assert self._launcher is not None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(LAUNCHER_PATIENCE)
            try:
                probe.connect(self._launcher)
            except OSError as error:
                raise DisplayLost(
                    f"the launcher does not answer at its socket ({error.strerror or error}): see whether it runs"
                ) from None


def _left(deadline: float) -> float:
    return round(max(0.05, deadline - time.monotonic()), 2)


def _problem_with(ask: Callable[[], None]) -> str:
    try:
        ask()
    except DeskhandError as error:
        return str(error)
    return ""
