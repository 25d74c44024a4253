"""The three tools for MCP clients elsewhere, at ``/mcp``: Streamable HTTP, by the official SDK.

MCP specification: Transports, Streamable HTTP. The token, Host and Origin have been looked at before (``auth``). Each
client has a session of its own, and takes its turn at the desktop with a lease.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from deskhand.computerd.in_process import InProcess
from deskhand.computerd.served import ServedDesktop
from deskhand.errors import DeskhandError
from deskhand.extras import needs
from deskhand.session import Session
from deskhand.tools import Launching, instructions
from deskhand.turns import LeaseTerms

with needs("MCP over HTTP", "mcp", "mcp", "mcp_types"):
    import mcp_types as types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from deskhand.mcp import ComputerServer

#: Clients whose sessions are kept; of more, the one that asked longest ago is closed.
MOST_CLIENTS = 32
#: Seconds after its last call for which a client keeps the desktop: of one that goes without a word nothing is heard.
TTL = 120.0


class McpMount:
    """An ASGI app for ``/mcp``; ``info`` is what ``GET /info`` gives beside what the display itself tells."""

    def __init__(self, served: ServedDesktop, info: Mapping[str, Any]) -> None:
        self._served = served
        self._info = info
        launching: Launching = info["launching"]
        self._launching = launching
        self._clients: dict[str, ComputerServer] = {}
        self._manager = StreamableHTTPSessionManager(
            Server(
                "deskhand",
                version=version("deskhand"),
                title="Deskhand: a Linux desktop",
                instructions=instructions(launching),
                on_list_tools=self._list_tools,
                on_call_tool=self._call_tool,
            ),
            max_sessions=4 * MOST_CLIENTS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)
        if scope["type"] == "http" and scope["method"] == "DELETE":  # the client ends its session, and its turn
            client = self._clients.pop(Headers(scope=scope).get("mcp-session-id", ""), None)
            if client is not None:
                await _close(client)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The app answers inside; at the end its clients' sessions are closed."""
        async with self._manager.run():
            try:
                yield
            finally:
                clients, self._clients = list(self._clients.values()), {}
                for client in clients:
                    await _close(client)

    async def _list_tools(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return await (await self._client(ctx)).list_tools(ctx, params)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        return await (await self._client(ctx)).call_tool(ctx, params)

    async def _client(self, ctx: ServerRequestContext[Any]) -> ComputerServer:
        """The server of the client that asks: of its MCP session, or where there are none of the name it gives."""
        parameters = ctx.session.client_params
        name = parameters.client_info.name if parameters is not None else "mcp"
        request: Any = ctx.request
        key = (request.headers.get("mcp-session-id") if request is not None else None) or f"named {name}"
        client = self._clients.pop(key, None)
        if client is None:
            shown = "".join(one for one in name if one.isprintable())[:60] or "mcp"
            backend = InProcess(self._served, self._info, shown)
            session = Session(backend, name=shown, lease=LeaseTerms(ttl=TTL))
            client = ComputerServer(session, self._launching)
        self._clients[key] = client  # used last, dropped last
        while len(self._clients) > MOST_CLIENTS:
            await _close(self._clients.pop(next(iter(self._clients))))
        return client


async def _close(client: ComputerServer) -> None:
    with contextlib.suppress(DeskhandError):
        await client.aclose()
        await client.session.aclose()
