"""Viewers of the live view that read the wire themselves: how many bytes came is part of what is tested.

Source: RFC 6455, The WebSocket Protocol, sections 4.1 (handshake) and 5.2 (framing).
"""

from __future__ import annotations

import base64
import io
import json
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from PIL import Image

from tests.computerd.daemons import RunningDaemon

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The handshake was answered with another status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Closed(Exception):
    """The server ended the connection."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code


def ticket(daemon: RunningDaemon, **wish: Any) -> str:
    with daemon.client() as client:
        return str(client.post("/live/tickets", json=wish).json()["ticket"])


def cookie(daemon: RunningDaemon, **wish: Any) -> str:
    """The cookie of a viewer session, as a browser sends it back."""
    with daemon.client(Authorization="") as client:
        answer = client.get("/live", params={"ticket": ticket(daemon, **wish)})
    assert answer.status_code == 200, answer.text
    return answer.headers["set-cookie"].partition(";")[0]


class RawViewer:
    """A WebSocket to ``/live/stream``. ``frames`` counts what came by opcode; ``received`` are bytes after the head."""

    def __init__(
        self,
        daemon: RunningDaemon,
        cookies: str | None = None,
        origin: str | None = "own",
        query: str = "",
        receive_buffer: int | None = None,
    ) -> None:
        self.received = 0
        self.frames: dict[int, int] = {}
        self.state: dict[str, Any] = {}
        self.outcomes: list[dict[str, Any]] = []
        self.did: list[dict[str, Any]] = []
        self.hello: dict[str, Any] = {}
        self.formats: list[str] = []
        self.turns = 0
        self.screen = Image.new("RGB", (1, 1))
        self._buffer = b""
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(20)
        self._socket.connect(daemon.address)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET /live/stream{query} HTTP/1.1", f"Host: {daemon.listen}", "Upgrade: websocket"]
        lines += ["Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"Cookie: {cookies}"] if cookies else []
        lines += [f"Origin: {daemon.url if origin == 'own' else origin}"] if origin else []
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._buffer:
            self._receive()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        if status != 101:
            self._socket.close()
            raise Refused(status)
        self.received = len(self._buffer)

    def __enter__(self) -> RawViewer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def say(self, what: Any) -> None:
        payload = what if isinstance(what, bytes) else json.dumps(what).encode()
        self._send(TEXT, payload)

    def turn(self, seconds: float = 20.0) -> dict[str, Any]:
        """The next turn, taken up and acknowledged.

        Raises:
            TimeoutError: None came.
            Closed: The connection was ended.
        """
        deadline = time.monotonic() + seconds
        while True:
            opcode, payload = self._frame(deadline)
            if opcode == CLOSE:
                raise Closed(struct.unpack(">H", payload[:2])[0] if payload else 1005, payload[2:].decode())
            if opcode == PING:
                self._send(PONG, payload)
            if opcode == BINARY:
                return self._take(payload)

    def until(self, condition: Callable[[], Any], seconds: float = 20.0) -> None:
        """Take turns until the condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.turn(max(0.01, deadline - time.monotonic()))

    def until_quiet(self, seconds: float = 0.8) -> None:
        """Take turns until none has come for so long."""
        try:
            while True:
                self.turn(seconds)
        except TimeoutError:
            pass

    def _take(self, message: bytes) -> dict[str, Any]:
        (length,) = struct.unpack_from(">I", message)
        turn: dict[str, Any] = json.loads(message[4 : 4 + length])
        at = 4 + length
        self.turns += 1
        self.hello.update(turn.get("hello", {}))
        self.state.update(turn.get("state", {}))
        self.outcomes += turn.get("outcomes", [])
        self.did += turn.get("did", [])
        if "of" in turn and tuple(turn["of"]) != self.screen.size:
            self.screen = Image.new("RGB", tuple(turn["of"]))
        for x, y, width, height, form, size in turn.get("images", []):
            image = Image.open(io.BytesIO(message[at : at + size]))
            assert image.format == form.upper()
            assert image.size == (width, height)
            self.screen.paste(image.convert("RGB"), (x, y))
            self.formats.append(form)
            at += size
        assert at == len(message)
        self.say({"ack": turn["turn"]})
        return turn

    def _frame(self, deadline: float) -> tuple[int, bytes]:
        head = self._exactly(2, deadline)
        rest = max(deadline, time.monotonic() + 10)  # what has begun is read to its end
        length = head[1] & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self._exactly(2, rest))
        elif length == 127:
            (length,) = struct.unpack(">Q", self._exactly(8, rest))
        payload = self._exactly(length, rest)
        opcode = head[0] & 0xF
        assert head[0] & 0x80, "in one piece"
        self.frames[opcode] = self.frames.get(opcode, 0) + 1
        return opcode, payload

    def _exactly(self, count: int, deadline: float) -> bytes:
        while len(self._buffer) < count:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            before = len(self._buffer)
            self._receive()
            self.received += len(self._buffer) - before
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def _receive(self) -> None:
        piece = self._socket.recv(1 << 16)
        if not piece:
            raise Closed(1006)
        self._buffer += piece

    def _send(self, opcode: int, payload: bytes) -> None:
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += struct.pack(">BH", 0x80 | 126, size)
        else:
            head += struct.pack(">BQ", 0x80 | 127, size)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self._socket.sendall(head + mask + masked)
