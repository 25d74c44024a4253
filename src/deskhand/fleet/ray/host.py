"""A host as a Ray actor: one on each machine, detached, started again when it has died.

A restart begins with nothing: the warden of the one before has ended its desktops, and no token of its leases is known.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from deskhand.errors import SetupError
from deskhand.fleet.host import Host
from deskhand.fleet.options import Options
from deskhand.fleet.ways import Answer, answer

#: Seconds after which a watcher is answered though nothing has changed.
_WATCH = 5.0


class HostActor:
    """What runs in the actor. Every call starts the host when it has not begun yet."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        options = {**options, "screen": tuple(options["screen"])}
        self._host = Host(Options(**options), name)
        self._starting: asyncio.Task[None] | None = None
        self._failed: str | None = None

    async def ask(self, method: str, arguments: dict[str, Any]) -> tuple[Answer, bytes | None]:
        self._begin()
        return await answer(self._host, method, arguments)

    async def watch(self, seen: int) -> dict[str, Any]:
        """The host's health, as soon as its version is another than ``seen``; or after a while all the same."""
        self._begin()
        if self._host.version == seen:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WATCH):
                    await self._host.change()
        return await self.health()

    async def health(self) -> dict[str, Any]:
        self._begin()
        health = await self._host.health()
        if self._failed is not None:
            health.update(ok=False, failure=self._failed)
        return health

    async def detail(self) -> dict[str, Any]:
        return {**await self._host.detail(), **await self.health()}

    async def template(self) -> dict[str, Any] | None:
        """What all desktops of the fleet must be like, once the first is up."""
        self._begin()
        return self._host.template

    async def end(self) -> None:
        """End all desktops; returns when they have ended."""
        if self._starting is not None:
            self._starting.cancel()
            with contextlib.suppress(asyncio.CancelledError, SetupError):
                await self._starting
        await self._host.aclose()

    def _begin(self) -> None:
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        try:
            await self._host.start()
        except SetupError as error:
            self._failed = str(error)
