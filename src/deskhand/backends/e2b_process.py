"""A command in an E2B sandbox, with its streams connected for as long as it runs.

envd, which runs commands there, leaves a command running and its standard input open when the connection to it is cut
(e2b-dev/infra, packages/envd, services/process, ``handleStart``). So a hand there is told every few seconds that
somebody is still here, and takes silence for the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from deskhand.backends.places import LONGEST_LINE

if TYPE_CHECKING:
    from e2b import AsyncCommandHandle, AsyncSandbox

#: Seconds between two signs of life, and of silence that a hand takes for the end: two may be lost on their way.
ALIVE_S, SILENCE_S = 4.0, 15.0
#: Seconds for a request that only ends something.
_ENDING_S = 4.0
#: The exit status of a command when nobody knows how it ended.
_UNKNOWN = 255


class E2BProcess:
    """The near end of a command. Its output is text, as that is what the SDK hands on."""

    def __init__(self, gone: Callable[[Exception], None]) -> None:
        self.stdout = asyncio.StreamReader(limit=LONGEST_LINE)
        self.stderr = asyncio.StreamReader(limit=LONGEST_LINE)
        self.stdin: E2BInput | None = None
        self.returncode: int | None = None
        self._gone = gone
        self._handle: AsyncCommandHandle[Any] | None = None
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pid(self) -> int:
        """Its process id in the sandbox."""
        assert self._handle is not None
        return int(self._handle.pid)

    async def start(self, sandbox: AsyncSandbox, command: str, stream: bool) -> None:
        """Start a shell command; ``stream``: it wants to be told that somebody is still here.

        Raises:
            Exception: What the SDK raises when it can not be started.
        """
        handle: AsyncCommandHandle[Any] = await sandbox.commands.run(
            command,
            background=True,
            stdin=True,
            timeout=0,
            on_stdout=lambda text: self.stdout.feed_data(text.encode()),
            on_stderr=lambda text: self.stderr.feed_data(text.encode()),
            retain_output=False,
        )
        self._handle = handle
        self.stdin = E2BInput(handle, self._lost, ALIVE_S if stream else None)
        self._later(self._watch(handle))

    async def communicate(self, input: bytes | None = None, /) -> tuple[bytes, bytes]:
        assert self.stdin is not None
        self.stdin.write(input or b"")
        self.stdin.close()
        stdout, stderr = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return stdout, stderr

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    async def settled(self) -> None:
        """Wait, not for long, until none of the command's requests is under way."""
        deadline = asyncio.get_running_loop().time() + _ENDING_S
        while pending := self._pending():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await asyncio.wait(pending, timeout=left)

    @property
    def busy(self) -> bool:
        """Whether any of its requests is under way."""
        return bool(self._pending())

    def _pending(self) -> set[asyncio.Task[None]]:
        sending = set() if self.stdin is None else {self.stdin.sending}
        return {task for task in self._tasks | sending if not task.done()}

    def terminate(self) -> None:
        self.kill()  # the SDK sends no other signal

    def kill(self) -> None:
        self._later(self._kill())

    async def _kill(self) -> None:
        if self._handle is None or self.returncode is not None:
            return
        try:
            async with asyncio.timeout(_ENDING_S):
                await self._handle.kill()
                await self.wait()
        except Exception as error:  # of the SDK's many; the command is beyond reach, and we let go of it
            self._lost(error)

    async def _watch(self, handle: AsyncCommandHandle[Any]) -> None:
        """Wait for its end, and tell those who read its output."""
        from e2b import CommandExitException

        try:
            self._end((await handle.wait()).exit_code)
        except CommandExitException as error:
            self._end(error.exit_code)
        except Exception as error:  # the SDK raises several, and a bare one when the stream just ends
            self._lost(error)

    def _lost(self, error: Exception) -> None:
        """The connection to it is gone, or was never right; what it does now nobody knows."""
        if self.returncode is None:
            self._gone(error)
            self.stderr.feed_data(f"\n{in_one_line(error)}\n".encode())
            self._end(_UNKNOWN)
            if self._handle is not None:
                self._later(self._let_go(self._handle))

    async def _let_go(self, handle: AsyncCommandHandle[Any]) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_ENDING_S):
                await handle.disconnect()

    def _end(self, code: int) -> None:
        if self.returncode is None:
            self.returncode = code
            self.stdout.feed_eof()
            self.stderr.feed_eof()
            if self.stdin is not None:
                self.stdin.drop()
            self._ended.set()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class E2BInput:
    """Its standard input: one request of the SDK after the other, in order."""

    def __init__(
        self, handle: AsyncCommandHandle[Any], lost: Callable[[Exception], None], alive_s: float | None
    ) -> None:
        self._handle = handle
        self._lost = lost
        self._alive_s = alive_s
        self._closed = False
        self._dropped = False
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        #: What sends it; done when there is no more to send.
        self.sending = asyncio.create_task(self._send())

    def write(self, data: bytes, /) -> None:
        if data and not self._closed:
            self._waiting.put_nowait(data)

    async def drain(self) -> None:
        """Nothing to wait for: what can not be sent ends the process."""

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.put_nowait(None)

    def drop(self) -> None:
        """The process is gone: nothing more can be sent. A request that is under way is left to end by itself."""
        self._closed = self._dropped = True
        self._waiting.put_nowait(None)

    async def _send(self) -> None:
        try:
            while True:
                try:
                    async with asyncio.timeout(self._alive_s):
                        data = await self._waiting.get()
                except TimeoutError:
                    data = b"\n"
                if data is None or self._dropped:
                    break
                await self._handle.send_stdin(data)
            if not self._dropped:
                await self._close()
        except Exception as error:  # of the SDK's many
            self._lost(error)

    async def _close(self) -> None:
        from e2b import NotFoundException, SandboxException

        try:
            await self._handle.close_stdin(_ENDING_S)
        except NotFoundException:
            pass  # it has ended by itself
        except SandboxException:
            await self._handle.kill()  # an older envd, which can not close it


def in_one_line(error: BaseException) -> str:
    """What an error of the SDK says."""
    return " ".join(str(error).split())[:300] or type(error).__name__
