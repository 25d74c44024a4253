"""The socket to an X server: bytes in and out, in order, with a deadline on every wait."""

from __future__ import annotations

import array
import select
import socket
import struct
import time
from collections import deque
from typing import Any, Callable, Deque, Iterator, List, Optional, Sequence, Tuple

from ..errors import DisplayLost, DisplayTimeout, NoDisplay
from .display_name import DisplayName, found_displays


class Wire:
    """A connected, non-blocking socket to the server of ``name``.

    What ``put`` takes leaves with the next ``drain``, always in the order it was put. What arrives is appended to
    ``incoming``, and ``arrived`` is called, also while ``drain`` waits, so that neither side waits for the other for
    ever; it may put and drain more.
    """

    def __init__(self, sock: socket.socket, name: DisplayName, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self.incoming = bytearray()
        self.arrived: Callable[[], None] = lambda: None
        self._socket = sock
        self._out = bytearray()
        self._out_at = 0  # where ``_out`` begins in the whole stream
        self._fds: Deque[Tuple[int, Sequence[int]]] = deque()  # where in the stream descriptors go with the bytes
        self._lost: Optional[DisplayLost] = None

    @property
    def closed(self) -> bool:
        return self._lost is not None

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """End the connection. Calling it again does nothing."""
        if self._lost is None:
            self._lost = DisplayLost(f"the connection to display {self.name} is closed")
        self._socket.close()

    def cut(self) -> None:
        """End both directions, from any thread: whatever waits for the server now raises ``DisplayLost``."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already

    def check(self) -> None:
        """Raises DisplayLost, or what became of the connection before, when it is over."""
        if self._lost is not None:
            # A new one each time: whoever catches it adds facts of its own.
            raise type(self._lost)(str(self._lost))

    def put(self, data: bytes, fds: Sequence[int] = ()) -> None:
        """Queue bytes; the descriptors in ``fds`` must stay open until they are drained."""
        if fds:
            if self.name.host:
                raise ValueError("file descriptors can not be passed over TCP")
            self._fds.append((self._out_at + len(self._out), fds))
        self._out += data

    def drain(self, deadline: float, what: str) -> None:
        """Write all that is queued, reading meanwhile. ``what`` names it for the words of a timeout."""
        self.check()
        while self._out:
            try:
                sent = self._write()
            except BlockingIOError:
                flags = self.poll(deadline, write=True)
                if flags is None:
                    raise self.timed_out(what) from None
                if flags & ~select.POLLOUT:
                    self.read(0.0)
                continue
            except OSError as error:
                raise self._gone(error) from None
            del self._out[:sent]
            self._out_at += sent

    def _write(self) -> int:
        fds: Sequence[int] = ()
        if self._fds and self._fds[0][0] == self._out_at:
            fds = self._fds[0][1]
        later = [at for at, _ in self._fds if at > self._out_at][:1]
        with memoryview(self._out) as everything, everything[: later[0] - self._out_at if later else None] as part:
            if not fds:
                return self._socket.send(part, socket.MSG_NOSIGNAL)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
            sent = self._socket.sendmsg([part], [rights], socket.MSG_NOSIGNAL)
        self._fds.popleft()
        return sent

    def read(self, deadline: float) -> bool:
        """Take in what has arrived; wait for it until ``deadline`` (0: not at all). False when nothing came."""
        self.check()
        while True:
            try:
                data = self._socket.recv(1 << 18)
            except BlockingIOError:
                if deadline == 0.0 or self.poll(deadline) is None:
                    return False
                continue
            except OSError as error:
                raise self._gone(error) from None
            if not data:
                raise self._gone(None)
            self.incoming += data
            self.arrived()
            return True

    def poll(self, deadline: float, fds: Sequence[int] = (), write: bool = False) -> Optional[int]:
        """Wait until the socket (or one of ``fds``) is ready: the socket's flags; None when the deadline passes."""
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

    def timed_out(self, what: str) -> DisplayTimeout:
        """Give the connection up, so that no late answer is misread; the error to raise."""
        lost = DisplayTimeout(
            f"display {self.name} did not answer {what} within {self.timeout:g} s:"
            " another client may hold a grab of the server, or it hangs"
        )
        self._lost = lost
        self._socket.close()
        return lost

    def _gone(self, error: Optional[OSError]) -> DisplayLost:
        why = f" ({error.strerror})" if error is not None and error.strerror else ""
        self._lost = DisplayLost(f"the X server of display {self.name} closed the connection{why}: it may have ended")
        self._socket.close()
        return self._lost


def connect(name: DisplayName, timeout: float) -> Wire:
    """A connection to the server of ``name``, made within ``timeout`` seconds.

    Raises:
        NoDisplay: nobody listens there.
        DisplayTimeout: somebody does, and does not take the connection.
    """
    tried: List[str] = []
    deadline = time.monotonic() + timeout
    for family, address in _addresses(name):
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            _connect_until(sock, address, deadline)
        except socket.timeout:
            sock.close()
            raise DisplayTimeout(
                f"display {name} did not take the connection within {timeout:g} s: its X server hangs"
            ) from None
        except OSError as error:
            sock.close()
            tried.append(f"{error.strerror or error}")
            continue
        if family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        return Wire(sock, name, timeout)
    why = f" ({tried[0]})" if tried else ""
    raise NoDisplay(f"no X server listens on display {name}{why}: set DISPLAY to a running one{found_displays()}")


def _connect_until(sock: socket.socket, address: Any, deadline: float) -> None:
    left = max(0.001, deadline - time.monotonic())
    if sock.family != socket.AF_UNIX:
        sock.settimeout(left)
        sock.connect(address)
        return
    # A non-blocking connect to a unix socket whose queue is full fails at once; the kernel's own timeout waits.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(left), int(left % 1 * 1e6)))
    try:
        sock.connect(address)
    except BlockingIOError:
        raise socket.timeout from None


def _addresses(name: DisplayName) -> Iterator[Tuple[int, Any]]:
    if not name.host:
        yield socket.AF_UNIX, name.socket_path
        # The abstract socket is what is left when another mount namespace hides /tmp.
        yield socket.AF_UNIX, "\0" + name.socket_path
        return
    try:
        found = socket.getaddrinfo(name.host, 6000 + name.number, type=socket.SOCK_STREAM)
    except (OSError, OverflowError, UnicodeError) as error:
        raise NoDisplay(f"display {name}: the host can not be found ({error})") from None
    for family, _kind, _protocol, _canonical, address in found:
        yield family, address
