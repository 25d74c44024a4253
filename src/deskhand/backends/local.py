"""A display of this machine, driven in this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.backends.lease import DesktopLease, DisplayLease
from deskhand.errors import DeskhandError, DisplayLost
from deskhand.hand.hand import Hand
from deskhand.hand.launcher import Launcher

T = TypeVar("T")
#: Seconds a cancelled batch has to come to its next action, before its connection is cut.
_GRACE = 0.5


class RunningBatch:
    """A batch that has its place in the hand's thread; ``outcome`` is what ``Backend.act`` gives or raises."""

    def __init__(self, outcome: Future[Outcome], gone: threading.Event, wind_up: Callable[[], Future[None]]) -> None:
        self.outcome = outcome
        self._gone = gone
        self._wind_up = wind_up

    def stop(self) -> Future[None]:
        """Nobody waits for it any more: stop it at its next action and release what it held; done when that is done.

        One that had not begun never will; its ``outcome`` is cancelled.
        """
        self._gone.set()
        if self.outcome.cancel():
            nothing_to_do: Future[None] = Future()
            nothing_to_do.set_result(None)
            return nothing_to_do
        return self._wind_up()


class LocalDisplay(Backend):
    """The X display named ``display`` (None: DISPLAY), with the hand in a thread of its own.

    ``session`` names what may stay held from one process to the next; ``launcher`` starts and ends applications (None:
    this process). See ``Backend`` for what the calls raise.
    """

    def __init__(
        self,
        display: str | None = None,
        xauthority: str | None = None,
        session: str | None = None,
        launcher: Launcher | None = None,
    ) -> None:
        self._hand = Hand(display, xauthority, session, launcher=launcher)
        self._place = (display, xauthority)
        # The hand is for one thread at a time, and a batch may take a minute.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="deskhand-hand")
        self._ended: Future[None] | None = None  # the last thing the thread does; None: it takes work
        self._abandoned = False

    @property
    def _closed(self) -> bool:
        return self._ended is not None

    async def info(self) -> dict[str, Any]:
        return await self._run(self._hand.info)

    async def act(self, batch: Envelope) -> Outcome:
        running = self.begin(batch)
        try:
            return await asyncio.wrap_future(running.outcome)
        except asyncio.CancelledError:
            if not running.outcome.cancelled():  # one that had not begun never will
                # The threads see to the end of it also when this wait, too, is cancelled.
                await asyncio.shield(asyncio.wrap_future(running.stop()))
            raise

    def begin(self, batch: Envelope, before: Callable[[Hand], Envelope] | None = None) -> RunningBatch:
        """Have a batch run after those that were begun before; for who wants its end also when nobody waits for it.

        ``before`` is called in the hand's thread when its turn has come, and gives the batch to run.
        """
        gone = threading.Event()

        def act() -> Outcome:
            whole = batch if before is None else before(self._hand)
            answer, picture = self._hand.act(dict(whole), alive=lambda: not gone.is_set())
            if picture is None:
                return Outcome(answer)
            return Outcome({**answer, "picture": picture.facts()}, picture.content)

        outcome = self._submit(act)
        return RunningBatch(outcome, gone, lambda: self._wind_up(outcome))

    async def with_hand(self, work: Callable[[Hand], T]) -> T:
        """What ``work`` gives, called with the hand in its thread."""
        return await self._run(lambda: work(self._hand))

    async def apps(self) -> list[dict[str, str]]:
        return await self._run(self._hand.apps)

    async def windows(self) -> list[dict[str, Any]]:
        return await self._run(self._hand.windows)

    def lease(self, holder: str) -> DesktopLease:
        return DisplayLease(*self._place, holder)

    async def aclose(self) -> None:
        if self._ended is None:
            self._ended = self._submit(self._close)
            self._thread.shutdown(wait=False)
        # The end comes also when nobody waits for it any more.
        await asyncio.shield(asyncio.wrap_future(self._ended))

    def _wind_up(self, running: Future[Outcome]) -> Future[None]:
        """End a batch that nobody waits for any more, and release what it held.

        It stops at its next action. When that is far away (a held key, a window to come) its connection is cut.
        """
        timer = threading.Timer(_GRACE, lambda: None if running.done() else self._hand.cut())
        timer.daemon = True
        timer.start()
        running.add_done_callback(lambda _: timer.cancel())
        if self._ended is not None:  # the thread takes nothing more, and what it does last releases
            self._abandoned = True
            return self._ended
        return self._submit(self._release)

    def _release(self) -> None:
        try:
            if self._hand.connected:
                try:
                    self._hand.display.ledger.release_all()
                    return
                except DisplayLost:
                    pass  # it was cut when the batch had just ended by itself
            self._hand.abandon()
        except DeskhandError:
            pass  # the display is gone, and what was held on it

    def _close(self) -> None:
        if self._abandoned:
            self._release()
        try:
            self._hand.close()
        except DeskhandError:
            pass  # the display is gone, and what was held on it

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        if self._closed:
            raise RuntimeError("this backend is closed")
        return self._thread.submit(work)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._submit(work))
