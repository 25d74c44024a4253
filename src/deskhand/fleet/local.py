"""A pool of this process, without an engine: its desktops are on this machine, and end with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from deskhand.backends.base import Outcome
from deskhand.fleet.host import Host
from deskhand.fleet.making import Maker
from deskhand.fleet.options import Options
from deskhand.fleet.pool import Lease
from deskhand.fleet.ways import Answer, HostPool, Way


class LocalPool(HostPool):
    """Desktops that this process makes.

    ::

        async with LocalPool(Options(size=4, spares=1, session="openbox")) as pool:
            async with pool.lease(ttl=60) as desktop:
                ...

    As root each has an account of its own. ``progress`` is called with how many are ready, of how many, while the pool
    starts.
    """

    def __init__(
        self,
        options: Options | None = None,
        *,
        name: str = "local",
        maker: Maker | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._options = options or Options()
        self._name = name
        self._maker = maker
        self._progress = progress
        self._host: Host | None = None

    @property
    def host(self) -> Host:
        """The owner of the desktops, once the pool has been entered."""
        if self._host is None:
            raise RuntimeError("this pool has not begun: use it with async with")
        return self._host

    async def __aenter__(self) -> Self:
        """Raises SetupError: no desktop came up; says why."""
        self._host = Host(self._options, self._name, self._maker)
        try:
            await self._host.start(self._progress)
        except BaseException:
            await self._host.aclose()
            raise
        return self

    async def aclose(self) -> None:
        if self._host is not None:
            await self._host.aclose()

    def way(self, lease: Lease | None) -> Way:
        return _Direct(self.host)


class _Direct:
    """A host of this process, asked directly: its errors are raised as they are."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def __call__(self, method: str, **arguments: Any) -> tuple[Answer, bytes | None]:
        value = await getattr(self._host, method)(**arguments)
        if isinstance(value, Outcome):
            return value.answer, value.picture
        return {"value": vars(value) if isinstance(value, Lease) else value}, None
