"""One connection to an X server: requests out; replies, errors and events in; a deadline on every wait.

Source: X Window System Protocol, Appendix B (encoding) and section 8 (connection setup); BIG-REQUESTS.
Synchronous and for one thread at a time. Nothing here needs a display at import.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..errors import DisplayLost, NoDisplay, RequestFailed
from . import auth
from .display_name import found_displays, parse_display
from .events import Event, Subscription
from .extensions import Extension, Extensions
from .setup import Screen, Setup, parse_setup
from .wire import Wire, connect

__all__ = ["DEFAULT_TIMEOUT", "Connection", "Extension", "Subscription"]

#: Seconds any single wait for the server may take, connecting and set-up included.
DEFAULT_TIMEOUT = 5.0
#: Seconds that events are read at a time: a client can make them faster than they are read.
READ_SECONDS = 0.02
GET_INPUT_FOCUS, QUERY_EXTENSION, INTERN_ATOM, GET_ATOM_NAME = 43, 98, 16, 17
KEYMAP_NOTIFY, GENERIC_EVENT = 11, 35


class _Sent(NamedTuple):
    """A request under way, for the words of its error."""

    sequence: int
    major: int
    minor: int
    ignore: bool


class Connection:
    """A connection to one X server.

    Requests are buffered by ``send`` and leave with the next ``flush``, ``reply``, ``sync`` or ``wait``. Errors of
    requests without a reply are raised by the next ``sync`` unless they were sent with ``ignore=True``. Events go to
    the callables given to ``subscribe``, in order, as soon as they are read.
    """

    def __init__(self, wire: Wire) -> None:
        self.name = wire.name
        self.timeout = wire.timeout
        self._wire = wire
        self._sent = 0  # sequence number of the last request queued
        self._answered = 0  # of the last reply, error or event read
        self._events = 0  # how many were handed to subscribers
        self._synced = 0  # of the last request known to be answered: keeps 16-bit sequence numbers unambiguous
        self._under_way: Deque[_Sent] = deque()
        self._awaited: Set[int] = set()
        self._replies: Dict[int, Union[bytes, RequestFailed]] = {}
        self._errors: List[Tuple[int, RequestFailed]] = []
        self._arrived: Deque[Event] = deque()
        self._handing_over = False
        self._subscribers: List[Callable[[Event], None]] = []
        self._atoms: Dict[str, int] = {}
        self._atom_names: Dict[int, str] = {}
        self._extensions = Extensions()
        self._next_id = 0
        self.setup: Setup
        self.screen: Screen
        self.cookie_note = ""
        #: The cookie file it was opened with; None for the default one.
        self.xauthority: Optional[str] = None

    # -- opening and closing ------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, display: Optional[str] = None, xauthority: Optional[str] = None, timeout: float = DEFAULT_TIMEOUT
    ) -> "Connection":
        """Connect to ``display`` (else DISPLAY) with the cookie of ``xauthority`` (else XAUTHORITY, ~/.Xauthority).

        Raises:
            NoDisplay: no display is named, none answers there, or it refuses us; says what was tried.
            DisplayTimeout: the server took the connection and did not answer within ``timeout`` seconds.
        """
        text = display or os.environ.get("DISPLAY") or ""
        if not text:
            raise NoDisplay(f"no display is named: set DISPLAY or pass --display{found_displays()}")
        name = parse_display(text)
        cookie, note = auth.find_cookie(name, xauthority or auth.default_file())
        deadline = time.monotonic() + timeout
        self = cls(connect(name, timeout))
        self.cookie_note = note
        self.xauthority = xauthority
        try:
            self._set_up(cookie, deadline)
            if not 0 <= name.screen < len(self.setup.screens):
                raise NoDisplay(f"display {name} has no screen {name.screen}: it has {len(self.setup.screens)}")
        except BaseException:
            self.close()
            raise
        self.screen = self.setup.screens[name.screen]
        self._next_id = self.setup.id_base
        return self

    def close(self) -> None:
        """End the connection; the server frees everything it held for us. Calling it again does nothing.

        A server may drop what it has not read by then: ``sync`` first where that matters.
        """
        self._wire.close()
        self._subscribers.clear()

    def cut(self) -> None:
        """End both directions, from any thread: whatever waits for the server now raises ``DisplayLost``."""
        self._wire.cut()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._wire.closed

    @property
    def root(self) -> int:
        """The root window of our screen."""
        return self.screen.root

    def fileno(self) -> int:
        return self._wire.fileno()

    def _set_up(self, cookie: Optional[bytes], deadline: float) -> None:
        """X11 Protocol, section 8, Connection Setup."""
        name, data = (auth.MIT_MAGIC_COOKIE, cookie) if cookie else (b"", b"")
        order = b"l" if sys.byteorder == "little" else b"B"
        wire = self._wire
        wire.put(struct.pack("=cxHHHH2x", order, 11, 0, len(name), len(data)) + _padded(name) + _padded(data))
        wire.drain(deadline, "connection set-up")
        while True:
            if len(wire.incoming) >= 8:
                status, reason_length, _major, _minor, length = struct.unpack_from("=BBHHH", wire.incoming)
                if len(wire.incoming) >= 8 + 4 * length:
                    break
            if not wire.read(deadline):
                raise wire.timed_out("connection set-up")
        body = bytes(wire.incoming[8 : 8 + 4 * length])
        del wire.incoming[: 8 + 4 * length]
        if status != 1:
            reason = body[: reason_length if status == 0 else None].decode("latin-1").strip(" \0\n")
            raise NoDisplay(
                f"display {self.name} refuses this connection ({reason or 'no reason given'}):"
                f" {self.cookie_note}; set XAUTHORITY to the file of the user the display belongs to"
            )
        self.setup = parse_setup(body)
        wire.arrived = self._parse

    # -- requests -----------------------------------------------------------------------------------------------

    def send(self, major: int, minor: int, body: bytes = b"", fds: Sequence[int] = (), ignore: bool = False) -> int:
        """Queue one request; ``minor`` is its second byte (the minor opcode, or core data). Gives its sequence number.

        File descriptors in ``fds`` go with it over the socket. With ``ignore`` an error answer is dropped.
        """
        self._wire.check()
        body = _padded(body)
        length = 1 + len(body) // 4
        if length <= min(self.setup.max_request_length, 0xFFFF):
            request = struct.pack("=BBH", major, minor, length) + body
        else:
            self._enable_big_requests()
            if length + 1 > self.setup.max_request_length:
                raise ValueError(f"a request of {4 * length} bytes is more than display {self.name} takes")
            request = struct.pack("=BBHI", major, minor, 0, length + 1) + body
        if self._sent - self._synced > 0x7000:
            self._round_trip()
        self._queue(request, major, minor, fds, ignore)
        if fds:
            self.flush()
        return self._sent

    def _queue(self, request: bytes, major: int, minor: int, fds: Sequence[int] = (), ignore: bool = False) -> None:
        self._sent += 1
        self._under_way.append(_Sent(self._sent, major, minor, ignore))
        self._wire.put(request, fds)

    def call(self, major: int, minor: int, body: bytes = b"", fds: Sequence[int] = ()) -> bytes:
        """Send a request that has a reply and wait for it. Gives the whole reply, its 32-byte head included."""
        return self.reply(self.ask(major, minor, body, fds))

    def ask(self, major: int, minor: int, body: bytes = b"", fds: Sequence[int] = ()) -> int:
        """Send a request that has a reply; ``reply`` takes the number it gives. Several may be under way."""
        sequence = self.send(major, minor, body, fds)
        self._awaited.add(sequence)
        return sequence

    def reply(self, sequence: int) -> bytes:
        """The reply to a request sent by ``ask``.

        Raises:
            RequestFailed: the server answered with an error.
            DisplayTimeout: no answer within the deadline.
        """
        deadline = time.monotonic() + self.timeout
        while sequence not in self._replies:
            self._wire.drain(deadline, "a request")
            if not self._wire.read(deadline):
                names = [self._extensions.request_name(r.major, r.minor) for r in self._under_way if r[0] == sequence]
                raise self._wire.timed_out(names[0] if names else "a request")
        answer = self._replies.pop(sequence)
        if isinstance(answer, RequestFailed):
            raise answer
        return answer

    def replies(self, sequences: Sequence[int]) -> List[bytes]:
        """The replies to several requests sent by ``ask``; all are taken, also when one failed.

        Raises:
            RequestFailed: the server answered with an error; the first of them.
        """
        answers, errors = [], []
        for sequence in sequences:
            try:
                answers.append(self.reply(sequence))
            except RequestFailed as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return answers

    def flush(self) -> None:
        """Hand everything queued to the server."""
        self._wire.drain(time.monotonic() + self.timeout, "a request")

    def sync(self, asked: Sequence[int] = ()) -> List[bytes]:
        """A round trip: every request so far has been carried out. Raises the first error that came back.

        Gives the replies to ``asked``, requests sent by ``ask``, which have come with it.
        """
        self._round_trip()
        if self._errors:
            errors, self._errors = self._errors, []
            for sequence in asked:
                self._replies.pop(sequence, None)
            raise errors[0][1]
        return self.replies(asked)

    def check(self, sequence: int) -> None:
        """A round trip that raises the error of one request without a reply, and leaves all others to ``sync``."""
        self._round_trip()
        for index, (number, error) in enumerate(self._errors):
            if number == sequence:
                del self._errors[index]
                raise error

    def _round_trip(self) -> None:
        self._queue(struct.pack("=BBH", GET_INPUT_FOCUS, 0, 1), GET_INPUT_FOCUS, 0)
        self._awaited.add(self._sent)
        self.reply(self._sent)

    def new_id(self) -> int:
        """A fresh resource id."""
        self._next_id += 1
        if self._next_id - self.setup.id_base > self.setup.id_mask:
            raise DisplayLost(f"the resource ids of this connection to {self.name} are used up: connect again")
        return self._next_id

    # -- names ----------------------------------------------------------------------------------------------------

    def atom(self, name: str) -> int:
        """The atom of that name, made when there is none."""
        if name not in self._atoms:
            self.atoms([name])
        return self._atoms[name]

    def atoms(self, names: Iterable[str]) -> List[int]:
        """Several atoms in one round trip."""
        wanted = list(names)
        asked = {}
        for name in wanted:
            if name not in self._atoms and name not in asked:
                raw = name.encode("latin-1")
                asked[name] = self.ask(INTERN_ATOM, 0, struct.pack("=H2x", len(raw)) + raw)
        for name, sequence in asked.items():
            (self._atoms[name],) = struct.unpack_from("=I", self.reply(sequence), 8)
            self._atom_names[self._atoms[name]] = name
        return [self._atoms[name] for name in wanted]

    def atom_name(self, atom: int) -> str:
        """The name of an atom; an empty string for None (0)."""
        if atom == 0:
            return ""
        if atom not in self._atom_names:
            data = self.call(GET_ATOM_NAME, 0, struct.pack("=I", atom))
            (length,) = struct.unpack_from("=H", data, 8)
            self._atom_names[atom] = data[32 : 32 + length].decode("latin-1")
        return self._atom_names[atom]

    def extension(self, name: str) -> Optional[Extension]:
        """The extension of that name, or None when the server has none."""
        if name not in self._extensions.known:
            raw = name.encode("ascii")
            data = self.call(QUERY_EXTENSION, 0, struct.pack("=H2x", len(raw)) + raw)
            present, major, event, error = struct.unpack_from("=4B", data, 8)
            self._extensions.add(name, Extension(name, major, event, error) if present else None)
        return self._extensions.known[name]

    def _enable_big_requests(self) -> None:
        """BIG-REQUESTS, BigReqEnable: raises the longest request from 256 KiB to what the server takes."""
        big = None if self.setup.max_request_length > 0xFFFF else self.extension("BIG-REQUESTS")
        if big is not None:
            (self.setup.max_request_length,) = struct.unpack_from("=I", self.call(big.major, 0), 8)

    # -- events -----------------------------------------------------------------------------------------------------

    def subscribe(self, subscriber: Callable[[Event], None]) -> "Subscription":
        """Hand every event read from now on to ``subscriber``; a context manager that ends it.

        A subscriber may send requests and await replies; it can not wait for events.
        """
        self._subscribers.append(subscriber)
        return Subscription(self._subscribers, subscriber)

    def wait(self, condition: Callable[[], Any], timeout: float, fds: Sequence[int] = ()) -> bool:
        """Read events until ``condition()`` is true or ``timeout`` seconds are over; tells which.

        The condition is looked at first, after every batch of events, and whenever one of ``fds`` can be read.
        """
        deadline = time.monotonic() + timeout
        while True:
            self.read_pending()
            events = self._events
            if condition():
                return True
            if time.monotonic() >= deadline:
                return False
            if events != self._events:
                continue  # read by the condition's own requests: what they tell may come after its answer
            self._wire.drain(deadline, "a request")
            if self._wire.poll(deadline, fds) is None:
                return bool(condition())

    def read_pending(self) -> None:
        """Take in whatever has arrived, without waiting; for ``READ_SECONDS`` at most, as there may be no end of it."""
        until = time.monotonic() + READ_SECONDS
        while self._wire.read(0.0) and time.monotonic() < until:
            pass

    # -- what the server says -----------------------------------------------------------------------------------------

    def _parse(self) -> None:
        at, buffer = 0, self._wire.incoming
        while len(buffer) - at >= 32:
            kind, low = buffer[at], struct.unpack_from("=H", buffer, at + 2)[0]
            size = 32
            if kind == 1 or kind & 0x7F == GENERIC_EVENT:  # both may be longer
                size += 4 * int(struct.unpack_from("=I", buffer, at + 4)[0])
                if len(buffer) - at < size:
                    break
            with memoryview(buffer) as view:
                packet = bytes(view[at : at + size])
            at += size
            if kind & 0x7F == KEYMAP_NOTIFY:  # the only one without a sequence number
                self._arrived.append(Event("KeymapNotify", packet))
                continue
            sequence = self._full_sequence(low)
            if kind > 1:
                self._arrived.append(Event(self._extensions.event_name(kind & 0x7F), packet))
                continue
            sent = self._take_under_way(sequence)
            if kind == 0:
                self._take_error(sequence, sent, packet)
                continue
            self._synced = sequence
            if sequence in self._awaited:
                self._awaited.discard(sequence)
                self._replies[sequence] = packet
        del buffer[:at]
        if not self._handing_over:
            self._hand_over()

    def _hand_over(self) -> None:
        # A subscriber may send requests and await replies; what arrives meanwhile waits until it has returned, so that
        # events are handed over in order and one at a time, however fast they come.
        self._handing_over = True
        try:
            while self._arrived:
                event = self._arrived.popleft()
                self._events += 1
                for subscriber in list(self._subscribers):
                    subscriber(event)
        finally:
            self._handing_over = False

    def _full_sequence(self, low: int) -> int:
        sequence = (self._answered & ~0xFFFF) | low
        if sequence < self._answered:
            sequence += 0x10000
        if sequence <= self._sent:
            self._answered = sequence
        return sequence

    def _take_under_way(self, sequence: int) -> Optional[_Sent]:
        """The request of that number; it and all before it have been carried out."""
        while self._under_way and self._under_way[0].sequence <= sequence:
            sent = self._under_way.popleft()
            if sent.sequence == sequence:
                return sent
        return None

    def _take_error(self, sequence: int, sent: Optional[_Sent], packet: bytes) -> None:
        code, _sequence, value, minor, major = struct.unpack_from("=xBHIHB", packet)
        names = self._extensions
        error = RequestFailed(names.error_name(code), names.request_name(major, sent.minor if sent else minor), value)
        if sequence in self._awaited:
            self._awaited.discard(sequence)
            self._replies[sequence] = error
        elif sent is None or not sent.ignore:
            self._errors.append((sequence, error))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
