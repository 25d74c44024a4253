"""Connections that can not be held for nothing: uvicorn's HTTP/1.1 protocol with a deadline for what a client does.

A request's head has ten seconds from its first byte, or from the connection's beginning; bodies have the deadline of
``bodies``; a client that does not read its answers soon gets no more of them, and then is cut off. When all places are
taken, the oldest connection that is idle, half-open, or without the token gives its own up.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from deskhand.computerd.auth import STRANGER
from deskhand.computerd.problems import MEDIA_TYPE, Problem
from deskhand.computerd.refusals import REFUSALS

#: Seconds for the head of a request, and for a client to take up what is written to it.
HEAD_PATIENCE, WRITE_PATIENCE = 10.0, 30.0
#: Connections at once.
MOST = 512
#: Bytes that the kernel takes for a client beyond those under way (tcp(7), TCP_NOTSENT_LOWAT). Left to itself it takes
#: megabytes of answers that nobody reads, each made at the cost of those who wait for theirs.
_UNSENT = 128 << 10


class DeadlineProtocol(H11Protocol):
    """One connection."""

    #: Those that are open, the oldest first.
    _open: dict[DeadlineProtocol, None] = {}

    _head: asyncio.TimerHandle | None = None
    _write: asyncio.TimerHandle | None = None
    _upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
        self._open[self] = None
        if len(self._open) > MOST:
            waiting = next((one for one in self._open if one._is_waiting() or one._is_a_stranger()), self)
            del self._open[waiting]  # now: many more may come before it is closed
            waiting._cut()
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._let_go()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_head()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._upgraded = True  # from here on it is another protocol's
        self._let_go()
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write is None:
            self._write = self.loop.call_later(WRITE_PATIENCE, self._cut)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write is not None:
            self._write.cancel()
            self._write = None

    def send_400_response(self, msg: str) -> None:
        self.flow.pause_reading()  # what follows can not be understood either
        wait = REFUSALS.wait()
        if wait:
            self.loop.call_later(wait, self._answer_malformed)
        else:
            self._answer_malformed()

    def _answer_malformed(self) -> None:
        if self.transport.is_closing():
            return
        detail = "this is no HTTP/1.1 request that can be read: see RFC 9112"
        response = Problem("malformed", detail).response()
        try:
            headers = [(b"content-type", MEDIA_TYPE.encode()), (b"connection", b"close")]
            for part in (
                h11.Response(status_code=response.status_code, headers=headers, reason=b"Bad Request"),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(part) or b"")
        except h11.LocalProtocolError:
            pass  # in the middle of another answer, which is now cut off
        self.transport.close()

    def _is_waiting(self) -> bool:
        """Whether nothing is done for this client at the moment."""
        return self.cycle is None or self.cycle.response_complete

    def _is_a_stranger(self) -> bool:
        return self.cycle is not None and STRANGER in self.cycle.scope

    def _watch_head(self) -> None:
        """A request that has begun must come to the end of its head; between two, uvicorn's own keep-alive counts."""
        if self._upgraded:
            return
        # What h11 has not taken up yet is copied to be looked at: not while a body comes.
        waiting = self._is_waiting()
        begun = waiting and (self.cycle is None or bool(self.conn.trailing_data[0]))
        if begun and not self.transport.is_closing():
            if self._head is None:
                self._head = self.loop.call_later(HEAD_PATIENCE, self._cut)
        elif self._head is not None:
            self._head.cancel()
            self._head = None

    def _cut(self) -> None:
        self.transport.abort()

    def _let_go(self) -> None:
        self._open.pop(self, None)
        for timer in (self._head, self._write):
            if timer is not None:
                timer.cancel()
        self._head = self._write = None


def server_config(app: Any, **own: Any) -> uvicorn.Config:
    """uvicorn's settings for ``app``: those of every server of ours, and the server's own."""
    return uvicorn.Config(
        app,
        http=DeadlineProtocol,
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=64 << 10,
        **own,
    )


def open_connections() -> int:
    """How many there are; for the metrics."""
    return len(DeadlineProtocol._open)
