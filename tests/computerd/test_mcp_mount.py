"""MCP over HTTP, by the official client: the same three tools, behind the same token, each client in its turn."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.computerd.daemons import RunningDaemon

pytest.importorskip("mcp")
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

LOOK: dict[str, Any] = {"actions": [{"action": "screenshot"}]}


@asynccontextmanager
async def client(running: RunningDaemon, name: str = "a-test", mode: Any = "auto") -> AsyncIterator[Client]:
    import httpx2

    headers = {"Authorization": f"Bearer {running.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        transport = streamable_http_client(f"{running.url}/mcp", http_client=http)
        info = types.Implementation(name=name, version="1")
        async with Client(transport, client_info=info, mode=mode) as connected:
            yield connected


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(bounded())


async def use(connected: Client) -> None:
    tools = (await connected.list_tools()).tools
    assert [tool.name for tool in tools] == ["computer_act", "computer_screenshot", "computer_apps"]
    result = await connected.call_tool("computer_act", {"actions": [{"action": "move", "x": 9, "y": 9}]})
    assert not result.is_error, result
    (image,) = [part for part in result.content if isinstance(part, types.ImageContent)]
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    apps = await connected.call_tool("computer_apps", {})
    assert apps.is_error
    assert "no launcher" in str(apps.content)


def test_the_tools_over_http(running: RunningDaemon) -> None:
    async def work() -> None:
        for name in ("first", "second"):  # one with a session of MCP's leaves the desktop at its end
            async with client(running, name, "legacy") as connected:
                await use(connected)
                with running.client() as http:
                    assert http.post("/lease", json={"holder": "x"}).json()["holder"] == name
                async with client(running, "another", "legacy") as other:
                    refused = await other.call_tool("computer_act", LOOK)
                    assert refused.is_error
                    assert name in str(refused.content)
        async with client(running) as connected:
            await use(connected)

    run(work)


def test_without_the_token(running: RunningDaemon) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with running.client(Authorization="", Accept="application/json, text/event-stream") as http:
        assert http.post("/mcp", json=message).status_code == 401
