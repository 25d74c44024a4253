"""One lease as the host of its desktop has it: the fence that every call passes, and the hand behind it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from deskhand.backends.base import Envelope, Outcome
from deskhand.backends.local import LocalDisplay, RunningBatch
from deskhand.errors import DeskhandError, DisplayLost, NoDisplay
from deskhand.fleet.errors import LeaseLost
from deskhand.fleet.launching import SandboxLauncher
from deskhand.fleet.making import Made
from deskhand.fleet.pool import lost
from deskhand.hand.hand import Hand
from deskhand.hand.state import is_alive

T = TypeVar("T")
#: How a desktop has died.
DEATH = "its X server or its session has ended"


class Holding(LocalDisplay):
    """The desktop ``made`` in the hands of one client.

    Whether the lease still stands is looked at when a call arrives, and again in the hand's thread when its turn has
    come; a batch that runs when the lease ends stops at its next action. Times are CLOCK_MONOTONIC.
    """

    def __init__(self, made: Made, holder: str, number: int, token: str, ttl: float) -> None:
        launcher = SandboxLauncher(made) if made.launcher is not None else None
        super().__init__(made.display, made.xauthority, launcher=launcher)
        self.made = made
        self.holder = holder
        self.number = number
        self.token = token
        self.ttl = ttl
        self.until = time.monotonic() + ttl
        self.since = time.time()
        self.batches = 0
        #: Why the lease is over; None while it stands.
        self.over: str | None = None
        #: Why the desktop does not live any more; None while it does.
        self.dead: str | None = None
        self.timer: asyncio.TimerHandle | None = None
        self._running: set[RunningBatch] = set()

    def check(self) -> None:
        """Called from any thread.

        Raises:
            LeaseLost: The lease is over.
            DisplayLost: The lease stands and its desktop has died.
        """
        if self.over is None and time.monotonic() >= self.until:
            self.over = "it was not renewed in time"
        if self.over is not None:
            raise lost(self.over)
        if self.dead is not None:
            error = DisplayLost(f"the desktop has died ({self.dead}): reset the lease for a fresh one")
            error.sent = "none"
            raise error

    def renew(self, ttl: float) -> None:
        self.ttl, self.until = ttl, time.monotonic() + ttl

    async def act(self, batch: Envelope) -> Outcome:
        self.check()
        self.batches += 1
        try:
            outcome = await super().act(batch)
        except DisplayLost as error:
            if self.over is None:
                raise
            raise self._ended_in_the_middle(error.sent) from None
        except NoDisplay:
            self._see_whether_it_died()
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.over is not None and task is not None and not task.cancelling():
                raise lost(self.over) from None  # the batch was, before its turn; not its caller
            raise
        if self.over is not None and not outcome.ok:
            raise self._ended_in_the_middle(str(outcome.answer["sent"]))
        return outcome

    def begin(self, batch: Envelope, before: Callable[[Hand], Envelope] | None = None) -> RunningBatch:
        def fenced(hand: Hand) -> Envelope:
            self.check()
            return batch if before is None else before(hand)

        running = super().begin(batch, fenced)
        self._running.add(running)
        running.outcome.add_done_callback(lambda _: self._running.discard(running))
        return running

    async def end(self, why: str) -> None:
        """The lease is over: nothing is sent any more, what runs stops, and what was held is released."""
        if self.over is None:
            self.over = why
        if self.timer is not None:
            self.timer.cancel()
        stopping: list[Future[None]] = [running.stop() for running in list(self._running)]
        for ended in stopping:
            with contextlib.suppress(DeskhandError, asyncio.CancelledError):
                await asyncio.wrap_future(ended)
        await self.aclose()

    async def _run(self, work: Callable[[], T]) -> T:
        def fenced() -> T:
            self.check()
            return work()

        self.check()
        try:
            return await super()._run(fenced)
        except NoDisplay:
            self._see_whether_it_died()
            raise

    def _see_whether_it_died(self) -> None:
        """The host may not have heard of it yet; nothing was sent."""
        if not all(is_alive(*process) for process in self.made.vital):
            self.dead = self.dead or DEATH
            self.check()

    def _ended_in_the_middle(self, sent: str) -> LeaseLost:
        error = LeaseLost(
            f"the lease of this desktop ended in the middle of the batch ({self.over}): what it held was released."
            " Lease another one"
        )
        error.sent = sent
        return error
