"""A model's server, without a model: what it was sent is kept, and a function of the test makes the answers."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What came: ``number`` counts from 0, tries that are made again included."""

    number: int
    path: str
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; ``body`` is JSON, or bytes as they are."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Cut:
    """The connection is cut: nothing is answered (``after`` bytes of a body that was promised longer come first)."""

    def __init__(self, after: bytes = b"") -> None:
        self.after = after


class Silence:
    """Nothing is answered until the server ends."""


@dataclass
class Server:
    """A running server: its address, and what it was sent."""

    url: str
    requests: list[Request] = field(default_factory=list)
    #: Set when a request has come in that is answered by ``Silence``.
    asked: threading.Event = field(default_factory=threading.Event)

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]


Answers = Callable[[Request], "Answer | Cut | Silence"]


@contextmanager
def serving(answers: Answers) -> Iterator[Server]:
    """Serve on a free port of the loopback address until the block is left."""
    ended = threading.Event()
    faults: list[Exception] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                request = Request(len(server.requests), self.path, dict(self.headers.items()), body)
                server.requests.append(request)
            try:
                answer = answers(request)
            except Exception as fault:  # the test's own; the SDK must not try again
                faults.append(fault)
                answer = Answer({"error": {"message": f"the stand-in: {fault!r}"}}, 400)
            if isinstance(answer, Answer):
                self._answer(answer)
            elif isinstance(answer, Silence):
                server.asked.set()
                ended.wait(60)
                self.close_connection = True
            else:
                self._cut(answer)

        def _answer(self, answer: Answer) -> None:
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _cut(self, cut: Cut) -> None:
            if cut.after:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(cut.after) + 1000))
                self.end_headers()
                self.wfile.write(cut.after)
                self.wfile.flush()
            # Reset, not closed in order: what a machine that goes down in the middle looks like.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):
                pass  # the connection that was cut

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                pass

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server = Server(f"http://127.0.0.1:{http.server_address[1]}")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            ended.set()
            http.shutdown()
            thread.join(10)
            if faults:
                raise faults[0]
