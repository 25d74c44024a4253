"""Requests on standard input, one JSON object a line, for as long as it is open; their answers on standard output.

The picture's bytes follow the answer's line, whose ``picture.bytes`` is their number. The end of standard input between
two requests is the end: what a named session holds is kept for a minute. In the middle of one it means that nobody
waits for the answer: the batch stops at its next action and what it held is released.

Over a transport that can only carry text the picture is in the answer's line, as base64. Over one that leaves the pipes
open when it is cut, silence is taken for the end; an empty line then says that somebody is still there.
"""

from __future__ import annotations

import json
import os
import select
import signal
from typing import Any, Optional

from .answering import Reply, answer, error_reply
from .caller import Caller, release
from .errors import BatchRefused, DeskhandError, SetupError
from .hand import Hand
from .resident import MAX_REQUEST, read_request
from .stream_lease import REQUESTS, StreamLease


def serve(hand: Hand, stdin: int, stdout: int, text: bool = False, silence: Optional[float] = None) -> int:
    """Answer until standard input ends, nobody reads the answers, or SIGTERM, SIGINT or SIGHUP; the exit status.

    ``text``: the picture is in the answer as base64. ``silence``: seconds without a byte that count as the end.
    """
    stream = _Stream(hand, stdin, stdout, text, silence)
    try:
        return stream.serve()
    finally:
        stream.lease.end()
        if stream.caller.gone:
            release(hand)
        try:
            hand.close(keep=not stream.caller.gone)
        except DeskhandError:
            pass  # the display is gone, and what was held on it


class _Stream:
    def __init__(self, hand: Hand, stdin: int, stdout: int, text: bool, silence: Optional[float]) -> None:
        self._hand = hand
        self._stdin = stdin
        self._stdout = stdout
        self._wake, waker = os.pipe()
        self._text = text
        self._silent = silence is not None
        self.lease = StreamLease(hand)
        self.caller = Caller(hand, stdin, stdout, MAX_REQUEST, silence, self._cut)
        os.set_blocking(waker, False)
        # The signal alone would not end a read (PEP 475).
        signal.set_wakeup_fd(waker)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.caller.leave())

    def serve(self) -> int:
        status = 0
        while True:
            line = self._line()
            if line is None:
                return status
            if self._silent and not line:
                continue
            try:
                with self.caller.watched():
                    reply = self._reply(line)
            except SetupError as error:
                reply = error_reply(error)
            if self.caller.waits():
                self._write(reply)
            if not self.caller.waits():
                return 1
            status = reply.status
            if len(line) > MAX_REQUEST:
                return status  # where the next request begins is anybody's guess

    def _reply(self, line: bytes) -> Reply:
        try:
            request: Any = read_request(line)
        except BatchRefused as error:
            return error_reply(error)
        if isinstance(request, dict) and request.get("request") in REQUESTS:
            return self.lease.answer(request)
        return answer(self._hand, request, self.caller.waits)

    def _line(self) -> Optional[bytes]:
        """The next request; None when there is none. One without its newline was cut off, and is none."""
        buffer = self.caller.buffer
        looked = 0
        while True:
            end = buffer.find(b"\n", looked)
            if end >= 0 or len(buffer) > MAX_REQUEST:
                line = bytes(buffer[: end if end >= 0 else len(buffer)])
                del buffer[: len(line) + 1]
                return line
            looked = len(buffer)
            ready, _, _ = select.select([self._stdin, self._wake], [], [], self.caller.patience())
            if not ready or self._wake in ready or not self.caller.waits():
                return None
            data = os.read(self._stdin, 1 << 16)
            if not data:
                return None
            buffer += data
            self.caller.heard()

    def _cut(self) -> None:
        self._hand.cut()
        self.lease.cut()

    def _write(self, reply: Reply) -> None:
        content, body = b"", reply.with_base64() if self._text else reply.answer
        if reply.picture is not None and not self._text:
            content = reply.picture.content
            body = {**body, "picture": {**body["picture"], "bytes": len(content)}}
        rest = memoryview(json.dumps({**body, "status": reply.status}).encode() + b"\n" + content)
        # As much as a pipe takes at once (pipe(7), PIPE_BUF), so that a signal ends us also when nobody reads.
        poll = select.poll()
        poll.register(self._stdout, select.POLLOUT)
        poll.register(self._wake, select.POLLIN)
        try:
            while rest:
                if any(descriptor == self._wake for descriptor, _bits in poll.poll()):
                    self.caller.gone = True
                    return
                rest = rest[os.write(self._stdout, rest[: select.PIPE_BUF]) :]
        except OSError:
            self.caller.gone = True
