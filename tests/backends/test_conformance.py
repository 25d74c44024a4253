"""The conformance suite on every backend of ours; Guest on real isolation: bubblewrap, and ssh to a local sshd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deskhand import LocalDisplay, Memory
from deskhand.backends.guest import Guest
from deskhand.backends.transports import Transport
from deskhand.testing import XServer
from deskhand.testing.conformance import BackendConformance, DesktopConformance, MakeBackend, MakeLossy
from tests.backends import guests

#: The way to a guest on the display of a server.
Way = Callable[[XServer], Transport]


@pytest.mark.slow
class TestLocalDisplay(DesktopConformance):
    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return lambda server: LocalDisplay(server.display, server.xauthority)


class GuestConformance(DesktopConformance):
    """A Guest over a transport; the fixture ``way`` says which."""

    python = guests.PYTHON
    resident = False
    #: The cookie's file over there; None: where it is here.
    cookie: str | None = None

    def guest(self, transport: Transport, server: XServer) -> Guest:
        cookie = (self.cookie or server.xauthority) if server.xauthority else None
        return Guest(transport, server.display, cookie, self.python, resident=self.resident)

    @pytest.fixture
    def way(self) -> Way:
        return lambda server: guests.bare()

    @pytest.fixture
    def make_backend(self, way: Way) -> MakeBackend:
        return lambda server: self.guest(way(server), server)

    @pytest.fixture
    def make_lossy(self, way: Way, tmp_path: Path) -> MakeLossy:
        flag = tmp_path / "lose the next answer"

        def make(server: XServer) -> tuple[Guest, Callable[[], None]]:
            return self.guest(guests.lossy(way(server), flag), server), flag.touch

        return make


@pytest.mark.slow
class TestGuestSubprocess(GuestConformance):
    pass


@pytest.mark.long
class TestGuestPython39(GuestConformance):
    @pytest.fixture(autouse=True)
    def old_python(self) -> None:
        self.python = guests.python_3_9()


@pytest.mark.slow
class TestGuestResident(GuestConformance):
    resident = True


class Sandboxed(GuestConformance):
    python = "python3"
    cookie = "/cookie"

    @pytest.fixture
    def way(self, tmp_path: Path) -> Way:
        return lambda server: guests.sandbox(server, tmp_path)


@pytest.mark.slow
class TestGuestBubblewrap(Sandboxed):
    pass


@pytest.mark.long
class TestGuestBubblewrapResident(Sandboxed):
    resident = True


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Transport]:
    with guests.sshd(tmp_path_factory.mktemp("sshd")) as transport:
        yield transport


class Remote(GuestConformance):
    python = "python3"

    @pytest.fixture
    def way(self, host: Transport) -> Way:
        return lambda server: host


@pytest.mark.slow
class TestGuestSsh(Remote):
    pass


@pytest.mark.long
class TestGuestSshResident(Remote):
    resident = True


@pytest.mark.long
class TestGuestFunction(DesktopConformance):
    """The way is a function of the caller's."""

    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return lambda server: Guest(guests.OneByOne(), server.display, server.xauthority, guests.PYTHON)

    @pytest.fixture
    def make_lossy(self) -> MakeLossy:
        def make(server: XServer) -> tuple[Guest, Callable[[], None]]:
            function = guests.OneByOne()
            guest = Guest(function, server.display, server.xauthority, guests.PYTHON)
            return guest, lambda: setattr(function, "lose", True)

        return make


class TestMemory(BackendConformance):
    """The part that makes sense without an X server."""

    @pytest.fixture
    def make_backend(self) -> Callable[[None], Memory]:
        return lambda server: Memory()
