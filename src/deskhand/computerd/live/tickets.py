"""How a browser, which can set no header, gets in: a ticket for the one with the token, exchanged for a cookie.

A ticket is good once and for a minute, so it may stand in an address; the cookie (RFC 6265, HttpOnly, SameSite=Strict)
is good for twelve hours and for the live view alone. Cookies are signed and not remembered: a page that is open when
computerd starts again, with the same token, goes on.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

#: Seconds for which a ticket and a cookie are good.
TICKET_SECONDS, VIEWER_SECONDS = 60, 12 * 3600
#: Tickets that are good at once; beyond that the oldest is not any more.
_MOST = 256


@dataclass(frozen=True)
class Viewer:
    """Who a ticket or a cookie lets in: ``control`` whether they may ask to take over; ``until`` is epoch seconds."""

    control: bool
    until: int


class Tickets:
    """The tickets and cookies of a computerd whose token has this digest."""

    def __init__(self, token: bytes) -> None:
        self._key = hmac.digest(token, b"deskhand live view", "sha256")
        self._good: dict[bytes, tuple[float, Viewer]] = {}  # digest to when it is over, CLOCK_MONOTONIC
        #: The cookie's name. Cookies do not tell ports apart, and several computerds may be at one host name.
        self.cookie_name = "deskhand_live_" + hmac.digest(self._key, b"name", "sha256")[:4].hex()

    def new(self, control: bool) -> str:
        """A ticket, for the address of the page."""
        now = time.monotonic()
        self._good = {key: kept for key, kept in self._good.items() if kept[0] > now}
        while len(self._good) >= _MOST:
            del self._good[next(iter(self._good))]
        ticket = secrets.token_urlsafe(24)
        self._good[_digest(ticket)] = now + TICKET_SECONDS, Viewer(control, int(time.time()) + VIEWER_SECONDS)
        return ticket

    def spend(self, ticket: str) -> Viewer | None:
        """Who the ticket lets in; None when it was never given, was used, or is over."""
        # Looked up by its digest: how long that takes tells nothing about tickets that are good.
        over, viewer = self._good.pop(_digest(ticket), (0.0, None))
        return viewer if over > time.monotonic() else None

    def is_good(self, ticket: str) -> bool:
        """Whether the ticket would let somebody in; it is not used up."""
        return self._good.get(_digest(ticket), (0.0, None))[0] > time.monotonic()

    def cookie(self, viewer: Viewer) -> str:
        """The value of the cookie that lets ``viewer`` in."""
        said = f"{viewer.until}.{'control' if viewer.control else 'view'}.{secrets.token_urlsafe(9)}"
        return f"{said}.{self._signature(said)}"

    def viewer(self, cookie: str) -> Viewer | None:
        """Who a cookie of ours lets in; None when it is none, or is over."""
        said, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(self._signature(said).encode(), signature.encode("utf-8", "replace")):
            return None
        until, kind, _nonce = said.split(".")
        viewer = Viewer(kind == "control", int(until))
        return viewer if viewer.until > time.time() else None

    def _signature(self, said: str) -> str:
        return hmac.digest(self._key, said.encode("utf-8", "replace"), "sha256").hex()


def _digest(ticket: str) -> bytes:
    return hashlib.sha256(ticket.encode("utf-8", "replace")).digest()
