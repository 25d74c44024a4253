"""The MCP server, driven by the official client as its users drive it: a process, over standard input and output."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import signal
import struct
import sys
import termios
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from deskhand.backends.lease import DisplayLease
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer, xvfb
from tests.commands import PROGRAM, deskhand, environment
from tests.own_desktop import applications, desktop, own  # noqa: F401
from tests.probes import RawWindow, pressed
from tests.toolkits import toolkit_window
from tests.x_windows import command, make_entry

pytest.importorskip("mcp")
from mcp import Client, StdioServerParameters, types

pytestmark = pytest.mark.slow

LOOK: dict[str, Any] = {"actions": [{"action": "screenshot"}]}


@asynccontextmanager
async def client(
    server: XServer | str, *options: str, env: dict[str, str] | None = None, name: str = "a-test", mode: Any = "auto"
) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=PROGRAM,
        args=["mcp", "--display", str(server), *options],
        env=env or environment(None if isinstance(server, str) else server),
    )
    info = types.Implementation(name=name, version="1")
    async with Client(parameters, client_info=info, read_timeout_seconds=60, mode=mode) as connected:
        yield connected


def text(result: types.CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


def pictures(result: types.CallToolResult) -> list[bytes]:
    images = [part for part in result.content if isinstance(part, types.ImageContent)]
    assert {image.mime_type for image in images} <= {"image/png"}
    return [base64.b64decode(image.data) for image in images]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)  # the X server tells nobody what is pressed


def run(work: Awaitable[None]) -> None:
    async def main() -> None:
        await work

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_what_the_client_is_told(display: XServer, mode: str) -> None:
    async def work() -> None:
        async with client(display, mode=mode) as connected:
            assert connected.server_info is not None
            assert connected.server_info.name == "deskhand"
            assert "computer_act runs a batch" in (connected.instructions or "")
            assert "launch action" in (connected.instructions or "")
            tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
            assert list(tools) == ["computer_act", "computer_screenshot", "computer_apps"]
            hints = {name: tool.annotations for name, tool in tools.items()}
            told = {name: hint and (hint.read_only_hint, hint.destructive_hint) for name, hint in hints.items()}
            assert told["computer_act"] == (False, True)
            assert told["computer_screenshot"] == told["computer_apps"] == (True, False)
            assert all(tool.output_schema for tool in tools.values())

    run(work())


def test_all_three_tools(desktop: XServer, applications: Path) -> None:  # noqa: F811
    make_entry(applications, "notes", command("--title", "Notes"), name="Notes")

    async def work() -> None:
        async with client(desktop, env=own(desktop, applications)) as connected:
            listed = await connected.call_tool("computer_apps")
            assert text(listed) == "Notes (notes)"
            assert listed.structured_content == {"apps": [{"name": "Notes", "id": "notes"}]}

            opened = await connected.call_tool("computer_act", {"actions": [{"action": "launch", "app": "Notes"}]})
            assert not opened.is_error
            assert opened.structured_content["results"][0]["window"]["title"] == "Notes"
            assert "base64" not in opened.structured_content["picture"]
            assert opened.structured_content["picture"]["width"] == 1280
            assert "0 launch ok" in text(opened)
            (picture,) = pictures(opened)
            assert picture.startswith(b"\x89PNG")

            looked = await connected.call_tool("computer_screenshot", {"region": [0, 0, 640, 400]})
            assert looked.structured_content["picture"]["region"] == [0, 0, 640, 400]
            assert "positions are still pixels of the whole screen's 1280x800 picture" in text(looked)
            assert pictures(looked) != [picture]

    run(work())


def test_a_refusal_is_an_answer_that_says_what_to_do(display: XServer) -> None:
    async def work() -> None:
        async with client(display, "--max-actions", "3") as connected:
            with RawWindow(display) as window:
                click = {"action": "click", "x": 10, "y": 10}
                for wrong, words in (
                    ([click, {"action": "click", "x": 1280, "y": 10}], "outside the 1280x800 picture"),
                    ([click, {"action": "key", "keys": "ctrl+nosuch"}], "nosuch"),
                    ([click, {"action": "clik"}], "did you mean 'click'"),
                    ([click] * 4, "the run has 3 of 3 left"),
                    ([], "1 to 100 actions"),
                    ("click", "list of actions"),
                ):
                    refused = await connected.call_tool("computer_act", {"actions": wrong})
                    assert refused.is_error
                    assert words in text(refused)
                    assert "nothing was sent" in text(refused)
                    assert refused.structured_content["sent"] == "none"
                assert window.all("press") == []
                done = await connected.call_tool("computer_act", {"actions": [click]})
                assert not done.is_error
                assert [event.at for event in window.all("press")] == [(10, 10)]
            unknown = await connected.call_tool("computer_click", {})
            assert unknown.is_error
            assert "there is no tool 'computer_click'" in text(unknown)

    run(work())


def test_positions_are_pixels_of_the_picture_that_was_given() -> None:
    async def work(server: XServer) -> None:
        async with client(server) as connected:
            with RawWindow(server) as window:
                picture = (await connected.call_tool("computer_act", LOOK)).structured_content["picture"]
                assert picture["screen"] == [2560, 1440]
                assert 1_000_000 < picture["width"] * picture["height"] <= 1_150_000
                await connected.call_tool("computer_screenshot", {"region": [0, 0, 100, 100]})
                corner = {"action": "click", "x": picture["width"] - 1, "y": picture["height"] - 1}
                assert not (await connected.call_tool("computer_act", {"actions": [corner]})).is_error
                assert [event.at for event in window.all("press")] == [(2559, 1439)]

    with xvfb(2560, 1440) as server:
        run(work(server))


@pytest.mark.parametrize(
    "actions",
    [
        [{"action": "hold_key", "keys": "ctrl+shift+k", "seconds": 50}],
        [{"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}, {"action": "key", "keys": "a"}],
    ],
)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cancelled_call_leaves_nothing_pressed(
    openbox_display: XServer, tmp_path: Path, actions: list[dict[str, Any]], mode: str
) -> None:
    async def work() -> None:
        async with client(openbox_display, mode=mode) as connected:
            call = asyncio.create_task(connected.call_tool("computer_act", {"actions": actions}))
            await until(lambda: pressed(openbox_display) or call.done())
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: not pressed(openbox_display))
            after = await connected.call_tool("computer_act", {"actions": [{"action": "move", "x": 5, "y": 6}]})
            assert not after.is_error
            assert pressed(openbox_display) == []

    with toolkit_window(openbox_display, "tk", tmp_path / "log"):
        run(work())


HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@asynccontextmanager
async def server_process(display: XServer, call: dict[str, Any]) -> AsyncIterator[asyncio.subprocess.Process]:
    """The server, sent one call by hand; nobody reads what it answers."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", "--display", display.display, env=environment(display),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=1024,
    )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in (HELLO, READY, call)))
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(20):
        assert b"Traceback" not in await process.stderr.read()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, None])
