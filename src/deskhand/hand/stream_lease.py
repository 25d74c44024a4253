"""The lease that a hand with ``--stream`` holds for its caller: as long as the hand runs, and no longer than was asked.

Requests: ``{"request": "lease", "holder": NAME, "seconds": S, "wait": S}`` takes the display, or keeps it for so long
from now; ``{"request": "end_lease"}`` lets the next one have it. See ``lease`` for the terms.
"""

from __future__ import annotations

import math
import threading
from typing import Any, Dict, Optional

from .answering import OK, Reply, error_reply
from .errors import BatchRefused, DeskhandError, DisplayLost
from .hand import Hand
from .lease import LONGEST, Lease

REQUESTS = ("lease", "end_lease")


class StreamLease:
    """The lease of one stream, over a connection of its own: that of the hand is cut when a batch is stopped."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand
        self._lease: Optional[Lease] = None
        self._ended = False
        # ``cut`` may also be called by a signal, in the middle of what this thread does with it.
        self._cutting = threading.RLock()

    def answer(self, request: Dict[str, Any]) -> Reply:
        """Do what one of ``REQUESTS`` asks; errors become answers."""
        try:
            if request["request"] == "lease":
                self._take(request)
            else:
                _check_fields(request, ())
                self.end()
            return Reply({"ok": True}, None, OK)
        except Exception as error:  # a fault of ours, too, must become an answer
            return error_reply(error, request)

    def end(self) -> None:
        """Let the next one have it."""
        lease, self._lease = self._lease, None
        try:
            if lease is not None:
                lease.release()
        except DeskhandError:
            pass  # the display is gone, and the lease with it

    def cut(self) -> None:
        """End it now, from any thread: a wait in the queue stops."""
        with self._cutting:
            self._ended = True
            if self._lease is not None:
                self._lease.cut()

    def _take(self, request: Dict[str, Any]) -> None:
        _check_fields(request, ("holder", "seconds", "wait"))
        holder = request.get("holder")
        if not isinstance(holder, str) or not holder:
            raise BatchRefused("the request lease needs holder, the name of the session")
        seconds, wait = _seconds(request, "seconds", None), _seconds(request, "wait", 0.0)
        with self._cutting:
            if self._ended:
                raise DisplayLost("whoever asked for the lease has gone")
            if self._lease is None or self._lease.lost or self._lease.holder != holder:
                self.end()
                self._lease = self._hand.lease(holder)
            if self._ended:  # meanwhile: a display may take its time to be reached
                raise DisplayLost("whoever asked for the lease has gone")
            lease = self._lease
        lease.take(seconds, wait)


def _check_fields(request: Dict[str, Any], known: Any) -> None:
    unknown = [name for name in request if name != "request" and name not in known]
    if unknown:
        raise BatchRefused(f"the request {request['request']} has no field {str(unknown[0])[:60]!r}")


def _seconds(request: Dict[str, Any], name: str, default: Optional[float]) -> float:
    value = request.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BatchRefused(f"the request lease needs {name}, a number of seconds")
    if not 0 <= value <= LONGEST:
        raise BatchRefused(f"{name} of a lease must be from 0 to {LONGEST:g} seconds, not {value:g}")
    return float(value)
