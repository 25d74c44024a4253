"""The lease of a guest's display: a hand over there holds it for as long as it runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from deskhand.backends.answers import raise_error
from deskhand.backends.lease import DesktopLease
from deskhand.backends.running import PARTING, RunningHand
from deskhand.errors import BackendError, DeskhandError, DisplayLost, SetupError


class GuestLease(DesktopLease):
    """A lease held by a command of its own: that of the batches ends when one is cancelled, and the turn outlives that.

    ``start`` starts the hand that holds it; ``lost`` is called when that did not answer.
    """

    def __init__(
        self, start: Callable[[], Awaitable[RunningHand]], lost: Callable[[], None], holder: str, patience: float
    ) -> None:
        self._start = start
        self._lost = lost
        self._holder = holder
        self._patience = patience
        self._hand: RunningHand | None = None
        self._taking: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def take(self, seconds: float, wait: float = 0.0) -> None:
        async with self._turn:
            await self._taken()
            taking = self._taking = asyncio.create_task(self._take(seconds, wait))
            taking.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may wait for it
            try:
                await asyncio.shield(taking)
            except asyncio.CancelledError:
                if taking.cancelled():
                    raise self._no_answer("it was released meanwhile") from None
                if wait:
                    await asyncio.shield(asyncio.create_task(self._end()))
                raise

    async def release(self) -> None:
        await asyncio.shield(asyncio.create_task(self._end()))

    async def _take(self, seconds: float, wait: float) -> None:
        if self._hand is not None and self._hand.ended:
            await self._end_hand()
        try:
            if self._hand is None:
                self._hand = await self._start()
            request = {"request": "lease", "holder": self._holder, "seconds": seconds, "wait": wait}
            async with asyncio.timeout(self._patience + wait):
                answer, _ = await self._hand.ask(request)
        except OSError as error:
            if isinstance(error, TimeoutError):
                await self._end_hand()
                raise self._no_answer(f"none came within {self._patience + wait:.0f} s") from None
            raise SetupError(f"no command can be run in the guest: {error}") from None
        except BackendError as error:
            await self._end_hand()
            raise self._no_answer(str(error)) from None
        raise_error(answer)

    def _no_answer(self, why: str) -> DisplayLost:
        self._lost()
        error = DisplayLost(f"the lease of the guest's display could not be taken: {why}")
        error.sent = "none"
        return error

    async def _taken(self) -> None:
        """Wait for a ``take`` that was cancelled and whose answer is still on its way."""
        if self._taking is not None:
            with contextlib.suppress(DeskhandError):
                await asyncio.shield(self._taking)
            self._taking = None

    async def _end(self) -> None:
        """The lease ends with the hand that holds it; a wait in the queue ends with its input."""
        taking = self._taking
        if taking is not None and not taking.done():
            if self._hand is not None:
                self._hand.close_input()
                await asyncio.wait([taking], timeout=PARTING)
            taking.cancel()
            await asyncio.wait([taking])
        await self._end_hand()

    async def _end_hand(self) -> None:
        hand, self._hand = self._hand, None
        if hand is not None:
            await hand.end()
