"""A fleet on two Ray nodes: leases, fences, and what dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

ray = pytest.importorskip("ray")

from deskhand.errors import DeskhandError, NoDisplay, SetupError  # noqa: E402
from deskhand.fleet import LeaseLost, NoneFree, Options, PageSettings  # noqa: E402
from deskhand.fleet.making import HOST_MARK  # noqa: E402
from deskhand.fleet.ray import RayPool  # noqa: E402
from deskhand.fleet.ray.cluster import manager_name  # noqa: E402
from deskhand.fleet.ray.up import end_fleet, start_fleet  # noqa: E402
from deskhand.hand.state import read_desktops  # noqa: E402
from deskhand.testing.batches import quick, run, until  # noqa: E402

pytestmark = pytest.mark.slow

CLICK = quick({"action": "click", "x": 3, "y": 3})
NAME = "under-test"


def desktops() -> list[dict[str, Any]]:
    return [facts for facts in read_desktops() if facts["env"].get(HOST_MARK, "").startswith(NAME)]


@pytest.fixture(scope="module")
def fleet(cluster: Any) -> Iterator[str]:
    """One desktop and one spare on each node."""
    told = run(start_fleet(NAME, cluster.address, Options(size=1, spares=1), page=PageSettings()))
    assert told == {"name": NAME, "machines": 2, "desktops": 4}
    yield cluster.address
    page = run(_page(cluster.address))
    assert run(end_fleet(NAME, cluster.address)) == 2
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(page["metrics"], trust_env=False)
    assert not os.path.exists(page["token_file"])
    until(lambda: not desktops(), "nothing of the fleet is left")


def with_pool(address: str, work: Callable[[RayPool], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with RayPool(NAME, address) as pool:
            await work(pool)

    run(whole())


async def all_back(pool: RayPool, size: int = 2) -> dict[str, Any]:
    while True:
        health = await pool.health()
        if health["ok"] and health["leased"] == 0 and health["free"] == size:
            return health
        await asyncio.sleep(0.05)


async def _page(address: str) -> dict[str, Any]:
    async with RayPool(NAME, address) as pool:
        return dict((await pool.way(None)("page"))[0]["value"])


async def first_error(call: Callable[[], Awaitable[Any]]) -> DeskhandError:
    while True:
        try:
            await call()
        except DeskhandError as error:
            return error


def test_its_status_page_and_metrics(fleet: str) -> None:
    async def work(pool: RayPool) -> None:
        await all_back(pool)
        page = await _page(fleet)
        async with pool.lease(holder="the test") as desktop, httpx2.AsyncClient(trust_env=False, timeout=20) as http:
            assert desktop.current is not None
            detail = await pool.detail()
            states = sorted(one["state"] for host in detail["hosts"] for one in host["desktops"])
            assert states == ["leased", "ready", "ready", "ready"]
            assert (await http.get(page["open"])).status_code == 200
            root = page["url"].removesuffix("/fleet")
            while True:
                state = (await http.get(f"{root}/fleet/state")).json()
                if state["health"]["leased"] == 1:
                    break
                await asyncio.sleep(0.1)  # it is told so within two seconds
            assert sorted(host["name"] for host in state["health"]["hosts"]) == sorted(
                host["name"] for host in detail["hosts"]
            )
            assert desktop.current.token not in str(state)
            headers = {"Authorization": f"Bearer {Path(page['token_file']).read_text().strip()}"}
            text = (await http.get(page["metrics"], headers=headers)).text
            assert f'deskhand_fleet_leases_held{{host="{desktop.current.host}"}} 1' in text
            assert 'deskhand_fleet_wait_seconds_count{host="manager"} 1' in text
            assert 'deskhand_fleet_recoveries_total{host="manager",cause="host_restarted"} 0' in text

    with_pool(fleet, work)


def test_each_node_leases_its_own(fleet: str) -> None:
    async def work(pool: RayPool) -> None:
        async with pool.lease() as one, pool.lease() as two:
            assert one.current is not None
            assert two.current is not None
            assert one.current.host != two.current.host
            for desktop in (one, two):
                outcome = await desktop.act({**CLICK, "picture": True})
                assert outcome.ok
                assert outcome.picture is not None
                assert outcome.picture.startswith(b"\x89PNG")
                assert (await desktop.info())["size"] == [1280, 800]
                assert await desktop.windows() == []
                assert await desktop.apps()
            with pytest.raises(NoneFree, match="none of the 2 desktops on 2 machines"):
                await pool.acquire(60, 0.1)
            waiting = asyncio.create_task(pool.acquire(60, 60))
            before = two.current
            await two.reset()
            assert two.current.host == before.host
            assert two.current.desktop != before.desktop
            with pytest.raises(LeaseLost) as caught:
                await pool.backend(before).act(CLICK)
            assert caught.value.sent == "none"
            assert not waiting.done()
            await one.aclose()
            await pool.release(await waiting)
        await all_back(pool)

    with_pool(fleet, work)


def test_as_many_as_there_are_at_once(fleet: str) -> None:
    async def work(pool: RayPool) -> None:
        leases = await pool.acquire_many(3, wait=0.5)
        assert len({lease.desktop for lease in leases}) == len(leases) == 2
        for lease in leases:
            await pool.release(lease)
        await all_back(pool)

    with_pool(fleet, work)


def test_one_of_that_name_is_there_already(fleet: str) -> None:
    with pytest.raises(SetupError, match="there is a fleet 'under-test' already"):
        run(start_fleet(NAME, fleet, Options()))


def test_a_name_that_no_fleet_has_is_told_at_once(fleet: str) -> None:
    """Not after the 120 s that a busy fleet is waited for."""

    async def work() -> None:
        async with RayPool("under-tset", fleet) as pool, asyncio.timeout(60):
            await pool.acquire(wait=120)

    with pytest.raises(NoDisplay, match="no 'under-tset/manager' on this Ray cluster"):
        run(work())


def test_cancelling_stops_the_batch_over_there(fleet: str) -> None:
    async def work(pool: RayPool) -> None:
        async with pool.lease() as desktop:
            batch = quick(
                {"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}, {**CLICK["actions"][0]}
            )
            running = asyncio.create_task(desktop.act(batch))
            await asyncio.sleep(0.5)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            async with asyncio.timeout(10):
                assert (await desktop.act(CLICK)).ok
        await all_back(pool)

    with_pool(fleet, work)


def test_a_client_that_is_gone_loses_its_lease(fleet: str) -> None:
    async def work(pool: RayPool) -> None:
        lease = await pool.acquire(ttl=0.3)
        await all_back(pool)
        with pytest.raises(LeaseLost):
            await pool.renew(lease)

    with_pool(fleet, work)


def test_a_host_that_is_killed(fleet: str) -> None:
    async def work(pool: RayPool) -> None:
        async with pool.lease() as desktop:
            assert desktop.current is not None
            mine = desktop.current
            facts = next(facts for facts in desktops() if facts["id"] == mine.desktop)
            pid = int(facts["env"][HOST_MARK].split(":")[-2])
            before = {facts["id"] for facts in desktops() if f":{pid}:" in facts["env"][HOST_MARK]}
            assert len(before) >= 1
            os.kill(pid, signal.SIGKILL)
            assert isinstance(await first_error(lambda: desktop.act(CLICK)), DeskhandError)
            while not isinstance(await first_error(lambda: pool.renew(mine)), LeaseLost):
                await asyncio.sleep(0.05)
        health = await all_back(pool)
        assert len(health["hosts"]) == 2
        assert not before & {facts["id"] for facts in desktops()}, "a desktop of the host that was killed is left"
        async with pool.lease() as desktop:
            assert (await desktop.act(CLICK)).ok

    with_pool(fleet, work)


def test_a_manager_that_is_killed_knows_the_same_again(fleet: str) -> None:
    async def work(pool: RayPool) -> None:
        async with pool.lease() as desktop:
            before = desktop.current
            ray.kill(ray.get_actor(manager_name(NAME)), no_restart=False)
            assert (await desktop.act(CLICK)).ok  # nothing of a lease depends on it
            await pool.renew(before)  # type: ignore[arg-type]
            async with pool.lease() as other:
                assert other.current is not None
                assert before is not None
                assert other.current.desktop != before.desktop
                health = await pool.health()
                assert health["leased"] == 2
                with pytest.raises(NoneFree):
                    await pool.acquire(60, 0.5)
            assert desktop.current == before
        await all_back(pool)

    with_pool(fleet, work)
