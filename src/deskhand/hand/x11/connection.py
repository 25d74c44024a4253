"""One connection to an X server: requests out; replies, errors and events in; a deadline on every wait.

Source: X Window System Protocol, Appendix B (encoding) and section 8 (connection setup); BIG-REQUESTS.
Synchronous and for one thread at a time. Nothing here needs a display at import.
"""

from __future__ import annotations

import array
import os
import select
import socket
import struct
import sys
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from ..errors import DisplayLost, DisplayTimeout, NoDisplay, RequestFailed
from . import auth
from .display_name import DisplayName, found_displays, parse_display
from .events import Event
from .setup import Screen, Setup, parse_setup

#: Seconds any single wait for the server may take, connecting and set-up included.
DEFAULT_TIMEOUT = 5.0
GET_INPUT_FOCUS, QUERY_EXTENSION, INTERN_ATOM, GET_ATOM_NAME = 43, 98, 16, 17
_EVENT_KINDS = {
    2: "KeyPress", 3: "KeyRelease", 4: "ButtonPress", 5: "ButtonRelease", 6: "MotionNotify", 9: "FocusIn",
    10: "FocusOut", 12: "Expose", 15: "VisibilityNotify", 16: "CreateNotify", 17: "DestroyNotify", 18: "UnmapNotify",
    19: "MapNotify", 21: "ReparentNotify", 22: "ConfigureNotify", 24: "GravityNotify", 26: "CirculateNotify",
    28: "PropertyNotify", 29: "SelectionClear", 30: "SelectionRequest", 31: "SelectionNotify", 33: "ClientMessage",
    34: "MappingNotify",
}  # fmt: skip
_EXTENSION_EVENTS = {
    "DAMAGE": ("Notify",),
    "XFIXES": ("SelectionNotify", "CursorNotify"),
    "RANDR": ("ScreenChangeNotify",),
}


class Extension(NamedTuple):
    """Where the server put an extension (X11 Protocol, QueryExtension)."""

    name: str
    major: int
    first_event: int
    first_error: int


