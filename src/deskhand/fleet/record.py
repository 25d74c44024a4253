"""What has happened at a host, for those who look: counts, how long leases lasted, the last events."""

from __future__ import annotations

import collections
import itertools
import time
from bisect import bisect_left
from typing import Any

from deskhand.fleet.holding import Holding
from deskhand.fleet.making import Made
from deskhand.fleet.options import Counts

#: Upper bounds, in seconds, of what is counted: how long leases last, and how long somebody waits for one.
LEASE_BOUNDS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0)
WAIT_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)
#: Events that are kept; failures are kept apart, so that a busy fleet's leases do not push them out.
_KEPT = 40
_FAILURES = frozenset({"expired", "died", "failed", "refused", "fenced", "none_free", "left_over"})


class Histogram:
    """How often a value was at most each of ``bounds``; the last count is that of all."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def as_dict(self) -> dict[str, Any]:
        return {"le": self._bounds, "counts": list(itertools.accumulate(self._counts)), "sum": round(self._sum, 6)}


class Record:
    """Kept by a host, in its event loop. Times are seconds since the epoch. No token of a lease stands in it."""

    def __init__(self) -> None:
        self.began = time.time()
        self.counts = Counts()
        self.lease_seconds = Histogram(LEASE_BOUNDS)
        self.wait_seconds = Histogram(WAIT_BOUNDS)
        self._numbers = itertools.count(1)
        self._usual: collections.deque[dict[str, Any]] = collections.deque(maxlen=_KEPT)
        self._failures: collections.deque[dict[str, Any]] = collections.deque(maxlen=_KEPT)
        self._ready_since: dict[str, float] = {}
        self._starting: dict[int, float] = {}
        self._ending: dict[str, tuple[Made, float]] = {}

    # -- what happens -------------------------------------------------------------------------------------------------

    def starting(self) -> int:
        """A desktop is being started; gives the number to tell of its end with."""
        number = next(self._numbers)
        self._starting[number] = time.time()
        return number

    def start_ended(self, number: int) -> None:
        """However it ended."""
        del self._starting[number]

    def ready(self, made: Made, failures_before: int) -> None:
        """It is ready, after so many in a row that did not come up."""
        self._ready_since[made.id] = time.time()
        self.counts.retried += failures_before > 0

    def failed(self, error: Exception, refused: bool) -> None:
        self._say("refused" if refused else "failed", str(error))

    def given(self, holding: Holding, waited: float) -> None:
        self.counts.leases += 1
        self.wait_seconds.observe(waited)
        self._say("given", f"leased to {holding.holder}", holding.made, holding.holder)

    def ended(self, holding: Holding, why: str, what: str) -> None:
        """A lease is over; ``what`` is ``released``, ``reset`` or ``expired``."""
        self.lease_seconds.observe(max(0.0, time.time() - holding.since))
        self._say(what, f"the lease of {holding.holder} is over: {why}", holding.made, holding.holder)

    def fenced(self, why: str) -> None:
        """A call whose lease is over was refused, or stopped."""
        self.counts.fenced += 1
        self._say("fenced", why)

    def none_free(self, holder: str, waited: float) -> None:
        self.counts.none_free += 1
        self._say("none_free", f"{holder} waited {waited:.3g} s and got no desktop", holder=holder)

    def died(self, made: Made, holding: Holding | None) -> None:
        self.counts.died += 1
        whose = f" while {holding.holder} had it" if holding is not None else ""
        self._say("died", f"its X server or its session has ended{whose}", made, holding.holder if holding else None)

    def ending(self, made: Made) -> None:
        self._ready_since.pop(made.id, None)
        self._ending[made.id] = made, time.time()

    def gone(self, made: Made, error: Exception | None = None) -> None:
        self._ending.pop(made.id, None)
        if error is None:
            self.counts.ended += 1
        else:
            self._say("left_over", str(error), made)

    # -- what is told -------------------------------------------------------------------------------------------------

    def events(self) -> list[dict[str, Any]]:
        """The last ones, the oldest first: ``n``, ``time``, ``what``, ``text``, ``display`` and ``holder`` or None."""
        return sorted([*self._usual, *self._failures], key=lambda event: int(event["n"]))

    def desktops(self, free: list[Made], held: list[Holding]) -> list[dict[str, Any]]:
        """Every desktop there is, and those that are coming and going, with state and since when."""
        now, clock = time.time(), time.monotonic()
        leased = [
            {
                **_facts(one.made, "died" if one.dead else "leased", self._ready_since.get(one.made.id)),
                "holder": one.holder,
                "number": one.number,
                "leased_since": round(one.since, 3),
                "until": round(now + one.until - clock, 3),
                "ttl": one.ttl,
                "batches": one.batches,
            }
            for one in held
        ]
        ready = [_facts(made, "ready", self._ready_since.get(made.id)) for made in free]
        coming = [{"state": "starting", "since": round(since, 3)} for since in self._starting.values()]
        going = [_facts(made, "ending", since) for made, since in self._ending.values()]
        return [*leased, *ready, *coming, *going]

    def _say(self, what: str, text: str, made: Made | None = None, holder: str | None = None) -> None:
        kept = self._failures if what in _FAILURES else self._usual
        display = made.display if made is not None else None
        event = {"n": next(self._numbers), "time": round(time.time(), 3), "what": what, "text": text[:400]}
        kept.append({**event, "display": display, "holder": holder})


def _facts(made: Made, state: str, since: float | None) -> dict[str, Any]:
    return {
        "id": made.id,
        "display": made.display,
        "user": made.account.name if made.account is not None else None,
        "state": state,
        "since": round(since, 3) if since is not None else None,
    }
