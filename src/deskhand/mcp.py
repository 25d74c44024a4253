"""The three tools over the Model Context Protocol, by its official SDK (``mcp`` 2.3).

::

    asyncio.run(serve_stdio(Session(LocalDisplay(":71"), name="mcp", lease=LeaseTerms())))

One server process serves one client and has one session. The session takes the desktop at its first call and keeps it
until some minutes after its last one, so that a client that is left open keeps nobody out. What the session's policy
wants a person to allow is asked through the client, see ``mcp_approval``.

MCP specification: Tools (annotations, structured content), Progress, Cancellation.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal, cast

from deskhand.errors import DeskhandError
from deskhand.extras import needs
from deskhand.mcp_approval import ClientApproval
from deskhand.session import Session
from deskhand.standard_streams import StandardInput, StandardOutput
from deskhand.tools import (
    DEFAULT_LIMITS,
    ComputerTools,
    Launching,
    Tool,
    ToolAnswer,
    instructions,
    limits_for,
    refusal,
    tools,
)

with needs("The MCP server", "mcp", "mcp", "mcp_types"):
    import mcp_types as types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server

Structured = Literal["auto", "always", "never"]

#: Seconds between two progress notes: clients give up on a call that is silent for long.
_PROGRESS_EVERY = 2.0
#: Clients that show their model the structured content alone and drop the picture beside it
#: (anthropics/claude-code issues 54737 and 79944).
_DROPS_PICTURES = ("claude-code",)
_TITLES = {
    "computer_act": "Act on the desktop",
    "computer_screenshot": "Look at the desktop",
    "computer_apps": "List applications",
}
_ACT_RESULT = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "sent": {"type": "string", "enum": ["none", "part", "all", "unknown"]},
        "results": {"type": "array", "items": {"type": "object"}},
        "error": {"type": "string"},
        "settled": {"type": "boolean"},
        "picture": {"type": "object"},
    },
    "required": ["ok", "sent", "results"],
}
_APP = {"type": "object", "properties": {"name": {"type": "string"}, "id": {"type": "string"}}}
_APPS_RESULT = {"type": "object", "properties": {"apps": {"type": "array", "items": _APP}, "error": {"type": "string"}}}


class ComputerServer:
    """An MCP server for one client at one desktop.

    Args:
        session: The desktop, for as long as the server runs; whoever made it closes it.
        launching: What is known of opening applications there.
        structured: Whether answers carry structured content beside text and picture; "auto": not for clients that
            would then not show the picture to their model.
    """

    def __init__(self, session: Session, launching: Launching = "by_name", structured: Structured = "auto") -> None:
        self.session = session
        self.structured: Structured = structured
        self._tools = ComputerTools(session, launching, DEFAULT_LIMITS)
        self._known_client = ""
        self._approval = ClientApproval(session)
        self.server: Server[Any] = Server(
            "deskhand",
            version=version("deskhand"),
            title="Deskhand: a Linux desktop",
            instructions=instructions(launching),
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
        )

    async def list_tools(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        structured = self._sends_structured(_client_name(ctx))
        return types.ListToolsResult(tools=[_described(tool, structured) for tool in tools()])

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        client = _client_name(ctx)
        if client != self._known_client:
            self._known_client, self._tools.limits = client, limits_for(client)
        structured = self._sends_structured(client)
        async with _progress(ctx, params.name) as doing:
            try:
                approved = await self._approve(ctx, params, doing)
            except DeskhandError as error:
                return _result(refusal(error), structured)
            if isinstance(approved, types.InputRequiredResult):
                return approved
            answer = await self._tools.call(params.name, params.arguments or {}, approved)
        return _result(answer, structured)

    async def _approve(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams, doing: _Doing
    ) -> bool | types.InputRequiredResult:
        """Whether a person has allowed the call; or the question that the client has to bring an answer to.

        Raises:
            DeskhandError: It is not allowed, or will be refused.
        """
        allowed = await self._approval.resume(params)
        if self.session.approve is not None:
            return False  # there is somebody to ask beside the client: the session does it
        asks = await self._tools.asks(params.name, params.arguments or {})
        # What has changed on the screen since the person was asked is asked for by itself.
        known = {(ask.call, ask.verb, ask.source) for ask in allowed}
        wanted = [ask for ask in asks if (ask.call, ask.verb, ask.source) not in known]
        if not wanted:
            return bool(asks)
        doing.what = "waits for a person to allow it"
        question = await self._approval.ask(ctx, params, wanted)
        doing.what = ""
        return True if question is None else question

    async def aclose(self) -> None:
        """Give up what waits for a person. The session is closed by whoever made it."""
        await self._approval.aclose()

    def _sends_structured(self, client: str) -> bool:
        if self.structured == "auto":
            return client.casefold() not in _DROPS_PICTURES
        return self.structured == "always"


async def serve_stdio(session: Session, structured: Structured = "auto") -> None:
    """Serve one client over standard input and output until it closes them; the session is closed then."""
    try:
        launching: Launching = "by_name"
        # Without a display yet there may be one at the first call, which then says what is wrong.
        with contextlib.suppress(DeskhandError):
            launching = (await session.backend.info()).get("launching", "by_name")
        computer = ComputerServer(session, launching, structured)
        served = computer.server
        # The SDK's own streams wait for a read or a write that nothing ends, also when the process is told to end.
        output = StandardOutput()
        lines = _messages(StandardInput(), output)
        async with stdio_server(cast(Any, lines), cast(Any, output)) as (reading, writing):
            try:
                await served.run(reading, writing, served.create_initialization_options())
            finally:
                await computer.aclose()
    finally:
        await session.aclose()


async def _messages(lines: AsyncIterable[str], output: StandardOutput) -> AsyncIterator[str]:
    """The lines that are messages. Any other is answered here: the SDK leaves who sent it waiting.

    Source: JSON-RPC 2.0 Specification, section 5.1, Error object.
    """
    async for line in lines:
        if not line.strip():
            continue
        try:
            types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            with contextlib.suppress(OSError):  # nobody reads any more, and soon nobody writes
                await output.write(json.dumps(_no_message(line)) + "\n")
        else:
            yield line


def _no_message(line: str) -> dict[str, Any]:
    """What the sender of a line is told that is no message."""
    code, text, number = types.PARSE_ERROR, "Parse error: a message is one line of JSON", None
    with contextlib.suppress(ValueError, RecursionError):
        said = json.loads(line)
        code, text = types.INVALID_REQUEST, "Invalid Request: a message is a JSON-RPC 2.0 object with a method"
        if isinstance(said, dict) and isinstance(said.get("id"), (str, int)) and not isinstance(said["id"], bool):
            number = said["id"]
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def _described(tool: Tool, structured: bool) -> types.Tool:
    described = types.Tool(
        name=tool.name,
        title=_TITLES[tool.name],
        description=tool.description,
        input_schema=tool.parameters,
        annotations=types.ToolAnnotations(
            title=_TITLES[tool.name],
            read_only_hint=tool.read_only,
            # What a click does is the application's business: it may delete, and it may be on the internet.
            destructive_hint=not tool.read_only,
            idempotent_hint=tool.read_only,
            open_world_hint=not tool.read_only,
        ),
    )
    if structured:
        described.output_schema = _APPS_RESULT if tool.name == "computer_apps" else _ACT_RESULT
    return described


def _result(answer: ToolAnswer, structured: bool) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=answer.text)]
    if answer.picture is not None:
        data = base64.b64encode(answer.picture).decode("ascii")
        content.append(types.ImageContent(type="image", data=data, mime_type=answer.mime_type))
    if not structured:
        return types.CallToolResult(content=content, is_error=answer.is_error)
    return types.CallToolResult(content=content, structured_content=answer.data, is_error=answer.is_error)


def _client_name(ctx: ServerRequestContext[Any]) -> str:
    params = ctx.session.client_params
    return params.client_info.name if params is not None else ""


@dataclass
class _Doing:
    """What a running call is about, for who waits for it."""

    what: str = ""


@contextlib.asynccontextmanager
async def _progress(ctx: ServerRequestContext[Any], name: str) -> AsyncIterator[_Doing]:
    """Tell a client that asked for it that the call is still running; it asked by a progress token in its request."""
    began = time.monotonic()
    doing = _Doing()

    async def tell() -> None:
        while True:
            elapsed = time.monotonic() - began
            await ctx.session.report_progress(elapsed, None, f"{name} {doing.what}".strip() + f": {elapsed:.0f} s")
            await asyncio.sleep(_PROGRESS_EVERY)

    telling = asyncio.create_task(tell())
    try:
        yield doing
    finally:
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await telling
