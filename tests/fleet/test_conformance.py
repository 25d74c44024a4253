"""What a lease gives is a backend: it passes the conformance suite, in the pool's process and over its socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskhand.fleet import LeasedDesktop, LocalPool, Options, SocketPool
from deskhand.fleet.pool import Lease
from deskhand.fleet.service import Service
from deskhand.fleet.ways import answer
from deskhand.testing import XServer
from deskhand.testing.conformance import DesktopConformance, MakeBackend, MakeLossy
from tests.fleet.makers import Given

pytestmark = pytest.mark.usefixtures("not_looked_at")


class OwnPool(LeasedDesktop):
    """A leased desktop with a pool of its own, whose one desktop is the server's display."""

    def __init__(self, server: XServer) -> None:
        self._own = pool_of(server)
        super().__init__(self._own, 60, 30, None)

    async def _acquire(self) -> tuple[Lease, float]:
        await self._own.__aenter__()
        return await super()._acquire()

    async def aclose(self) -> None:
        await super().aclose()
        await self._own.aclose()


def pool_of(server: XServer) -> LocalPool:
    return LocalPool(Options(size=1, spares=0), maker=Given(server))


@pytest.mark.long
class TestLocalPool(DesktopConformance):
    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return OwnPool


class Forgetful(Service):
    """Ends the connection in place of its next answer to a batch, once ``lose`` is set."""

    lose = False

    async def _answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if self.lose and asked["method"] == "act":
            self.lose = False
            await answer(self._pool.host, asked["method"], asked["arguments"])
            writer.close()
        else:
            await super()._answer(asked, writer)


class OverASocket(LeasedDesktop):
    def __init__(self, server: XServer, path: Path) -> None:
        self.service = Forgetful(pool_of(server), str(path))
        self._near = SocketPool(str(path))
        super().__init__(self._near, 60, 30, None)

    async def _acquire(self) -> tuple[Lease, float]:
        await self.service.__aenter__()
        return await super()._acquire()

    async def aclose(self) -> None:
        await super().aclose()
        await self._near.aclose()
        await self.service.aclose()


@pytest.mark.slow
class TestSocketPool(DesktopConformance):
    @pytest.fixture
    def make_backend(self, tmp_path: Path) -> Callable[[XServer], OverASocket]:
        numbers = iter(range(100))
        return lambda server: OverASocket(server, tmp_path / f"{next(numbers)}.sock")

    @pytest.fixture
    def make_lossy(self, make_backend: Callable[[XServer], OverASocket]) -> MakeLossy:
        def make(server: XServer) -> tuple[OverASocket, Callable[[], None]]:
            backend = make_backend(server)
            return backend, lambda: setattr(backend.service, "lose", True)

        return make
