"""The process that serves the status page.

Everything it knows comes to its standard input, one JSON object a line: first ``{"descriptor", "token", "hosts"}``, the
listening socket it was started with and the token's digest, then ``{"health": {...}}`` whenever that has changed. When
its input ends, so does it: no page outlives its fleet.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import uvicorn

from deskhand.computerd.connections import server_config
from deskhand.computerd.logs import set_up
from deskhand.computerd.secret import keep_memory_private
from deskhand.fleet.page.news import News
from deskhand.fleet.page.routes import Page

#: Bytes of a line at most.
LONGEST = 256 << 20


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # Ctrl+C at a terminal is for who started us; our input ends with them


async def _run() -> int:
    reader = asyncio.StreamReader(limit=LONGEST)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", 0))
    first = await reader.readline()
    if not first:
        return 0
    given = json.loads(first)
    news, token = News(), bytes.fromhex(given["token"])
    config = server_config(
        Page(news, token).app(token, given["hosts"]),
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=1,
        backlog=128,
    )
    server = _Server(config)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop.add_signal_handler(signal.SIGTERM, _end, server, news)
    listening = asyncio.create_task(_listen(reader, news))
    listening.add_done_callback(lambda _: _end(server, news))
    with socket.socket(fileno=given["descriptor"]) as sock:
        sock.setblocking(False)
        await server.serve(sockets=[sock])
    listening.cancel()
    return 0


def _end(server: uvicorn.Server, news: News) -> None:
    server.should_exit = True
    news.end()


async def _listen(reader: asyncio.StreamReader, news: News) -> None:
    while line := await reader.readline():
        told: dict[str, Any] = json.loads(line)
        news.tell(told["health"])


def main() -> int:
    keep_memory_private()
    set_up("warning")
    return asyncio.run(_run())


if __name__ == "__main__":
    sys.exit(main())