def test_the_end_of_the_server_leaves_nothing_pressed(display: XServer, how: signal.Signals | None) -> None:
    """Told to end, killed, or left by its client in the middle of a batch."""
    actions = [{"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}]

    async def work() -> None:
        async with server_process(display, request("computer_act", actions=actions)) as process:
            await until(lambda: pressed(display))
            if how is None:
                assert process.stdin is not None
                process.stdin.close()
            else:
                process.send_signal(how)
            await ended(process)
        if how is signal.SIGKILL:
            assert deskhand(display, "act", "move", "1", "1").status == 0  # the next of ours puts it right
        assert pressed(display) == []

    run(work())


def test_what_is_no_message_is_answered_and_the_server_goes_on(display: XServer) -> None:
    """JSON-RPC 2.0 Specification, section 5.1."""
    said = (
        (b"garbage", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b"[" * 5000, None, -32700),
        (b"[]", None, -32600),
        (b'{"jsonrpc": "2.0", "id": 5}', 5, -32600),
        (b'{"jsonrpc": "1.0", "id": "x", "method": "ping"}', "x", -32600),
    )

    async def work() -> None:
        async with server_process(display, {"jsonrpc": "2.0", "id": 2, "method": "ping"}) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"\n".join([b"", *(line for line, _, _ in said), b""]))
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"}).encode() + b"\n")
            told = b""
            async with asyncio.timeout(20):
                while b'"id":9,' not in told or not told.endswith(b"\n"):
                    told += await process.stdout.read(1024)
            answers = [json.loads(line) for line in told.splitlines()]
            errors = [(one["id"], one["error"]["code"]) for one in answers if "error" in one]
            assert errors == [(number, code) for _, number, code in said]
            assert answers[-1]["result"] == {}

    run(work())


def test_it_can_be_ended_while_nobody_reads_its_answer(display: XServer) -> None:
    """A picture that no pipe holds: the write does not return."""

    async def work() -> None:
        async with server_process(display, request("computer_screenshot")) as process:
            transport: Any = process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
            pipe = transport.get_extra_info("pipe").fileno()
            await until(lambda: waiting_in(pipe) >= 1 << 16)
            process.send_signal(signal.SIGTERM)
            await ended(process)

    with Connection.open(display.display) as conn:
        noise = os.urandom(64 * 64 * 4)
        fill_with(conn, noise, 64)
        run(work())


def waiting_in(pipe: int) -> int:
    """Bytes in a pipe that nobody has read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def fill_with(conn: Connection, pixels: bytes, size: int) -> None:
    """Cover the screen with squares of these pixels, as the background of the root window."""
    pixmap, context = conn.new_id(), conn.new_id()
    conn.send(53, 24, struct.pack("=IIHH", pixmap, conn.root, size, size))  # CreatePixmap
    conn.send(55, 0, struct.pack("=III", context, pixmap, 0))  # CreateGC
    conn.send(72, 2, struct.pack("=IIHHhhBBxx", pixmap, context, size, size, 0, 0, 0, 24) + pixels)  # PutImage
    conn.send(2, 0, struct.pack("=III", conn.root, 1, pixmap))  # ChangeWindowAttributes
    conn.send(61, 0, struct.pack("=IhhHH", conn.root, 0, 0, 0, 0))  # ClearArea
    conn.sync()


def test_a_second_client_is_refused_with_the_name_of_the_first_and_can_queue(display: XServer) -> None:
    async def work() -> None:
        async with client(display, "--name", "third", "--queue", "30") as third:
            async with client(display, "--name", "assistant") as first:
                assert not (await first.call_tool("computer_act", LOOK)).is_error
                async with client(display, "--name", "other") as second:
                    refused = await second.call_tool("computer_act", LOOK)
                    assert refused.is_error
                    assert "in use by session 'assistant'" in text(refused)
                waiting = asyncio.create_task(third.call_tool("computer_screenshot"))
                assert not (await first.call_tool("computer_screenshot")).is_error
                assert not waiting.done()
            assert not (await waiting).is_error

    run(work())


def test_a_server_that_nobody_has_called_keeps_nobody_out(display: XServer) -> None:
    async def work() -> None:
        lease = DisplayLease(display.display, None, "other")
        async with client(display) as connected:
            await connected.list_tools()
            await lease.take(60)
            await lease.release()

    run(work())


def test_progress_is_told_to_who_asks(display: XServer) -> None:
    async def work() -> None:
        told: list[tuple[float, str | None]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, message))

        async with client(display) as connected:
            await connected.call_tool(
                "computer_act", {"actions": [{"action": "wait", "seconds": 2.5}]}, progress_callback=note
            )
        assert len(told) >= 2
        assert told == sorted(told)
        assert told[0][1] is not None
        assert told[0][1].startswith("computer_act")

    run(work())


def test_a_client_that_would_drop_the_picture_gets_no_structured_content(display: XServer) -> None:
    async def work() -> None:
        async with client(display, name="claude-code") as connected:
            assert not any(tool.output_schema for tool in (await connected.list_tools()).tools)
            looked = await connected.call_tool("computer_screenshot")
            assert looked.structured_content is None
            assert len(pictures(looked)) == 1
        async with client(display, "--structured", "always", name="claude-code") as connected:
            assert (await connected.call_tool("computer_screenshot")).structured_content is not None
        async with client(display, "--structured", "never") as connected:
            assert (await connected.call_tool("computer_screenshot")).structured_content is None

    run(work())


def test_without_a_display_the_call_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        async with client(":987") as connected:
            assert len((await connected.list_tools()).tools) == 3
            refused = await connected.call_tool("computer_act", LOOK)
            assert refused.is_error
            assert "no X server listens on display :987" in text(refused)

    run(work())


@pytest.mark.parametrize("name", ["claude", "codex", "cursor", "vscode"])
def test_the_configuration_starts_this_server(display: XServer, name: str) -> None:
    printed = deskhand(display, "mcp-config", "--client", name, "--display", display.display).text
    if name == "codex":
        server = tomllib.loads(printed)["mcp_servers"]["deskhand"]
    else:
        server = json.loads(printed)["servers" if name == "vscode" else "mcpServers"]["deskhand"]

    async def work() -> None:
        parameters = StdioServerParameters(command=server["command"], args=server["args"])
        async with Client(parameters) as connected:
            assert not (await connected.call_tool("computer_screenshot")).is_error

    run(work())


def test_a_configuration_for_the_screen_of_a_person(display: XServer) -> None:
    arguments = ("mcp-config", "--client", "claude", "--display", display.display, "--own-screen")
    server = json.loads(deskhand(display, *arguments).text)["mcpServers"]["deskhand"]

    async def work() -> None:
        parameters = StdioServerParameters(command=server["command"], args=server["args"])
        async with Client(parameters) as connected:
            assert not (await connected.call_tool("computer_screenshot")).is_error
            refused = await connected.call_tool("computer_apps")
            assert refused.is_error
            assert "Super key" in text(refused)
            asked = await connected.call_tool("computer_act", {"actions": [{"action": "click", "x": 5, "y": 5}]})
            assert asked.is_error
            assert "person" in text(asked)

    run(work())


def test_another_client_is_refused(display: XServer) -> None:
    refused = deskhand(display, "mcp-config", "--client", "unknown")
    assert refused.status == 2
    assert "unknown" in refused.error
