"""Standard input and output for a protocol: lines that can be waited for, and given up, at any time.

A read from a pipe or a terminal can not be broken off, nor can a write to one that nobody reads. So each is done in a
thread of its own that nobody waits for: a process that is told to end then ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import threading
from collections.abc import Callable
from functools import partial


class StandardInput:
    """The lines of descriptor ``fd`` for ``async for``, each without its end; what is not UTF-8 is replaced."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="deskhand-stdin", daemon=True).start()

    def __aiter__(self) -> StandardInput:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        pieces: list[bytes] = []
        try:
            while data := os.read(self._fd, 1 << 16):
                first, *others = data.split(b"\n")
                pieces.append(first)
                for other in others:
                    self._put(b"".join(pieces).decode("utf-8", "replace"))
                    pieces = [other]
        except OSError:
            pass  # a terminal that was closed
        if any(pieces):
            self._put(b"".join(pieces).decode("utf-8", "replace"))
        self._put(None)

    def _put(self, line: str | None) -> None:
        _tell(self._loop, partial(self._lines.put_nowait, line))


class StandardOutput:
    """Writes to descriptor ``fd``, from now on this object's alone: whatever else is printed goes to ``aside``."""

    def __init__(self, fd: int = 1, aside: int = 2) -> None:
        # Out of the way of the standard ones, and not inherited by what is started.
        self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
        os.dup2(aside, fd)
        self._loop = asyncio.get_running_loop()
        self._texts: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="deskhand-stdout", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write ``text`` whole.

        Raises:
            OSError: Nobody reads any more.
        """
        written: asyncio.Future[None] = self._loop.create_future()
        self._texts.put((text.encode(), written))
        await written

    async def flush(self) -> None:
        """Everything was written when ``write`` returned."""

    def _write(self) -> None:
        while True:
            data, written = self._texts.get()
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError as error:
                _tell(self._loop, partial(_finish, written, error))
            else:
                _tell(self._loop, partial(_finish, written, None))


def _finish(future: asyncio.Future[None], error: OSError | None) -> None:
    if future.done():
        return  # nobody waits for it any more
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(what)
    except RuntimeError:
        pass  # the loop is closed: nobody listens any more
