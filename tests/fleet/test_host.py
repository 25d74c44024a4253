"""Who has which desktop: decided by the host, with pretended desktops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.errors import SetupError
from deskhand.fleet import LeaseLost, LocalPool, NoneFree, Options
from deskhand.fleet.host import Host
from deskhand.testing.batches import run
from tests.fleet.makers import Pretended

pytestmark = pytest.mark.usefixtures("not_looked_at")


@asynccontextmanager
async def hosting(maker: Pretended, size: int = 2, spares: int = 1) -> AsyncIterator[Host]:
    host = Host(Options(size=size, spares=spares, starts=2), maker=maker)
    try:
        await host.start()
        yield host
    finally:
        await host.aclose()
        assert maker.alive == set(), "a desktop was left"


async def until(host: Host, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            health = await host.health()
            if condition(health):
                return health
            await host.change()


def test_no_desktop_is_given_twice() -> None:
    maker = Pretended()

    async def work() -> None:
        async with hosting(maker) as host:
            seen: set[str] = set()
            for _ in range(6):
                one, two = await host.acquire("a", 60, 20), await host.acquire("b", 60, 20)
                assert not {one.desktop, two.desktop} & seen
                assert one.desktop != two.desktop
                assert one.number < two.number
                seen |= {one.desktop, two.desktop}
                await host.release(one.token)
                await host.release(two.token)

    run(work())


def test_no_more_than_its_size_are_leased_also_with_spares_ready() -> None:
    async def work() -> None:
        async with hosting(Pretended(), size=2, spares=3) as host:
            leases = [await host.acquire("a", 60), await host.acquire("b", 60)]
            with pytest.raises(NoneFree, match="none of the 2 desktops") as caught:
                await host.acquire("c", 60, 0.05)
            assert caught.value.sent == "none"
            await host.release(leases[0].token)
            await host.acquire("c", 60, 20)

    run(work())


def test_those_who_wait_get_theirs_in_their_order() -> None:
    async def work() -> None:
        async with hosting(Pretended(), size=1) as host:
            lease = await host.acquire("first", 60)
            got: list[str] = []

            async def wait_for_one(name: str) -> None:
                mine = await host.acquire(name, 60, 20)
                got.append(name)
                await host.release(mine.token)

            tasks = []
            for name in "abc":
                tasks.append(asyncio.create_task(wait_for_one(name)))
                await until(host, lambda health: health["waiting"] == len(tasks))
            tasks[1].cancel()
            await host.release(lease.token)
            await asyncio.gather(*tasks, return_exceptions=True)
            assert got == ["a", "c"]

    run(work())


def test_one_that_is_not_renewed_ends_and_its_token_is_worth_nothing() -> None:
    async def work() -> None:
        async with hosting(Pretended(), size=1) as host:
            lease = await host.acquire("a", 0.1)
            again = await host.acquire("b", 60, 20)
            assert again.desktop != lease.desktop
            for call in (host.info, host.windows, host.apps, host.renew, host.reset):
                with pytest.raises(LeaseLost) as caught:
                    await call(lease.token)
                assert caught.value.sent == "none"
            with pytest.raises(LeaseLost):
                await host.act(lease.token, {"actions": [{"action": "click", "x": 1, "y": 1}]})
            await host.release(lease.token)  # no error, and not the next one's
            await host.renew(again.token)
            assert (await host.health())["expired"] == 1

    run(work())


def test_renewing_keeps_it() -> None:
    async def work() -> None:
        async with LocalPool(Options(size=1, spares=0), maker=Pretended()) as pool, pool.lease(ttl=0.3) as desktop:
            lease = desktop.current
            await asyncio.sleep(1.0)
            assert desktop.current == lease
            assert (await pool.health())["hosts"][0]["expired"] == 0
            assert (await pool.health())["leased"] == 1

    run(work())


def test_a_reset_gives_another_and_the_old_token_is_over() -> None:
    async def work() -> None:
        async with hosting(Pretended(), size=1, spares=0) as host:
            old = await host.acquire("a", 60)
            waiting = asyncio.create_task(host.acquire("b", 60, 20))
            new = await host.reset(old.token)
            assert not waiting.done(), "the desktop went to one who came later"
            assert new.desktop != old.desktop
            assert new.number > old.number
            with pytest.raises(LeaseLost):
                await host.renew(old.token)
            await host.release(new.token)
            await waiting

    run(work())


def test_desktops_that_do_not_come_up_are_told_and_tried_again() -> None:
    maker = Pretended(fail=lambda number: "the X server did not start" if number in (2, 3) else None)

    async def work() -> None:
        async with hosting(maker, size=2, spares=0) as host:
            first, second = await host.acquire("a", 60, 20), await host.acquire("b", 60, 20)
            assert first.desktop != second.desktop
            health = await host.health()
            assert health["failed"] >= 1
            assert health["failure"] is None

    run(work())


def test_none_that_comes_up_is_an_error_with_its_reason() -> None:
    async def work() -> None:
        host = Host(Options(), maker=Pretended(fail=lambda number: "Xvfb is not installed"))
        with pytest.raises(SetupError, match="no desktop of the fleet came up: Xvfb is not installed"):
            await host.start()

    run(work())


def test_one_that_is_not_like_the_template_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Pretended()
    monkeypatch.setattr(
        "deskhand.fleet.fingerprint.differences",
        lambda made, template: ["size: [640, 480], not [1280, 800]"] if made.id == "d2" else [],
    )

    async def work() -> None:
        async with hosting(maker, size=2, spares=0) as host:
            leases = [await host.acquire("a", 60, 20), await host.acquire("b", 60, 20)]
            assert "d2" not in {lease.desktop for lease in leases}
            assert (await host.health())["refused"] == 1
            await until(host, lambda health: "d2" not in maker.alive)

    run(work())


def test_who_gives_up_waiting_keeps_nothing() -> None:
    async def work() -> None:
        async with hosting(Pretended(), size=1) as host:
            lease = await host.acquire("a", 60)
            waiting = asyncio.create_task(host.acquire("b", 60, 20))
            await until(host, lambda health: health["waiting"] == 1)
            await host.release(lease.token)  # given to b now, who has not heard of it yet
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await host.acquire("c", 60, 20)
            assert (await host.health())["leased"] == 1

    run(work())


def test_the_end_of_the_host_ends_those_who_wait() -> None:
    async def work() -> None:
        maker = Pretended()
        host = Host(Options(size=1, spares=0), maker=maker)
        await host.start()
        lease = await host.acquire("a", 60)
        waiting = asyncio.create_task(host.acquire("b", 60, 20))
        await until(host, lambda health: health["waiting"] == 1)
        await host.aclose()
        with pytest.raises(SetupError, match="ends"):
            await waiting
        with pytest.raises(LeaseLost):
            await host.renew(lease.token)
        assert maker.alive == set()

    run(work())


@pytest.mark.parametrize("ttl", [0, -1, 3601, float("nan")])
def test_a_time_that_no_lease_can_have(ttl: float) -> None:
    async def work() -> None:
        async with hosting(Pretended()) as host:
            with pytest.raises(ValueError, match="ttl"):
                await host.acquire("a", ttl)

    run(work())


Step = tuple[str, int]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["acquire", "release", "reset", "cancel", "lapse"]), st.integers(0, 5))))
def test_whatever_clients_do_no_desktop_has_two(steps: list[Step]) -> None:
    maker = Pretended()
    ever: set[str] = set()

    async def work() -> None:
        async with hosting(maker, size=2, spares=1) as host:
            mine: list[Any] = []

            def note(lease: Any) -> None:
                assert lease.desktop not in ever, "a desktop was given twice"
                ever.add(lease.desktop)
                mine.append(lease)

            tasks: list[asyncio.Task[Any]] = []

            async def get(call: Awaitable[Any]) -> None:
                try:
                    note(await call)
                except (NoneFree, LeaseLost):
                    pass

            for what, which in steps:
                if what == "acquire":
                    tasks.append(asyncio.create_task(get(host.acquire("x", 60, 0.05))))
                elif what == "cancel" and tasks:
                    tasks[which % len(tasks)].cancel()
                elif mine:
                    lease = mine.pop(which % len(mine))
                    if what == "release":
                        await host.release(lease.token)
                    elif what == "lapse":
                        await host.renew(lease.token, 0.1)
                    else:
                        tasks.append(asyncio.create_task(get(host.reset(lease.token, 0.05))))
                await asyncio.sleep(0)
                assert (await host.health())["leased"] <= 2
            for end in await asyncio.gather(*tasks, return_exceptions=True):
                assert end is None or isinstance(end, asyncio.CancelledError), end

    run(work())
