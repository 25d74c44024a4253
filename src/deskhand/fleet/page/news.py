"""How a fleet is now, as it was last told, and how it was."""

from __future__ import annotations

import asyncio
import collections
import time
from typing import Any

#: Seconds between two samples of how it was, and how many are kept: an hour.
EVERY, KEPT = 5.0, 720
#: Of what a sample holds the sum over all hosts, after its time.
SAMPLED = ("leased", "ready", "coming", "waiting", "leases", "resets", "failed", "refused", "died", "expired", "fenced")


class News:
    """Of one fleet; for one event loop."""

    def __init__(self) -> None:
        self.health: dict[str, Any] | None = None
        self.version = 0
        self.over = False
        #: Samples ever taken; the last ``KEPT`` are there.
        self.taken = 0
        self._samples: collections.deque[list[float]] = collections.deque(maxlen=KEPT)
        self._changed = asyncio.Event()

    def tell(self, health: dict[str, Any]) -> None:
        """It is so now."""
        self.health = health
        now = time.time()
        if not self._samples or now - self._samples[-1][0] >= EVERY - 0.25:
            self._samples.append([round(now, 1), *(_sum(health, name) for name in SAMPLED)])
            self.taken += 1
        self._announce()

    def end(self) -> None:
        """Nothing more is told."""
        self.over = True
        self._announce()

    def since(self, taken: int) -> dict[str, Any]:
        """What somebody is shown who has been shown the first ``taken`` samples."""
        new = min(self.taken - taken, len(self._samples))
        samples = list(self._samples)[len(self._samples) - new :]
        return {"now": round(time.time(), 3), "health": self.health, "samples": samples, "sampled": SAMPLED}

    async def change(self) -> None:
        await self._changed.wait()

    def _announce(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()


def _sum(health: dict[str, Any], name: str) -> float:
    if name == "waiting":
        return float(health["waiting"])
    return float(sum(host.get(name, 0) for host in health["hosts"]))
