"""A pool on a Ray cluster."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from deskhand.errors import DisplayLost, NoDisplay
from deskhand.fleet.errors import LeaseLost, NoneFree
from deskhand.fleet.pool import PATIENCE, Lease, checked_ttl, who
from deskhand.fleet.ray.cluster import actor, ask, manager_name
from deskhand.fleet.ray.connecting import connect
from deskhand.fleet.ray.watching import whole
from deskhand.fleet.ways import Answer, HostPool, Way

#: Seconds before a manager that does not answer is asked again.
_AGAIN = 0.2


class RayPool(HostPool):
    """The fleet ``name`` on the Ray cluster at ``address`` (``auto``: the one of this machine).

    A lease is asked of the fleet's manager; everything else goes to the desktop's host straight, pictures too.
    """

    def __init__(self, name: str = "default", address: str = "auto") -> None:
        self._name = name
        self._address = address
        self._actors: dict[str, Any] = {}
        #: There has been a fleet of this name: one that is gone may come back, one that never was is a wrong name.
        self._seen = False

    async def acquire(self, ttl: float = 60.0, wait: float = PATIENCE, holder: str | None = None) -> Lease:
        return (await self._acquire(ttl, wait, holder, "acquire"))[0]

    async def acquire_many(
        self, count: int, ttl: float = 60.0, wait: float = PATIENCE, holder: str | None = None
    ) -> list[Lease]:
        """``count`` desktops at once, or as many as can be had in ``wait`` seconds: for a start, when all are wanted.

        Raises:
            NoneFree: There was none.
        """
        return await self._acquire(ttl, wait, holder, "acquire_many", count=count)

    async def health(self) -> dict[str, Any]:
        answer, _ = await self.way(None)("health")
        return whole(answer["value"])

    async def detail(self) -> dict[str, Any]:
        answer, _ = await self.way(None)("detail")
        return whole(answer["value"])

    def way(self, lease: Lease | None) -> Way:
        name = manager_name(self._name) if lease is None else lease.host

        async def way(method: str, **arguments: Any) -> tuple[Answer, bytes | None]:
            return await ask(await self._actor(name), method, arguments)

        return way

    async def _acquire(self, ttl: float, wait: float, holder: str | None, method: str, **more: int) -> list[Lease]:
        """A lease is no input: this is asked again when the manager has died, which Ray starts again."""
        deadline = time.monotonic() + max(0.0, wait)
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                asked = {"holder": holder or who(), "ttl": checked_ttl(ttl), "wait": left, **more}
                answer, _ = await self.way(None)(method, **asked)
                value = answer["value"]
                return [Lease(**one) for one in (value if isinstance(value, list) else [value])]
            except (DisplayLost, LeaseLost, NoDisplay) as error:
                if isinstance(error, NoDisplay) and not self._seen:
                    raise
                self._actors.pop(manager_name(self._name), None)
                if time.monotonic() >= deadline:
                    raise NoneFree(f"the fleet's manager gave no lease within {wait:g} s: {error}") from None
                await asyncio.sleep(min(_AGAIN, left))

    async def _actor(self, name: str) -> Any:
        if name not in self._actors:
            await asyncio.to_thread(connect, self._address)
            self._actors[name] = await asyncio.to_thread(actor, name)
            self._seen = True
        return self._actors[name]
