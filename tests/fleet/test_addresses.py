"""A pool of addresses: real computerds on real displays."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from deskhand.errors import Unsupported
from deskhand.fleet import Address, AddressPool, LeasedDesktop, LeaseLost, NoneFree
from deskhand.testing import XServer, xvfb
from deskhand.testing.batches import quick, run
from deskhand.testing.conformance import DesktopConformance
from tests.computerd.daemons import Daemons, RunningDaemon, daemon

pytest.importorskip("fastapi")

CLICK = quick({"action": "click", "x": 3, "y": 3})


class OfOne(LeasedDesktop):
    """A leased desktop with a pool of its own."""

    def __init__(self, running: RunningDaemon) -> None:
        self._own = AddressPool([Address(running.url, running.token_file)])
        super().__init__(self._own, 60, 1, None)

    async def aclose(self) -> None:
        await super().aclose()
        await self._own.aclose()


@pytest.mark.long  # it is computerd's own, whose suite is run in tests/backends
class TestAddressPool(DesktopConformance):
    @pytest.fixture
    def make_backend(self, tmp_path: Path) -> Iterator[Callable[[XServer], OfOne]]:
        with Daemons(tmp_path) as daemons:
            yield lambda server: OfOne(daemons.on(server))

    def test_no_display_there(self) -> None:  # type: ignore[override]
        pytest.skip("one whose display is away is not given out, see below")

    def test_a_client_that_is_killed_leaves_nothing_pressed(self) -> None:  # type: ignore[override]
        pytest.skip("the next one waits for the end of the lease, see below")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningDaemon]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(xvfb(auth=True)) for _ in range(2)]
        directory = tmp_path_factory.mktemp("addresses")
        yield [stack.enter_context(daemon(server, directory)) for server in servers]


def addresses(two: list[RunningDaemon]) -> list[Address]:
    return [Address(running.url, running.token_file) for running in two]


@pytest.mark.slow
def test_two_clients_get_two_desktops_and_a_third_waits(two: list[RunningDaemon]) -> None:
    async def work() -> None:
        one, other = AddressPool(addresses(two)), AddressPool(addresses(two))  # as of two processes
        async with one, other, one.lease() as a, other.lease() as b:
            assert a.current is not None
            assert b.current is not None
            assert a.current.desktop != b.current.desktop
            assert (await a.act(CLICK)).ok
            assert (await b.act(CLICK)).ok
            with pytest.raises(NoneFree, match="none of the 2"):
                await one.acquire(60, 0.1)
            health = await other.health()
            assert (health["ok"], health["size"], health["leased"], health["free"]) == (True, 2, 2, 0)
            waiting = asyncio.create_task(one.acquire(60, 30))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            desktop = b.current.desktop
            await b.aclose()
            lease = await waiting
            assert lease.desktop == desktop
            await one.release(lease)
        assert (await AddressPool(addresses(two)).health())["leased"] == 0

    run(work())


@pytest.mark.slow
def test_a_lease_that_was_not_renewed_is_worth_nothing(two: list[RunningDaemon]) -> None:
    async def work() -> None:
        async with AddressPool(addresses(two)[:1]) as pool, AddressPool(addresses(two)[:1]) as other:
            lease = await pool.acquire(0.3)
            desktop = pool.backend(lease)
            async with other.lease(wait=30) as following:
                for call in (desktop.act(CLICK), desktop.info(), pool.renew(lease)):
                    with pytest.raises(LeaseLost) as caught:
                        await call
                    assert caught.value.sent == "none"
                assert (await following.act(CLICK)).ok

    run(work())


def test_computerd_itself_refuses_a_token_that_is_over(two: list[RunningDaemon]) -> None:
    async def work() -> None:
        async with AddressPool(addresses(two)[:1]) as pool, AddressPool(addresses(two)[:1]) as other:
            lease = await pool.acquire(0.3)
            pool._held[lease.number].until += 60  # its clock is wrong
            async with other.lease(wait=30):
                with pytest.raises(LeaseLost) as caught:
                    await pool.backend(lease).act(CLICK)
                assert caught.value.sent == "none"

    run(work())


def test_addresses_where_nothing_listens_are_passed_over(two: list[RunningDaemon]) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = Address(f"http://127.0.0.1:{nobody.getsockname()[1]}", token="x")

        async def work() -> None:
            async with AddressPool([away, *addresses(two)[:1]]) as pool, pool.lease() as desktop:
                assert (await desktop.act(CLICK)).ok
                health = await pool.health()
                assert (health["ok"], [host["ok"] for host in health["hosts"]].count(False)) == (False, 1)
            async with AddressPool([away]) as none:
                with pytest.raises(NoneFree, match="1 can not be had: no computerd can be reached"):
                    await none.acquire(60, 0.1)

        run(work())


def test_fresh_is_called_before_a_desktop_is_given(two: list[RunningDaemon]) -> None:
    made: list[str] = []

    async def fresh(address: Address) -> None:
        made.append(address.url)

    async def work() -> None:
        async with AddressPool(addresses(two)[:1], fresh) as pool, pool.lease() as desktop:
            assert made == [two[0].url]
            before = desktop.current
            await desktop.reset()
            assert made == [two[0].url] * 2
            assert desktop.current != before
            assert (await desktop.act(CLICK)).ok
        async with AddressPool(addresses(two)[:1]) as pool, pool.lease() as desktop:
            before = desktop.current
            for _ in range(2):
                with pytest.raises(Unsupported, match="fresh"):
                    await desktop.reset()
            assert desktop.current == before
            assert (await desktop.act(CLICK)).ok, "what was refused has ended no lease"

    run(work())


def test_commands_take_the_shell_of_an_address(two: list[RunningDaemon]) -> None:
    there = Address(two[0].url, two[0].token_file, shell=("env", "PLACE=there"))

    async def work() -> None:
        async with AddressPool([there]) as pool, pool.lease() as desktop:
            ran = await desktop.run('cat; echo "$PLACE $ONE"; pwd; exit 3', b"in ", {"ONE": "a 'b'"}, "/tmp")
            assert (ran.code, ran.stdout) == (3, b"in there a 'b'\n/tmp\n")
        async with AddressPool(addresses(two)[:1]) as pool, pool.lease() as desktop:
            with pytest.raises(Unsupported, match="give the desktop's Address a shell"):
                await desktop.run("true")

    run(work())


def test_a_desktop_of_another_size_is_refused(two: list[RunningDaemon]) -> None:
    async def work() -> None:
        async with AddressPool(addresses(two), screen=(800, 600)) as pool:
            with pytest.raises(NoneFree, match=r"refused: size \[1280, 800\], not \[800, 600\]"):
                await pool.acquire(60, 0)

    run(work())
