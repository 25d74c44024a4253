"""A hand that stays: it answers requests on a unix socket and keeps its X connection between them.

One JSON request a line, one JSON answer a line; with ``"raw": true`` in a request the picture's bytes follow the
answer, whose ``picture`` then has ``bytes``, their number. One client at a time: one that sends nothing for ten seconds
while another waits is dropped, what it had sent of a request with it. A client that goes away in the middle
of its batch stops it at the next action, and what it held is released. One that ends between two batches leaves what
it held to the next one for a minute when the hand's session has a name; else that is released too.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import stat
import struct
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from .answering import NO_DISPLAY, Reply, answer, error_reply
from .errors import BatchRefused, DeskhandError, SetupError
from .hand import Hand
from .held import KEEP_SECONDS

#: Bytes of one request: 100 texts of 100,000 characters do not fit, one of them does.
MAX_REQUEST = 8 << 20
#: Seconds a client may take to read an answer, and a hand to take a connection: nobody blocks the others for good.
PATIENCE = 10.0


def serve(path: str, hand: Hand) -> int:
    """Answer on a new unix socket at ``path`` (mode 0600) until SIGTERM, SIGINT or SIGHUP; removes it at the end.

    Raises:
        SetupError: something else is there already, or it can not be made.
    """
    listener = _listen(path)
    ours = os.lstat(path)
    # A signal only wakes the selects below, so that the action under way is finished and its input released.
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in ending_signals():
        signal.signal(number, lambda *_: None)
    print(json.dumps({"resident": path, "pid": os.getpid()}), flush=True)
    kept_until: Optional[float] = None
    try:
        while True:
            left = None if kept_until is None else max(0.0, kept_until - time.monotonic())
            ready, _, _ = select.select([listener.fileno(), wake], [], [], left)
            if wake in ready:
                return 0
            if not ready:
                _release(hand)
                kept_until = None
                continue
            client, _address = listener.accept()
            with client:
                if _same_user(client):
                    client.settimeout(PATIENCE)
                    kept_until = _Conversation(client, hand, listener, wake).serve()
    finally:
        listener.close()
        _remove(path, ours)
        try:
            hand.close()
        except DeskhandError:
            pass  # the display is gone, and what was held on it


def ending_signals() -> List[int]:
    """The signals that end a hand; SIGHUP unless it was started to outlive its terminal (nohup)."""
    outlives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT, *([] if outlives else [signal.SIGHUP])]


def ask(path: str, request: bytes) -> Tuple[bytes, int]:
    """Send one request to a resident hand; its answer line, and its exit status.

    Raises:
        SetupError: no hand answers there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE)
        try:
            sock.connect(path)
        except OSError as error:
            why = error.strerror or error
            raise SetupError(f"no hand answers at {path} ({why}): start one with --resident {path}") from None
        try:
            sock.sendall(request.replace(b"\n", b" ") + b"\n")
        except socket.timeout:
            raise SetupError(f"the hand at {path} is busy with another client: try again when that has ended") from None
        except OSError:
            pass  # it has refused the rest, and its answer says why
        # A batch takes as long as its actions do; it is the hand that has a deadline for each.
        sock.settimeout(None)
        try:
            with sock.makefile("rb") as lines:
                line = lines.readline()
        except OSError:
            line = b""
    if not line.endswith(b"\n"):
        raise SetupError(f"the hand at {path} closed the connection without an answer: see whether it still runs")
    return line, int(json.loads(line).get("status", 1))


