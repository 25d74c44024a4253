"""The conformance suite on every backend of ours; Guest on real isolation: bubblewrap, and ssh to a local sshd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from deskhand import LocalDisplay, Memory, OwnScreen
from deskhand.backends.daemon import Daemon
from deskhand.backends.e2b import E2B
from deskhand.backends.guest import Guest
from deskhand.backends.transports import Transport
from deskhand.testing import XServer
from deskhand.testing.conformance import BackendConformance, DesktopConformance, MakeBackend, MakeLossy
from tests.backends import guests
from tests.computerd.daemons import Daemons
from tests.computerd.proxy import proxy
from tests.standins import e2b

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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.fixture(scope="module")
def e2b_api() -> Iterator[e2b.StandIn]:
    with e2b.serving() as stand_in:
        yield stand_in


#: Uses a sandbox from a process of its own: what it is told to make, and the batch.
_E2B_CLIENT = """
import asyncio, json, sys
from deskhand import E2B
async def main():
    backend = E2B(**json.loads(sys.argv[1]))
    lease = backend.lease("the client")
    await lease.take(600)
    await backend.act(json.loads(sys.argv[2]))
asyncio.run(main())
"""


class SandboxOfE2B(DesktopConformance):
    """Through E2B's own SDK, to a stand-in for its API; each backend makes a sandbox, whose hand uses the display."""

    resident = True
    api: e2b.StandIn

    def options(self, api: e2b.StandIn, server: XServer) -> dict[str, Any]:
        place = {"display": server.display, "xauthority": server.xauthority, "python": guests.PYTHON}
        return {**e2b.options(api), **place, "resident": self.resident}

    @pytest.fixture
    def make_backend(self, e2b_api: e2b.StandIn) -> MakeBackend:
        self.api = e2b_api
        return lambda server: E2B(**self.options(e2b_api, server))

    @pytest.fixture
    def make_lossy(self, e2b_api: e2b.StandIn) -> MakeLossy:
        def make(server: XServer) -> tuple[E2B, Callable[[], None]]:
            return E2B(**self.options(e2b_api, server)), lambda: setattr(e2b_api, "lose", True)

        return make

    @contextmanager
    def client(self, make_backend: Any, server: XServer, batch: dict[str, Any]) -> Iterator[None]:
        # The SDK has threads of its own, which a fork leaves behind.
        words = [json.dumps(self.options(self.api, server)), json.dumps(batch)]
        process = subprocess.Popen([sys.executable, "-c", _E2B_CLIENT, *words])
        try:
            yield
        finally:
            process.kill()
            process.wait()


@pytest.mark.long
class TestE2B(SandboxOfE2B):
    pass


@pytest.mark.long
class TestE2BOneCommandABatch(SandboxOfE2B):
    resident = False


class Served(DesktopConformance):
    """computerd beside the display, with its launcher."""

    unix = False
    daemons_here: Daemons

    @pytest.fixture
    def daemons(self, tmp_path: Path) -> Iterator[Daemons]:
        with Daemons(tmp_path, unix=self.unix) as started:
            self.daemons_here = started
            yield started

    @contextmanager
    def client(self, make_backend: Any, server: XServer, batch: dict[str, Any]) -> Iterator[None]:
        self.daemons_here.on(server)  # here, and not in the process that is killed
        with super().client(make_backend, server, batch):
            yield

    @pytest.fixture
    def make_backend(self, daemons: Daemons) -> MakeBackend:
        def make(server: XServer) -> Daemon:
            running = daemons.on(server)
            return Daemon(running.url, token_file=running.token_file)

        return make


@pytest.mark.slow
class TestDaemon(Served):
    @pytest.fixture
    def make_lossy(self, daemons: Daemons) -> Iterator[MakeLossy]:
        with ExitStack() as stack:

            def make(server: XServer) -> tuple[Daemon, Callable[[], None]]:
                running = daemons.on(server)
                passing = stack.enter_context(proxy(running.address))
                return Daemon(passing.url, token=running.token), passing.lose_next

            yield make


@pytest.mark.long
class TestDaemonUnixSocket(Served):
    unix = True


class TestMemory(BackendConformance):
    """The part that makes sense without an X server."""

    @pytest.fixture
    def make_backend(self) -> Callable[[None], Memory]:
        return lambda server: Memory()


@pytest.mark.slow
class TestOwnScreen(DesktopConformance):
    """With nobody at it."""

    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return lambda server: OwnScreen(server.display, server.xauthority, quiet=0.0, allow_launch=True)
