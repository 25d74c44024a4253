"""E2B without E2B: its API for sandboxes, and envd's for processes, whose "sandbox" runs commands on this machine.

The REST part has the paths and answers that e2b 2.63.0 (``e2b/api/client``) asks for. The process part is the server
that the SDK's own generated code has (``e2b.envd.process.process_connect``, Connect over HTTP), and behaves as envd
does (e2b-dev/infra, packages/envd/internal/services/process): a command is started with a bare environment, its output
comes in pieces of 32 KiB at most, and it runs on with its input open when the client goes away. What a sandbox has
started ends with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from e2b.envd.process import process_connect as connect
from e2b.envd.process import process_pb as pb
from protobuf import Oneof

KEY = "e2b_of_the_stand_in"
#: Is in the environment of everything that runs in a sandbox; its value is the sandbox's id.
_MARK = "DESKHAND_STAND_IN_SANDBOX"
_PIECE = 32 << 10
#: Seconds a command's output is waited for when it has ended and something that it started still has its output open.
_REST = 0.5

Events = asyncio.Queue["pb.ProcessEvent | None"]


@dataclass
class Command:
    """A command, and whoever listens to it."""

    process: asyncio.subprocess.Process
    listeners: list[Events] = field(default_factory=list)

    def tell(self, event: pb.ProcessEvent | None) -> None:
        for listener in self.listeners:
            listener.put_nowait(event)


@dataclass
class Sandbox:
    """One that runs: ``lifetime`` is the seconds it was last given."""

    id: str
    template: str
    token: str
    home: str
    lifetime: float
    commands: dict[int, Command] = field(default_factory=dict)
    end: asyncio.TimerHandle | None = None


class StandIn:
    """The running server: what it was asked, what runs there, and what it is to do wrong."""

    def __init__(self, prefix: Sequence[str], env: Mapping[str, str]) -> None:
        self.url = ""
        self.sandboxes: dict[str, Sandbox] = {}
        #: Method and path of every request, and the body of those of the REST API.
        self.requests: list[tuple[str, str, Any]] = []
        #: Answers to the next REST requests: status and message.
        self.refusals: list[tuple[int, str]] = []
        #: Cuts the connection of the next command that says something, and what it says is lost.
        self.lose = False
        #: Requests of the API that are answered no more, as if the network were down.
        self.deaf: set[str] = set()
        self._prefix = list(prefix)
        self._env = dict(env)
        self._rpc = connect.ProcessASGIApplication(Processes(self))
        self._loop: asyncio.AbstractEventLoop | None = None

    def count(self, method: str, path: str) -> int:
        """How many requests came whose path matches the pattern."""
        return sum(one == method and re.fullmatch(path, where) is not None for one, where, _ in self.requests)

    def kill(self, id: str) -> None:
        """End a sandbox from outside, as its time being over does."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._kill(id), self._loop).result(20)

    async def _kill(self, id: str) -> None:
        self._end(id)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self._loop = asyncio.get_running_loop()
        path, headers = scope["path"], {name.decode(): value.decode() for name, value in scope["headers"]}
        if path == "/health" or path.startswith("/process.Process/"):
            self.requests.append((scope["method"], path, None))
            await self._envd(scope, receive, send, headers)
            return
        body = json.loads(await _body(receive) or b"null")
        self.requests.append((scope["method"], path, body))
        status, answer = self._api(scope["method"], path, body, headers)
        await _answer(send, status, answer)

    # -- the API for sandboxes ----------------------------------------------------------------------------------------

    def _api(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:
        if self.refusals:
            status, message = self.refusals.pop(0)
            return status, {"code": status, "message": message}
        if headers.get("x-api-key") != KEY:
            return 401, {"code": 401, "message": "Invalid API key"}
        if (method, path) == ("POST", "/v2/sandboxes"):
            return self._create(body)
        found = re.fullmatch(r"/(?:v2/)?sandboxes/(\w+)(?:/(connect|timeout))?", path)
        sandbox = self.sandboxes.get(found.group(1)) if found else None
        if found is None or sandbox is None:
            return 404, {"code": 404, "message": f"sandbox {found.group(1) if found else path!r} not found"}
        if method == "DELETE":
            self._end(sandbox.id)
            return 204, None
        self._live(sandbox, body["timeout"])
        return (200, _described(sandbox)) if found.group(2) == "connect" else (204, None)

    def _create(self, body: Any) -> tuple[int, Any]:
        if body["templateID"] != "desktop":
            return 404, {"code": 404, "message": f"template '{body['templateID']}' not found"}
        home = tempfile.mkdtemp(prefix="deskhand-e2b-")
        sandbox = Sandbox("i" + secrets.token_hex(9), body["templateID"], secrets.token_hex(8), home, 0)
        self.sandboxes[sandbox.id] = sandbox
        self._live(sandbox, body.get("timeout", 15))
        return 201, _described(sandbox)

    def _live(self, sandbox: Sandbox, seconds: float) -> None:
        if sandbox.end is not None:
            sandbox.end.cancel()
        sandbox.lifetime = seconds
        sandbox.end = asyncio.get_running_loop().call_later(seconds, self._end, sandbox.id)

    def _end(self, id: str) -> None:
        sandbox = self.sandboxes.pop(id, None)
        if sandbox is None:
            return
        if sandbox.end is not None:
            sandbox.end.cancel()
        for command in sandbox.commands.values():
            command.tell(None)
        _end_marked(id)
        shutil.rmtree(sandbox.home, ignore_errors=True)

    # -- envd ---------------------------------------------------------------------------------------------------------

    async def _envd(self, scope: Any, receive: Any, send: Any, headers: dict[str, str]) -> None:
        sandbox = self.sandboxes.get(headers.get("e2b-sandbox-id", ""))
        if scope["path"].rpartition("/")[2] in self.deaf:
            await asyncio.sleep(3600)
        if sandbox is None:  # the proxy's words
            id = headers.get("e2b-sandbox-id")
            await _answer(send, 502, {"sandboxId": id, "message": "The sandbox was not found", "code": 502})
        elif headers.get("x-access-token") != sandbox.token:
            await _answer(send, 401, {"code": 401, "message": "unauthorized access"})
        elif scope["path"] == "/health":
            await _answer(send, 204, None)
        else:
            await self._rpc(scope, receive, send)

    async def start(self, sandbox: Sandbox, config: pb.ProcessConfig, stdin: bool) -> Command:
        """Start a command in a sandbox."""
        env = {"PATH": "/usr/bin:/bin", "HOME": sandbox.home, "USER": "user", "LOGNAME": "user", _MARK: sandbox.id}
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *self._prefix,
            config.cmd,
            *config.args,
            env=env | self._env | config.envs,
            cwd=sandbox.home,
            stdin=pipe if stdin else null,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        command = Command(process)
        sandbox.commands[process.pid] = command
        return command

    async def watch(self, sandbox: Sandbox, command: Command) -> None:
        """Pass on what a command says, to whoever listens then, and its end."""
        process = command.process
        assert process.stdout is not None
        assert process.stderr is not None
        pumps = [
            asyncio.create_task(self._pump(command, "stdout", process.stdout)),
            asyncio.create_task(self._pump(command, "stderr", process.stderr)),
        ]
        await process.wait()
        _, open_still = await asyncio.wait(pumps, timeout=_REST)
        for pump in open_still:
            pump.cancel()
        sandbox.commands.pop(process.pid, None)
        code = process.returncode or 0
        end = pb.ProcessEvent.EndEvent(exit_code=code, exited=code >= 0, status=f"exit status {code}")
        command.tell(_event("end", end))
        command.tell(None)

    async def _pump(self, command: Command, name: Any, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_PIECE):
            if self.lose:
                self.lose = False
                command.tell(None)
                command.listeners.clear()
            else:
                command.tell(_event("data", pb.ProcessEvent.DataEvent(output=Oneof(name, data))))


class Processes(connect.Process):
    """envd's service."""

    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in
        self._watching: set[asyncio.Task[None]] = set()

    async def start(self, request: pb.StartRequest, ctx: Any) -> AsyncIterator[pb.StartResponse]:
        sandbox = self._sandbox(ctx)
        assert request.process is not None
        try:
            command = await self._stand_in.start(sandbox, request.process, request.stdin)
        except OSError as error:
            raise ConnectError(Code.INVALID_ARGUMENT, f"error starting process: {error}") from None
        events: Events = asyncio.Queue()
        command.listeners.append(events)
        watching = asyncio.create_task(self._stand_in.watch(sandbox, command))
        self._watching.add(watching)
        watching.add_done_callback(self._watching.discard)
        yield pb.StartResponse(event=_event("start", pb.ProcessEvent.StartEvent(pid=command.process.pid)))
        ended = False
        while (event := await events.get()) is not None:
            yield pb.StartResponse(event=event)
            ended = event.event is not None and event.event.field == "end"
        if not ended:
            raise ConnectError(
                Code.UNAVAILABLE, f"the connection to sandbox {sandbox.id} ended before the stream completed"
            )

    async def send_input(self, request: pb.SendInputRequest, ctx: Any) -> pb.SendInputResponse:
        stdin = self._command(request.process, ctx).process.stdin
        assert request.input is not None
        assert request.input.input is not None
        try:
            assert stdin is not None, "stdin not enabled or closed"
            stdin.write(request.input.input.value)
            await stdin.drain()
        except (OSError, AssertionError) as error:
            raise ConnectError(Code.INTERNAL, f"error writing to stdin: {error}") from None
        return pb.SendInputResponse()

    async def close_stdin(self, request: pb.CloseStdinRequest, ctx: Any) -> pb.CloseStdinResponse:
        stdin = self._command(request.process, ctx).process.stdin
        if stdin is not None:
            stdin.close()
        return pb.CloseStdinResponse()

    async def send_signal(self, request: pb.SendSignalRequest, ctx: Any) -> pb.SendSignalResponse:
        with suppress(ProcessLookupError):
            self._command(request.process, ctx).process.send_signal(int(request.signal))
        return pb.SendSignalResponse()

    def _sandbox(self, ctx: Any) -> Sandbox:
        return self._stand_in.sandboxes[ctx.request_headers["e2b-sandbox-id"]]

    def _command(self, selector: pb.ProcessSelector | None, ctx: Any) -> Command:
        assert selector is not None
        assert selector.selector is not None
        pid = selector.selector.value
        command = self._sandbox(ctx).commands.get(int(pid))
        if command is None:
            raise ConnectError(Code.NOT_FOUND, f"process with pid {pid} not found")
        return command


def _event(name: Any, value: Any) -> pb.ProcessEvent:
    return pb.ProcessEvent(event=Oneof(name, value))


def _described(sandbox: Sandbox) -> dict[str, Any]:
    return {
        "templateID": sandbox.template,
        "sandboxID": sandbox.id,
        "clientID": "stand-in",
        "envdVersion": "0.6.4",
        "envdAccessToken": sandbox.token,
    }


def _end_marked(id: str) -> None:
    """Everything a sandbox has started, whatever session of processes it made for itself."""
    mark = f"{_MARK}={id}".encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as environ:
                found = mark in environ.read().split(b"\0")
            if found:
                os.kill(int(name), signal.SIGKILL)


async def _body(receive: Callable[[], Awaitable[Any]]) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _answer(send: Callable[[Any], Awaitable[None]], status: int, body: Any) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if body is None else json.dumps(body).encode()})


@contextmanager
def serving(prefix: Sequence[str] = (), env: Mapping[str, str] | None = None) -> Iterator[StandIn]:
    """Serve on a free port of the loopback address.

    ``prefix`` goes before every command of a sandbox, and ``env`` is in its environment, as a template's is.
    """
    stand_in = StandIn(prefix, env or {})
    config = uvicorn.Config(stand_in, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        stand_in.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
        thread.start()
        try:
            yield stand_in
        finally:
            for id in list(stand_in.sandboxes):
                stand_in.kill(id)
            server.should_exit = True
            thread.join(20)


def options(stand_in: StandIn) -> dict[str, Any]:
    """What ``E2B`` needs to be sent there."""
    return {"api_key": KEY, "api_url": stand_in.url, "sandbox_url": stand_in.url}
