"""What the manager of a fleet on Ray has seen itself, beside what its hosts tell it."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any

from deskhand.fleet.record import WAIT_BOUNDS, Histogram
from deskhand.fleet.ways import pool_health


@dataclass
class Seen:
    """Since it began. ``recoveries`` are counts of hosts that Ray started again and of machines that were lost."""

    wait_seconds: Histogram = field(default_factory=lambda: Histogram(WAIT_BOUNDS))
    none_free: int = 0
    recoveries: collections.Counter[str] = field(
        default_factory=lambda: collections.Counter({"host_restarted": 0, "machine_lost": 0})
    )

    def recovered(self, cause: str) -> None:
        self.recoveries[cause] += 1

    def as_dict(self) -> dict[str, Any]:
        waits = self.wait_seconds.as_dict()
        return {"wait_seconds": waits, "none_free": self.none_free, "recoveries": dict(self.recoveries)}


def whole(told: dict[str, Any]) -> dict[str, Any]:
    """The health of the pool from what its manager tells."""
    rest = {name: told[name] for name in ("waiting", "given", "manager")}
    return {**pool_health(told["hosts"]), **rest}
