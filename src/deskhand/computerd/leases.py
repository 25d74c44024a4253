"""Leases over HTTP: whose turn it is at the desktop, told by a token.

Each is the lease of the X display (``hand/lease.py``), so that sessions of this machine and those over HTTP take turns
with each other. It is held by computerd for a client that shows the lease's token.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from dataclasses import dataclass, field

from deskhand.backends.lease import DisplayLease
from deskhand.computerd.auth import digest
from deskhand.computerd.problems import Problem
from deskhand.errors import DeskhandError, DesktopInUse

#: Leases that are known at once. Those that are over give their place up, and not those that are waited for.
_MOST = 32
#: Seconds for which a lease whose time is over can still be taken up again with its token.
_REMEMBERED = 3600.0
#: Seconds for which a client keeps the desktop that went away in the middle of a batch: one that has given up that
#: batch only renews its lease at once.
LOST_KEEPS = 3.0


@dataclass
class Held:
    """One client's lease. Times are CLOCK_MONOTONIC; ``until`` is 0 when it is not held."""

    holder: str
    lease: DisplayLease = field(repr=False)
    until: float = 0.0
    taken: float = 0.0
    known_until: float = 0.0


class Leases:
    """The leases of one display."""

    def __init__(self, display: str | None, xauthority: str | None) -> None:
        self._place = (display, xauthority)
        self._known: dict[bytes, Held] = {}

    @property
    def holder(self) -> str | None:
        """Who has the desktop, of those that asked over HTTP."""
        held = self._current()
        return held.holder if held is not None else None

    async def take(self, holder: str, seconds: float, wait: float) -> str:
        """A new lease; gives its token.

        Raises:
            DesktopInUse: Another session has the desktop.
            Problem: Too many wait for it already.
        """
        await self._forget_old()
        if len(self._known) >= _MOST and not await self._drop_one():
            raise Problem("busy", "too many sessions wait for this desktop: try again later", {"Retry-After": "5"})
        token = secrets.token_urlsafe(24)
        held = Held(holder, DisplayLease(*self._place, holder), known_until=time.monotonic() + wait + _REMEMBERED)
        self._known[digest(token)] = held
        try:
            await self._take(held, seconds, wait)
        except BaseException:
            await self.give_back(token)
            raise
        return token

    async def renew(self, token: str, seconds: float) -> str:
        """Hold it for so long from now, also when its time was over and nobody else has the desktop; its holder.

        Raises:
            DesktopInUse: Another session has the desktop.
            Problem: There is no such lease.
        """
        held = self._known.get(digest(token))
        if held is None:
            raise Problem("no_lease", "there is no such lease, or it was over long ago: take a new one")
        await self._take(held, seconds, 0.0)
        return held.holder

    async def client_lost(self, token: str, since: float) -> None:
        """The lease's client went away in the middle of a batch at ``since``, CLOCK_MONOTONIC.

        It is kept for a little while only, unless it was renewed after that.
        """
        held = self._known.get(digest(token))
        if held is not None and held.taken < since and held.until - time.monotonic() > LOST_KEEPS:
            with contextlib.suppress(DeskhandError):  # somebody else has it already, or the display is gone
                await self._take(held, LOST_KEEPS, 0.0)

    async def give_back(self, token: str) -> bool:
        """Let the next one have the desktop; false when there was no such lease."""
        held = self._known.pop(digest(token), None)
        if held is not None:
            held.until = 0.0
            await held.lease.release()
        return held is not None

    def check(self, token: str | None) -> bool:
        """Whether the desktop is held with that token; from any thread.

        Raises:
            DesktopInUse: It is held with another one.
        """
        current = self._current()
        if current is None:
            return False
        if token is not None and self._known.get(digest(token)) is current:
            return True
        raise DesktopInUse(
            f"the desktop is in use by session {current.holder!r}: wait until it has ended, or use another desktop",
            holder=current.holder,
        )

    async def aclose(self) -> None:
        """Give all of them back."""
        known, self._known = list(self._known.values()), {}
        for held in known:
            await held.lease.release()

    async def _take(self, held: Held, seconds: float, wait: float) -> None:
        # Only the display's own lease decides; that is also held by sessions of this machine that we do not know.
        await held.lease.take(seconds, wait)
        for other in list(self._known.values()):
            other.until = 0.0
        now = time.monotonic()
        held.taken, held.until, held.known_until = now, now + seconds, now + seconds + _REMEMBERED

    def _current(self) -> Held | None:
        now = time.monotonic()
        return next((held for held in list(self._known.values()) if held.until > now), None)

    async def _forget_old(self) -> None:
        now = time.monotonic()
        for key, held in list(self._known.items()):
            if held.known_until < now:
                del self._known[key]
                await held.lease.release()

    async def _drop_one(self) -> bool:
        """Forget the lease that has been over longest; false when all are held or waited for."""
        now = time.monotonic()
        over = [(held.known_until, key) for key, held in self._known.items() if held.taken and held.until <= now]
        if not over:
            return False
        held = self._known.pop(min(over)[1])
        await held.lease.release()
        return True
