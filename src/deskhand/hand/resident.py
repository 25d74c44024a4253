"""A hand that stays: it answers requests on a unix socket and keeps its X connection between them.

One JSON request a line, one JSON answer a line; with ``"raw": true`` in a request the picture's bytes follow the answer,
whose ``picture`` then has ``bytes``, their number. One client at a time; a client that goes away in the middle of its
batch stops it at the next action, and what it held is released.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import sys
from typing import Any, Optional, Tuple

from .answering import NO_DISPLAY, Reply, answer, error_reply
from .errors import BatchRefused, SetupError
from .hand import Hand

#: Bytes of one request: 100 texts of 100,000 characters do not fit, one of them does.
MAX_REQUEST = 8 << 20


def serve(path: str, hand: Hand) -> int:
    """Answer on a new unix socket at ``path`` (mode 0600) until SIGTERM or SIGINT; removes it at the end.

    Raises:
        SetupError: something else is there already, or it can not be made.
    """
    listener = _listen(path)
    # A signal only wakes the select below, so that a batch under way is finished and its input released.
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    print(json.dumps({"resident": path, "pid": os.getpid()}), flush=True)
    try:
        while True:
            ready, _, _ = select.select([listener.fileno(), wake], [], [])
            if wake in ready:
                return 0
            client, _address = listener.accept()
            with client:
                if _same_user(client):
                    _Conversation(client, hand, wake).serve()
    finally:
        listener.close()
        os.unlink(path)
        hand.close()


def ask(path: str, request: bytes) -> Tuple[bytes, int]:
    """Send one request to a resident hand; its answer line, and its exit status.

    Raises:
        SetupError: no hand answers there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.connect(path)
        except OSError as error:
            raise SetupError(f"no hand answers at {path} ({error.strerror}): start one with --resident {path}") from None
        sock.sendall(request.replace(b"\n", b" ") + b"\n")
        with sock.makefile("rb") as lines:
            line = lines.readline()
    if not line:
        raise SetupError(f"the hand at {path} closed the connection without an answer")
    return line, int(json.loads(line).get("status", 1))


class _Conversation:
    def __init__(self, client: socket.socket, hand: Hand, wake: int) -> None:
        self._client = client
        self._hand = hand
        self._wake = wake
        self._buffer = b""

    def serve(self) -> None:
        """Answer one client until it ends its side or we are told to stop."""
        while True:
            line = self._line()
            if line is None:
                break
            reply, raw = self._reply(line)
            try:
                self._send(reply, raw)
            except OSError:
                break
        if self._hand.connected:
            self._hand.display.ledger.release_all()

    def _line(self) -> Optional[bytes]:
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._client.fileno(), self._wake], [], [])
            if self._wake in ready or len(self._buffer) > MAX_REQUEST:
                return None
            try:
                data = self._client.recv(1 << 16)
            except OSError:
                return None
            if not data:
                return None
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _reply(self, line: bytes) -> Tuple[Reply, bool]:
        try:
            request = read_request(line)
        except BatchRefused as error:
            return error_reply(error), False
        raw = isinstance(request, dict) and request.pop("raw", False) is True
        return answer(self._hand, request, self._alive), raw

    def _send(self, reply: Reply, raw: bool) -> None:
        content = b""
        if raw and reply.picture is not None:
            content = reply.picture.content
            body = {**reply.answer, "picture": {**reply.answer["picture"], "bytes": len(content)}}
        else:
            body = reply.with_base64()
        self._client.sendall(json.dumps({**body, "status": reply.status}).encode() + b"\n" + content)

    def _alive(self) -> bool:
        """Whether the client still has its side open."""
        ready, _, _ = select.select([self._client], [], [], 0)
        if not ready:
            return True
        try:
            return bool(self._client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False


def _listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if os.path.exists(path):
        probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)  # left by one that was killed
            except OSError as error:
                raise SetupError(f"{path} is there and is no socket of ours ({error.strerror}): name another") from None
            else:
                raise SetupError(f"a hand already answers at {path}: use it, or end it first")
    before = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError as error:
        raise SetupError(f"no socket can be made at {path}: {error.strerror}") from None
    finally:
        os.umask(before)
    listener.listen(8)
    return listener


def _same_user(client: socket.socket) -> bool:
    """SO_PEERCRED: only this user and root may drive this hand (unix(7))."""
    _pid, uid, _gid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (0, os.geteuid())


def main_ask(path: str) -> int:
    """Send standard input to the resident hand at ``path`` and print its answer."""
    try:
        line, status = ask(path, sys.stdin.buffer.read())
    except SetupError as error:
        print(json.dumps({"ok": False, "sent": "none", "error": str(error), "kind": "no_hand"}))
        return NO_DISPLAY
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
    return status


def read_request(data: bytes) -> Any:
    """One JSON request.

    Raises:
        BatchRefused: it is not JSON.
    """
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BatchRefused(f"the request is not JSON: {error}") from None
