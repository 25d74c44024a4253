"""One connection to the launcher: a bounded request, answers, and whose it is. Every wait has a deadline."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Container
from typing import Any

#: 255 characters of up to four bytes, and the verb.
LONGEST_REQUEST = 1100
#: Seconds a peer may take for its request, and for taking an answer.
PATIENCE = 5.0
#: What is read of a request that is too long, so that its sender gets to the sentence.
_MOST_DISCARDED = 1 << 20


Answer = dict[str, Any]


class Refused(Exception):
    """The request is none. The sentence is for whoever wrote the peer."""


class Gone(Exception):
    """The peer asked for nothing, or does not take its answer. Nobody is to be told."""


class Peer:
    """One connection. Every wait has a deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        _, self.uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))

    def fileno(self) -> int:
        return self._connection.fileno()

    def request(self, whole: Container[bytes]) -> bytes:
        """The request's line without its newline. One of ``whole`` needs none.

        Raises:
            Refused: it is cut off, too late, too long, or more than one.
            Gone: nothing was sent.
        """
        data = b""
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in data and data not in whole:
            self._connection.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                piece = self._connection.recv(LONGEST_REQUEST + 1 - len(data))
            except TimeoutError:
                if not data:
                    raise Gone from None
                raise Refused(f"the request was not whole after {PATIENCE:g} s: end it with a newline") from None
            except OSError:
                raise Gone from None
            data += piece
            if not piece and not data:
                raise Gone
            if not piece:
                raise Refused("the request ends without a newline: it may be cut off")
            if len(data) > LONGEST_REQUEST:
                self._discard(deadline)
                raise Refused(f"the request is longer than {LONGEST_REQUEST} bytes: send one name and a newline")
        line, _, rest = data.partition(b"\n")
        if rest:
            raise Refused("something follows the request: send one a connection")
        return line

    def _discard(self, deadline: float) -> None:
        """Read on, or the sender is stopped by EPIPE and never reads its sentence."""
        read = 0
        with contextlib.suppress(OSError):
            while read < _MOST_DISCARDED and time.monotonic() < deadline:
                # What a sender has not sent by now is not on its way.
                self._connection.settimeout(0.05)
                piece = self._connection.recv(1 << 16)
                if not piece:
                    return
                read += len(piece)

    def send(self, answer: Answer) -> None:
        """Send one line.

        Raises:
            Gone: it does not take it.
        """
        self._connection.settimeout(PATIENCE)
        try:
            self._connection.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            raise Gone from None

    def has_closed(self) -> bool:
        """Whether its end is closed; one that goes on to send is not heard any more either. Never waits."""
        self._connection.setblocking(False)
        try:
            self._connection.recv(1)
            return True
        except BlockingIOError:
            return False
        except OSError:
            return True
