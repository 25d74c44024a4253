"""Standard input as lines that can be waited for, and given up, at any time."""

from __future__ import annotations

import asyncio
import os
import threading


class StandardInput:
    """The lines of descriptor ``fd`` for ``async for``, each without its end; not UTF-8 is replaced.

    They are read in a thread of its own that nobody waits for: a read from a pipe or a terminal can not be broken off,
    and a process that is told to end while nothing comes would otherwise go on until something does.
    """

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
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:
            pass  # the loop is closed: nobody reads any more
