"""``deskhand mcp``: the tools for a client of the Model Context Protocol; ``mcp-config``: what to tell the client."""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from deskhand.cli.approval import ApproveOption, AskOption, approval
from deskhand.cli.elsewhere import TokenFileOption, UrlOption, place_of
from deskhand.cli.output import DisplayOption, XauthorityOption, fail
from deskhand.cli.own_screen import OwnScreenOption, backend_at, policy_of


class Client(StrEnum):
    """The clients whose configuration is known."""

    claude = "claude"
    codex = "codex"
    cursor = "cursor"
    vscode = "vscode"


class Structured(StrEnum):
    """When answers carry structured content."""

    auto = "auto"
    always = "always"
    never = "never"


#: Where each client looks, by its own documentation.
_WHERE = {
    Client.claude: "claude_desktop_config.json, or .mcp.json in a project",
    Client.codex: "~/.codex/config.toml",
    Client.cursor: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
    Client.vscode: ".vscode/mcp.json",
}


def add_to(app: typer.Typer) -> None:
    app.command("mcp")(mcp)
    app.command("mcp-config")(mcp_config)


def mcp(
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    own_screen: OwnScreenOption = False,
    max_actions: Annotated[int | None, typer.Option("--max-actions", min=1, help="The budget of actions.")] = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Told to others who want the desktop.")] = "mcp",
    queue: Annotated[
        float,
        typer.Option("--queue", metavar="SECONDS", min=0, max=3600, help="To wait while another has the desktop."),
    ] = 0.0,
    structured: Annotated[
        Structured,
        typer.Option("--structured", help="Structured content beside the picture; auto: where the client shows both."),
    ] = Structured.auto,
    ask: AskOption = None,
    approve: ApproveOption = False,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="DIR", help="Record the session there.")] = None,
) -> None:
    """Serve the desktop to an MCP client over standard input and output.

    What --ask names is asked through the client, where it can show its user a question; else it is refused.
    """
    import asyncio

    try:
        from deskhand.mcp import serve_stdio
    except ImportError as error:
        fail(str(error), 1)
    from deskhand.session import Session
    from deskhand.trace import TraceRecorder
    from deskhand.turns import LeaseTerms

    elsewhere = place_of(url, token_file, display)

    async def serve(recorder: TraceRecorder | None) -> None:
        terms = LeaseTerms(wait=queue)
        asks: dict[str, Any] = {"policy": policy_of(ask, own_screen), "approve": approval(True) if approve else None}
        backend = backend_at(display, xauthority, own_screen, elsewhere)
        session = Session(backend, max_actions, recorder, name=name, lease=terms, **asks)
        await serve_stdio(session, structured.value)

    if trace is None:
        asyncio.run(serve(None))
        return
    with TraceRecorder(trace, goal="what an MCP client wanted", facts={"way in": "MCP"}) as recorder:
        asyncio.run(serve(recorder))
        recorder.finish("stopped", "The client ended.")


def mcp_config(
    client: Annotated[Client, typer.Option("--client", help="Which client.")],
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    own_screen: OwnScreenOption = False,
) -> None:
    """Print what goes into an MCP client's configuration."""
    if sys.stdout.isatty():
        print(f"for {_WHERE[client]}:", file=sys.stderr)
    display, xauthority = display or os.environ.get("DISPLAY"), xauthority or os.environ.get("XAUTHORITY")
    print(_configuration(client, display, xauthority, own_screen))


def _configuration(client: Client, display: str | None, xauthority: str | None, own_screen: bool) -> str:
    arguments = ["mcp", *(["--own-screen"] if own_screen else [])]
    if display:
        arguments += ["--display", display]
    if xauthority:
        arguments += ["--xauthority", os.path.abspath(xauthority)]
    command = _command()
    if client is Client.codex:  # TOML's basic strings are JSON's
        return "\n".join(
            (
                "[mcp_servers.deskhand]",
                f"command = {json.dumps(command)}",
                f"args = {json.dumps(arguments)}",
                # A batch may take some minutes.
                "tool_timeout_sec = 300",
            )
        )
    server: dict[str, Any] = {"command": command, "args": arguments}
    if client is Client.vscode:
        return json.dumps({"servers": {"deskhand": {"type": "stdio", **server}}}, indent=2)
    return json.dumps({"mcpServers": {"deskhand": server}}, indent=2)


def _command() -> str:
    """This ``deskhand``, by its path: a client started by the desktop seldom has it on PATH."""
    beside = Path(sys.executable).with_name("deskhand")
    return str(beside) if beside.exists() else os.path.abspath(sys.argv[0])
