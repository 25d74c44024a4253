"""A display of this machine, driven in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.hand.hand import Hand

T = TypeVar("T")


class LocalDisplay(Backend):
    """The X display named ``display`` (None: DISPLAY), with the hand in a thread of its own.

    ``session`` names what may stay held from one process to the next. See ``Backend`` for what the calls raise.
    """

    def __init__(self, display: str | None = None, xauthority: str | None = None, session: str | None = None) -> None:
        self._hand = Hand(display, xauthority, session)
        # The hand is for one thread at a time, and a batch may take a minute.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="deskhand-hand")
        self._closed = False

    async def info(self) -> dict[str, Any]:
        return await self._run(self._hand.info)

    async def act(self, batch: Envelope) -> Outcome:
        gone = threading.Event()

        def act() -> Outcome:
            answer, picture = self._hand.act(dict(batch), alive=lambda: not gone.is_set())
            if picture is None:
                return Outcome(answer)
            return Outcome({**answer, "picture": picture.facts()}, picture.content)

        try:
            return await self._run(act)
        except asyncio.CancelledError:
            gone.set()
            await self._run(self._release)
            raise

    async def apps(self) -> list[dict[str, str]]:
        return await self._run(self._hand.apps)

    async def windows(self) -> list[dict[str, Any]]:
        return await self._run(self._hand.windows)

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._hand.close)
            self._thread.shutdown(wait=False)

    def _release(self) -> None:
        if self._hand.connected:
            self._hand.display.ledger.release_all()

    async def _run(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise RuntimeError("this backend is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
