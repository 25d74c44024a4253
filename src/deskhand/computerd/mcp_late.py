"""``/mcp``, imported when the first MCP client comes: the SDK takes seconds and a third of the memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from deskhand.computerd.problems import Problem
from deskhand.computerd.served import ServedDesktop

if TYPE_CHECKING:
    from deskhand.computerd.mcp_mount import McpMount


class LateMcp:
    """An ASGI app; see ``McpMount``."""

    def __init__(self, served: ServedDesktop, info: Mapping[str, Any]) -> None:
        self._served = served
        self._info = info
        self._starting: asyncio.Task[McpMount] | None = None
        self._ending = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        try:
            mount = await asyncio.shield(self._starting)
        except ImportError as error:
            await Problem("unsupported", str(error)).response()(scope, receive, send)
            return
        await mount(scope, receive, send)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The app answers inside."""
        try:
            yield
        finally:
            self._ending.set()
            if self._running is not None:
                await self._running

    async def _start(self) -> McpMount:
        mount = await asyncio.to_thread(self._make)
        ready = asyncio.Event()
        self._running = asyncio.create_task(self._run(mount, ready))
        await ready.wait()
        return mount

    def _make(self) -> McpMount:
        from deskhand.computerd.mcp_mount import McpMount

        return McpMount(self._served, self._info)

    async def _run(self, mount: McpMount, ready: asyncio.Event) -> None:
        # The SDK's task group is left by the task that has entered it.
        async with mount.running():
            ready.set()
            await self._ending.wait()
