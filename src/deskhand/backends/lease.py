"""Leases as sessions see them: whose turn it is at a desktop."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from deskhand.errors import DeskhandError, DisplayLost
from deskhand.hand.lease import Lease, open_lease


class DesktopLease(ABC):
    """The turn of one session at one desktop; other processes that ask for it see who has it."""

    @abstractmethod
    async def take(self, seconds: float, wait: float = 0.0) -> None:
        """Take it for ``seconds``, or keep it for so long from now; queue for it ``wait`` seconds at most.

        Raises:
            DesktopInUse: Another session has it; names it.
            NoDisplay, DisplayLost: The desktop can not be reached, or went away.
        """

    @abstractmethod
    async def release(self) -> None:
        """Let the next one have it. Calling it again does nothing."""


class DisplayLease(DesktopLease):
    """The lease of an X display, held on its root window over a connection of its own.

    Its own, because that of the hand is cut when a batch is cancelled, and the turn must outlive that.
    """

    def __init__(self, display: str | None, xauthority: str | None, holder: str) -> None:
        self._open: Callable[[], Lease] = lambda: open_lease(display, xauthority, holder)
        self._lease: Lease | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._taking: Future[None] | None = None
        self._gone = threading.Event()  # of whoever waits for the take under way
        self._cutting = threading.Lock()

    async def take(self, seconds: float, wait: float = 0.0) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="deskhand-lease")
        self._gone = threading.Event()
        self._taking = self._thread.submit(self._take, seconds, wait, self._gone)
        try:
            await asyncio.wrap_future(self._taking)
        except asyncio.CancelledError:
            if wait:
                self._stop_waiting()
            raise

    async def release(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop_waiting()
            ended = thread.submit(self._release)
            thread.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(ended))

    def _take(self, seconds: float, wait: float, gone: threading.Event) -> None:
        if self._lease is None or self._lease.lost:
            # Outside of the lock: it may take seconds, and the event loop asks for the lock too.
            opened = self._open()
            with self._cutting:
                self._lease = opened
        with self._cutting:
            lease = self._lease
            if gone.is_set():
                raise DisplayLost("whoever asked for the lease has gone")
        lease.take(seconds, wait)

    def _stop_waiting(self) -> None:
        """A wait in the queue ends only with its connection."""
        with self._cutting:
            if self._taking is not None and not self._taking.done():
                self._gone.set()
                if self._lease is not None:
                    self._lease.cut()

    def _release(self) -> None:
        lease, self._lease = self._lease, None
        try:
            if lease is not None:
                lease.release()
        except DeskhandError:
            pass  # the display is gone, and the lease with it