class _Conversation:
    def __init__(self, client: socket.socket, hand: Hand, listener: socket.socket, wake: int) -> None:
        self._client = client
        self._hand = hand
        self._listener = listener
        self._wake = wake
        self._buffer = bytearray()

    def serve(self) -> Optional[float]:
        """Answer one client until it ends its side or we are told to stop.

        Gives the moment (CLOCK_MONOTONIC) until which what it left down is kept for the next; None: nothing is.
        """
        while True:
            line = self._line()
            if line is None:
                break
            reply, raw = self._reply(line)
            try:
                self._send(reply, raw)
            except OSError:  # gone, or not reading
                _release(self._hand)
                return None
            if len(line) > MAX_REQUEST:
                break  # where its next request begins is anybody's guess
        if self._hand.keeps:
            return time.monotonic() + KEEP_SECONDS
        _release(self._hand)
        return None

    def _line(self) -> Optional[bytes]:
        """The next request; None at the end. The last one may lack its newline."""
        looked = 0
        since = time.monotonic()
        while True:
            end = self._buffer.find(b"\n", looked)
            if end >= 0 or len(self._buffer) > MAX_REQUEST:
                line = bytes(self._buffer[: end if end >= 0 else len(self._buffer)])
                del self._buffer[: len(line) + 1]
                return line
            looked = len(self._buffer)
            if not self._speaks(since):
                return None
            since = time.monotonic()
            try:
                data = self._client.recv(1 << 16)
            except OSError:
                return None
            if not data:
                line = bytes(self._buffer)
                self._buffer.clear()
                return line if line.strip() else None
            self._buffer += data

    def _speaks(self, since: float) -> bool:
        """Wait for the client; false when we are told to stop, or it has been silent since then and another waits."""
        client, next_one = self._client.fileno(), self._listener.fileno()
        ready, _, _ = select.select([client, self._wake, next_one], [], [])
        if ready == [next_one]:
            left = since + PATIENCE - time.monotonic()
            ready, _, _ = select.select([client, self._wake], [], [], max(0.0, left))
        return client in ready and self._wake not in ready

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
        """Whether the client still reads, and nobody has told us to stop.

        One that has only ended its own side after its last request (as ``nc -N`` does) is still there: that is
        POLLRDHUP, not POLLHUP.
        """
        poll = select.poll()
        poll.register(self._client, 0)
        poll.register(self._wake, select.POLLIN)
        return not poll.poll(0)


def _release(hand: Hand) -> None:
    try:
        if hand.connected:
            hand.display.ledger.release_all()
    except DeskhandError:
        pass  # the display is gone, and what was held on it


def _listen(path: str) -> socket.socket:
    try:
        _clear(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(path)
        except OSError:
            listener.close()
            raise
        finally:
            os.umask(before)
    except OSError as error:
        raise SetupError(f"no socket can be made at {path}: {error.strerror or error}") from None
    listener.listen(8)
    return listener


def _clear(path: str) -> None:
    """Remove the socket that a killed hand left; refuse to touch anything else."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SetupError(f"{path} is there and is no socket: name another")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PATIENCE)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except socket.timeout:
            pass  # a hand so busy that it takes no more clients
    raise SetupError(f"a hand already answers at {path}: use it, or end it first")


def _remove(path: str, ours: os.stat_result) -> None:
    """Remove our socket, unless somebody has put another in its place."""
    try:
        there = os.lstat(path)
        if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
            os.unlink(path)
    except OSError:
        pass


def _same_user(client: socket.socket) -> bool:
    """SO_PEERCRED: only this user and root may drive this hand (unix(7))."""
    _pid, uid, _gid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid in (0, os.geteuid())


def main_ask(path: str) -> int:
    """Send standard input to the resident hand at ``path`` and print its answer."""
    try:
        line, status = ask(path, read_standard_input())
    except BatchRefused as error:
        reply = error_reply(error)
        line, status = json.dumps(reply.answer).encode() + b"\n", reply.status
    except SetupError as error:
        print(json.dumps({"ok": False, "sent": "none", "error": str(error), "kind": "no_hand"}))
        return NO_DISPLAY
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
    return status


def read_standard_input() -> bytes:
    """All of standard input.

    Raises:
        BatchRefused: it is longer than any request may be, or can not be read.
    """
    try:
        data = sys.stdin.buffer.read(MAX_REQUEST + 1) if sys.stdin is not None else b""
    except OSError as error:
        raise BatchRefused(f"standard input can not be read ({error.strerror}): send the request there") from None
    if len(data) > MAX_REQUEST:
        raise _too_long()
    return data


def read_request(data: bytes) -> Any:
    """One JSON request.

    Raises:
        BatchRefused: it is not JSON, is too long, or names a field twice: which one is meant is not for us to guess.
    """
    if len(data) > MAX_REQUEST:
        raise _too_long()
    if not data.strip():
        raise BatchRefused(
            'the request is not JSON, but empty: send {"actions": [{"action": "screenshot"}]} or the like'
        )
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_each_once)
    except RecursionError:
        raise BatchRefused("the request is not JSON that can be read: it is nested too deep") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BatchRefused(f"the request is not JSON: {error}") from None
    except ValueError:
        raise BatchRefused("the request holds a number of more digits than can be read") from None


def _each_once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    whole = dict(pairs)
    if len(whole) != len(pairs):
        left = dict(pairs)
        # Each is taken out where it stands first, so that the second one finds nothing.
        twice = next(name for name, _ in pairs if left.pop(name, left) is left)
        raise BatchRefused(f"the request names the field {twice[:60]!r} twice")
    return whole


def _too_long() -> BatchRefused:
    return BatchRefused(f"the request is longer than {MAX_REQUEST >> 20} MiB: send it in parts")
