"""A pool of desktops, and a desktop that was leased from it.

::

    async with pool.lease(ttl=60) as desktop:
        outcome = await desktop.act({"actions": [{"action": "click", "x": 5, "y": 5}], "picture": True})
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.errors import DeskhandError, Unsupported
from deskhand.fleet.commands import Command, Ran, RunsCommands
from deskhand.fleet.errors import LeaseLost

#: Seconds a lease may run at most between two renewals, and at least.
LONGEST, SHORTEST = 3600.0, 0.1
#: Seconds to wait for a free desktop when nothing else is said.
PATIENCE = 120.0


@dataclass(frozen=True)
class Lease:
    """One desktop for one client until its time is over.

    ``host`` names who owns the desktop, ``desktop`` is its id, ``display`` its name over there. ``number`` grows with
    every lease of a host. ``token`` goes with every call and is checked by the host: it is a secret, and is not shown.
    ``ttl`` is in seconds, from the last renewal on.
    """

    host: str
    desktop: str
    display: str
    number: int
    holder: str
    ttl: float
    token: str

    def __repr__(self) -> str:
        return f"Lease({self.holder!r} has {self.desktop!r} at {self.host!r}, number {self.number})"


class Pool(ABC):
    """Desktops that are leased to one client at a time.

    The host of a desktop alone says who has it, and checks the lease's token at every call: a client whose lease is
    over can not touch the desktop that the next one gets. A desktop is never given out twice; after a lease it is ended
    with everything on it, and a new one takes its place. No call is ever repeated by the pool.
    """

    @abstractmethod
    async def acquire(self, ttl: float = 60.0, wait: float = PATIENCE, holder: str | None = None) -> Lease:
        """A desktop for ``ttl`` seconds; queues ``wait`` seconds for it at most.

        Raises:
            NoneFree: There was none in that time.
            SetupError: The pool can not be reached, or makes no desktops; says why.
        """

    @abstractmethod
    async def renew(self, lease: Lease, ttl: float | None = None) -> None:
        """Keep it for ``ttl`` seconds from now; None: for as long as before.

        Raises:
            LeaseLost: It was over.
        """

    @abstractmethod
    async def release(self, lease: Lease) -> None:
        """Give it back. One that is over already is no error."""

    @abstractmethod
    async def reset(self, lease: Lease, wait: float = PATIENCE) -> Lease:
        """Another, fresh desktop in its place: gives the new lease, the old one is over.

        Raises:
            LeaseLost: It was over before.
            NoneFree, SetupError: There was no fresh desktop in that time; the lease is over.
            Unsupported: This pool can not make its desktops fresh.
        """

    @abstractmethod
    async def health(self) -> dict[str, Any]:
        """How the pool is: ``ok``, ``size``, ``free``, ``leased``, ``waiting``, ``hosts`` with what each says."""

    async def detail(self) -> dict[str, Any]:
        """``health``, and of each host that can tell: ``desktops``, each with its state, and the last ``events``."""
        return await self.health()

    @abstractmethod
    def backend(self, lease: Lease) -> Backend:
        """The desktop of a lease; closing it gives nothing back. Who uses it renews the lease."""

    async def aclose(self) -> None:  # noqa: B027
        """Let go of the pool; what it owns ends with it."""

    def lease(self, ttl: float = 60.0, wait: float = PATIENCE, holder: str | None = None) -> LeasedDesktop:
        """A desktop of this pool, acquired by ``async with`` or by the first call, and renewed until it is closed.

        It is given back when it is closed; when this process dies, ``ttl`` seconds later.
        """
        return LeasedDesktop(self, ttl, wait, holder)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class LeasedDesktop(Backend, RunsCommands):
    """A leased desktop as a backend; its lease is renewed by a task of the event loop, which must not be blocked.

    A lease that is lost stays lost: every call then raises ``LeaseLost``, and nothing is sent.
    """

    def __init__(self, pool: Pool, ttl: float, wait: float, holder: str | None) -> None:
        self._pool = pool
        self._ttl = checked_ttl(ttl)
        self._wait = wait
        self._holder = holder
        self._held: tuple[Lease, Backend] | None = None
        self._until = 0.0
        self._lost: LeaseLost | None = None
        self._heart: asyncio.Task[None] | None = None
        self._taking = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._desktop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def current(self) -> Lease | None:
        """The lease; None before there is one."""
        return self._held[0] if self._held is not None else None

    async def info(self) -> dict[str, Any]:
        return await (await self._desktop()).info()

    async def act(self, batch: Envelope) -> Outcome:
        """See ``Backend.act``.

        Raises:
            LeaseLost: The desktop is no longer this client's.
        """
        return await (await self._desktop()).act(batch)

    async def apps(self) -> list[dict[str, str]]:
        return await (await self._desktop()).apps()

    async def windows(self) -> list[dict[str, Any]]:
        return await (await self._desktop()).windows()

    async def run_command(self, command: Command) -> Ran:
        desktop = await self._desktop()
        if not isinstance(desktop, RunsCommands):
            raise Unsupported("this pool runs no commands on its desktops: use one that owns them, or give a shell")
        return await desktop.run_command(command)

    async def reset(self) -> None:
        """Take a fresh desktop in place of this one; see ``Pool.reset``."""
        await self._desktop()
        async with self._taking:
            assert self._held is not None
            old, backend = self._held
            await self._stop_heart()
            await backend.aclose()
            try:
                began = time.monotonic()
                lease = await self._pool.reset(old, self._wait)
            except Unsupported:
                self._hold(old)  # nothing was done: the lease goes on
                raise
            except DeskhandError as error:
                self._lost = LeaseLost(f"the desktop could not be made fresh, and its lease is over: {error}")
                raise
            self._take(lease, began)

    async def aclose(self) -> None:
        self._closed = True
        async with self._taking:
            await self._stop_heart()
            held, self._held = self._held, None
            if held is not None:
                lease, backend = held
                try:
                    await backend.aclose()
                finally:
                    with contextlib.suppress(DeskhandError):  # its time ends it
                        await self._pool.release(lease)

    async def _desktop(self) -> Backend:
        """The leased desktop; acquires it when there is none yet."""
        if self._closed:
            raise RuntimeError("this backend is closed")
        if self._held is None:
            async with self._taking:
                if self._closed:
                    raise RuntimeError("this backend is closed")
                if self._held is None:
                    self._take(*await self._acquire())
        if self._lost is None and time.monotonic() >= self._until:
            self._lost = lost("it was not renewed in time")
        if self._lost is not None:
            raise LeaseLost(str(self._lost))
        assert self._held is not None
        return self._held[1]

    async def _acquire(self) -> tuple[Lease, float]:
        lease = await self._pool.acquire(self._ttl, self._wait, self._holder)
        # How long the answer was under way is not known: the host may count from a moment ago.
        return lease, time.monotonic()

    def _take(self, lease: Lease, began: float) -> None:
        self._until = began + self._ttl
        self._hold(lease)

    def _hold(self, lease: Lease) -> None:
        self._held = (lease, self._pool.backend(lease))
        self._heart = asyncio.get_running_loop().create_task(self._beat(lease))

    async def _beat(self, lease: Lease) -> None:
        """Renew three times in its time; one that does not arrive is no end yet."""
        while True:
            await asyncio.sleep(self._ttl / 3)
            began = time.monotonic()
            try:
                async with asyncio.timeout(max(0.05, self._until - began)):
                    await self._pool.renew(lease, self._ttl)
            except LeaseLost as error:
                self._lost = error
                return
            except (DeskhandError, TimeoutError) as error:
                if time.monotonic() >= self._until:
                    self._lost = lost(f"it could not be renewed in time ({error or 'no answer'})")
                    return
            else:
                self._until = began + self._ttl

    async def _stop_heart(self) -> None:
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heart


def lost(why: str) -> LeaseLost:
    """The error of a lease that is over, with what to do."""
    return LeaseLost(f"the lease of this desktop is over: {why}; nothing more is sent to it. Lease another one")


def checked_ttl(ttl: float) -> float:
    """``ttl``, when a lease can have it.

    Raises:
        ValueError: It can not.
    """
    if not SHORTEST <= ttl <= LONGEST:
        raise ValueError(f"ttl is {SHORTEST:g} to {LONGEST:g} seconds, not {ttl!r}")
    return float(ttl)


def who() -> str:
    """A holder's name when none is given: who looks at the pool's health sees it."""
    return f"{socket.gethostname()}:{os.getpid()}"