class Connection:
    """A connection to one X server.

    Requests are buffered by ``send`` and leave with the next ``flush``, ``reply``, ``sync`` or ``wait``. Errors of
    requests without a reply are raised by the next ``sync`` unless they were sent with ``ignore=True``. Events go to
    the callables given to ``subscribe``, in order, as soon as they are read.
    """

    def __init__(self, sock: socket.socket, name: DisplayName, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self._socket = sock
        self._out: List[bytes] = []
        self._in = bytearray()
        self._sent = 0  # sequence number of the last request queued
        self._answered = 0  # of the last reply, error or event read
        self._events = 0  # how many were handed to subscribers
        self._synced = 0  # of the last request known to be answered: keeps 16-bit sequence numbers unambiguous
        self._awaited: Set[int] = set()
        self._replies: Dict[int, Union[bytes, RequestFailed]] = {}
        self._ignored: Set[int] = set()
        self._names: Dict[int, Tuple[int, int]] = {}  # sequence -> (major, minor), for the words of an error
        self._errors: List[RequestFailed] = []
        self._subscribers: List[Callable[[Event], None]] = []
        self._lost: Optional[DisplayLost] = None
        self._atoms: Dict[str, int] = {}
        self._atom_names: Dict[int, str] = {}
        self._extensions: Dict[str, Optional[Extension]] = {}
        self._event_names = dict(_EVENT_KINDS)
        self._next_id = 0
        self.setup: Setup
        self.screen: Screen
        self.cookie_note = ""

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
        self = cls(_connect(name, timeout), name, timeout)
        self.cookie_note = note
        try:
            self._set_up(cookie)
            if not 0 <= name.screen < len(self.setup.screens):
                raise NoDisplay(f"display {name} has no screen {name.screen}: it has {len(self.setup.screens)}")
        except BaseException:
            self.close()
            raise
        self.screen = self.setup.screens[name.screen]
        self._next_id = self.setup.id_base
        return self

    def close(self) -> None:
        """End the connection; the server frees everything it held for us. Calling it again does nothing."""
        if self._lost is None:
            self._lost = DisplayLost(f"the connection to display {self.name} is closed")
        self._socket.close()
        self._subscribers.clear()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._lost is not None

    @property
    def root(self) -> int:
        """The root window of our screen."""
        return self.screen.root

    def fileno(self) -> int:
        return self._socket.fileno()

    def _set_up(self, cookie: Optional[bytes]) -> None:
        """X11 Protocol, section 8, Connection Setup."""
        name, data = (auth.MIT_MAGIC_COOKIE, cookie) if cookie else (b"", b"")
        order = b"l" if sys.byteorder == "little" else b"B"
        head = struct.pack("=cxHHHH2x", order, 11, 0, len(name), len(data))
        self._out.append(head + _padded(name) + _padded(data))
        deadline = time.monotonic() + self.timeout
        self._drain(deadline, "connection set-up")
        while True:
            if len(self._in) >= 8:
                status, reason_length, _major, _minor, length = struct.unpack_from("=BBHHH", self._in)
                if len(self._in) >= 8 + 4 * length:
                    break
            if not self._read(deadline):
                raise self._timed_out("connection set-up")
        body = bytes(self._in[8 : 8 + 4 * length])
        del self._in[: 8 + 4 * length]
        if status != 1:
            reason = body[: reason_length if status == 0 else None].decode("latin-1").strip(" \0\n")
            raise NoDisplay(
                f"display {self.name} refuses this connection ({reason or 'no reason given'}): tried {self.cookie_note};"
                " set XAUTHORITY to the file of the user the display belongs to"
            )
        self.setup = parse_setup(body)

    # -- requests -----------------------------------------------------------------------------------------------

    def send(self, major: int, minor: int, body: bytes = b"", fds: Sequence[int] = (), ignore: bool = False) -> int:
        """Queue one request; ``minor`` is its second byte (the minor opcode, or core data). Gives its sequence number.

        File descriptors in ``fds`` go with it over the socket. With ``ignore`` an error answer is dropped.
        """
        self._check()
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
        self._sent += 1
        if ignore:
            self._ignored.add(self._sent)
        self._names[self._sent] = (major, minor)
        if fds:
            self._drain(time.monotonic() + self.timeout, "a request")
            self._send_with_fds(request, fds)
        else:
            self._out.append(request)
        return self._sent

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
        major, minor = self._names.get(sequence, (0, 0))
        while sequence not in self._replies:
            self._drain(deadline, "a request")
            if not self._read(deadline):
                raise self._timed_out(self._request_name(major, minor))
        answer = self._replies.pop(sequence)
        if isinstance(answer, RequestFailed):
            raise answer
        return answer

    def flush(self) -> None:
        """Hand everything queued to the server."""
        self._drain(time.monotonic() + self.timeout, "a request")

    def sync(self) -> None:
        """A round trip: every request so far has been carried out. Raises the first error that came back."""
        self._round_trip()
        if self._errors:
            errors, self._errors = self._errors, []
            raise errors[0]

    def _round_trip(self) -> None:
        self._sent += 1
        self._names[self._sent] = (GET_INPUT_FOCUS, 0)
        self._awaited.add(self._sent)
        self._out.append(struct.pack("=BBH", GET_INPUT_FOCUS, 0, 1))
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
        if name not in self._extensions:
            raw = name.encode("ascii")
            data = self.call(QUERY_EXTENSION, 0, struct.pack("=H2x", len(raw)) + raw)
            present, major, event, error = struct.unpack_from("=4B", data, 8)
            self._extensions[name] = Extension(name, major, event, error) if present else None
            for offset, kind in enumerate(_EXTENSION_EVENTS.get(name, ()) if present else ()):
                self._event_names[event + offset] = f"{name}.{kind}"
        return self._extensions[name]

    def _enable_big_requests(self) -> None:
        """BIG-REQUESTS, BigReqEnable: raises the longest request from 256 KiB to what the server takes."""
        big = None if self.setup.max_request_length > 0xFFFF else self.extension("BIG-REQUESTS")
        if big is not None:
            (self.setup.max_request_length,) = struct.unpack_from("=I", self.call(big.major, 0), 8)

    # -- events -----------------------------------------------------------------------------------------------------

    def subscribe(self, subscriber: Callable[[Event], None]) -> "Subscription":
        """Hand every event read from now on to ``subscriber``; a context manager that ends it."""
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
            self._drain(deadline, "a request")
            ready = self._poll(deadline, fds)
            if ready is None:
                return bool(condition())

    def read_pending(self) -> None:
        """Take in whatever has arrived, without waiting."""
        while self._read(0.0):
            pass

    # -- the socket ---------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._lost is not None:
            raise self._lost

    def _poll(self, deadline: float, fds: Sequence[int] = (), write: bool = False) -> Optional[int]:
        """Wait until the socket (or one of ``fds``) is ready; None when the deadline passes first."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | (select.POLLOUT if write else 0))
        for fd in fds:
            poll.register(fd, select.POLLIN)
        left = deadline - time.monotonic()
        # Rounded up: poll counts whole milliseconds, and a wait of 0 would spin.
        ready = poll.poll(max(0, int(left * 1000 + 0.999)))
        if not ready:
            return None
        return next((flags for fd, flags in ready if fd == self._socket.fileno()), 0)

    def _drain(self, deadline: float, what: str) -> None:
        """Write all that is queued, reading meanwhile so that neither side waits for the other for ever."""
        self._check()
        if not self._out:
            return
        data = memoryview(b"".join(self._out))
        self._out.clear()
        while data:
            try:
                data = data[self._socket.send(data, socket.MSG_NOSIGNAL) :]
                continue
            except BlockingIOError:
                pass
            except OSError as error:
                raise self._gone(error) from None
            flags = self._poll(deadline, write=True)
            if flags is None:
                raise self._timed_out(what)
            if flags & ~select.POLLOUT:
                self._read(0.0)

    def _send_with_fds(self, request: bytes, fds: Sequence[int]) -> None:
        if self.name.host:
            raise ValueError("file descriptors can not be passed over TCP")
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        try:
            self._socket.sendmsg([request], ancillary, socket.MSG_NOSIGNAL)
        except OSError as error:
            raise self._gone(error) from None

    def _read(self, deadline: float) -> bool:
        """Take in what has arrived; wait for it until ``deadline`` (0: not at all). False when nothing came."""
        self._check()
        while True:
            try:
                data = self._socket.recv(1 << 18)
            except BlockingIOError:
                if deadline == 0.0 or self._poll(deadline) is None:
                    return False
                continue
            except OSError as error:
                raise self._gone(error) from None
            if not data:
                raise self._gone(None)
            self._in += data
            if hasattr(self, "setup"):
                self._parse()
            return True

    def _parse(self) -> None:
        at, buffer = 0, self._in
        events: List[Event] = []
        while len(buffer) - at >= 32:
            kind, low = buffer[at], struct.unpack_from("=H", buffer, at + 2)[0]
            size = 32
            if kind == 1 or kind & 0x7F == 35:  # a reply, or a generic event: both may be longer
                size += 4 * int(struct.unpack_from("=I", buffer, at + 4)[0])
                if len(buffer) - at < size:
                    break
            packet = bytes(buffer[at : at + size])
            at += size
            sequence = self._full_sequence(low)
            if kind == 1:
                self._synced = sequence
                if sequence in self._awaited:
                    self._awaited.discard(sequence)
                    self._replies[sequence] = packet
            elif kind == 0:
                self._take_error(sequence, packet)
            else:
                events.append(Event(self._event_names.get(kind & 0x7F, f"event {kind & 0x7F}"), packet))
            if kind <= 1:
                for done in [number for number in self._names if number <= sequence]:
                    del self._names[done]
                self._ignored = {number for number in self._ignored if number > sequence}
        del buffer[:at]
        # Subscribers may read again themselves, so they are called when the buffer is in order.
        self._events += len(events)
        for event in events:
            for subscriber in list(self._subscribers):
                subscriber(event)

    def _full_sequence(self, low: int) -> int:
        sequence = (self._answered & ~0xFFFF) | low
        if sequence < self._answered:
            sequence += 0x10000
        if sequence <= self._sent:
            self._answered = sequence
        return sequence

    def _take_error(self, sequence: int, packet: bytes) -> None:
        code, _sequence, value, minor, major = struct.unpack_from("=xBHIHB", packet)
        sent = self._names.get(sequence)
        error = RequestFailed(self._error_name(code), self._request_name(major, sent[1] if sent else minor), value)
        if sequence in self._awaited:
            self._awaited.discard(sequence)
            self._replies[sequence] = error
        elif sequence not in self._ignored:
            self._errors.append(error)

    def _request_name(self, major: int, minor: int) -> str:
        from . import protocol  # only an error needs the names

        if major < 128:
            return protocol.REQUESTS[""].get(major, f"request {major}")
        for extension in self._extensions.values():
            if extension is not None and extension.major == major:
                return f"{extension.name} {protocol.REQUESTS.get(extension.name, {}).get(minor, minor)}"
        return f"request {major}.{minor}"

    def _error_name(self, code: int) -> str:
        from . import protocol

        if code < 128:
            return protocol.ERRORS[""].get(code, f"error {code}")
        owners = [e for e in self._extensions.values() if e is not None and 0 < e.first_error <= code]
        if owners:
            owner = max(owners, key=lambda e: e.first_error)
            name = protocol.ERRORS.get(owner.name, {}).get(code - owner.first_error)
            if name:
                return name
        return f"error {code}"

    def _gone(self, error: Optional[OSError]) -> DisplayLost:
        why = f" ({error.strerror})" if error is not None and error.strerror else ""
        self._lost = DisplayLost(f"the X server of display {self.name} closed the connection{why}: it may have ended")
        self._socket.close()
        return self._lost

    def _timed_out(self, what: str) -> DisplayTimeout:
        lost = DisplayTimeout(
            f"display {self.name} did not answer {what} within {self.timeout:g} s:"
            " another client may hold a grab of the server, or it hangs"
        )
        self._lost = lost
        self._socket.close()
        return lost


class Subscription:
    """What ``Connection.subscribe`` gives; ``end()`` or leaving the ``with`` block stops the events."""

    def __init__(self, subscribers: List[Callable[[Event], None]], subscriber: Callable[[Event], None]) -> None:
        self._subscribers = subscribers
        self._subscriber = subscriber

    def end(self) -> None:
        if self._subscriber in self._subscribers:
            self._subscribers.remove(self._subscriber)

    def __enter__(self) -> "Subscription":
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _connect(name: DisplayName, timeout: float) -> socket.socket:
    """A connected, non-blocking socket to the server of ``name``."""
    tried: List[str] = []
    for family, address in _addresses(name):
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.settimeout(timeout)
        try:
            sock.connect(address)
        except socket.timeout:
            sock.close()
            raise DisplayTimeout(f"display {name} did not take the connection within {timeout:g} s") from None
        except OSError as error:
            sock.close()
            tried.append(f"{error.strerror or error}")
            continue
        if family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        return sock
    why = f" ({tried[0]})" if tried else ""
    raise NoDisplay(f"no X server listens on display {name}{why}: set DISPLAY to a running one{found_displays()}")


def _addresses(name: DisplayName) -> Iterator[Tuple[int, Any]]:
    if not name.host:
        yield socket.AF_UNIX, name.socket_path
        # The abstract socket is what is left when another mount namespace hides /tmp.
        yield socket.AF_UNIX, "\0" + name.socket_path
        return
    try:
        found = socket.getaddrinfo(name.host, 6000 + name.number, type=socket.SOCK_STREAM)
    except (OSError, OverflowError) as error:
        raise NoDisplay(f"display {name}: the host can not be found ({error})") from None
    for family, _kind, _protocol, _canonical, address in found:
        yield family, address
