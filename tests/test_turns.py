"""Sessions take turns at one real display; and what they launched is closed when their policy says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from deskhand import BackendError, DesktopInUse, LocalDisplay, Outcome, Session, TraceRecorder, Unsupported
from deskhand.testing import XServer
from deskhand.turns import LeaseTerms, longest, terms_at
from tests.own_desktop import applications, desktop  # noqa: F401
from tests.probes import pressed
from tests.told import Told
from tests.x_windows import command, make_entry

pytestmark = pytest.mark.slow

LOOK = {"actions": [{"action": "cursor_position"}]}
TERMS = LeaseTerms()


def session(server: XServer, name: str, lease: LeaseTerms | None = TERMS, **more: Any) -> Session:
    return Session(LocalDisplay(server.display), name=name, lease=lease, **more)


def run(work: Awaitable[None]) -> None:
    async def main() -> None:
        await work

    asyncio.run(main())


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)  # for what nothing here can be told of


# ---- turns


def test_the_second_session_is_refused_with_the_name_of_the_first(display: XServer) -> None:
    async def work() -> None:
        async with session(display, "assistant") as one:
            with pytest.raises(DesktopInUse, match="session 'assistant'") as caught:
                await session(display, "other").__aenter__()
            assert caught.value.sent == "none"
            late = session(display, "late")
            with pytest.raises(DesktopInUse):
                await late.act(LOOK)
            assert late.last_outcome is not None
            assert "assistant" in late.last_outcome["text"]
            assert (await one.act(LOOK)).ok
        assert (await late.act(LOOK)).ok
        await late.aclose()

    run(work())


def test_a_session_that_is_asked_to_queue_waits_for_its_turn(display: XServer) -> None:
    async def work() -> None:
        async with session(display, "first") as first:
            patient = session(display, "second", LeaseTerms(wait=30))
            waiting = asyncio.create_task(patient.act(LOOK))
            assert (await first.act(LOOK)).ok
            assert not waiting.done()
        assert (await waiting).ok
        await patient.aclose()

    run(work())


def test_a_queue_can_be_left(display: XServer) -> None:
    async def work() -> None:
        async with session(display, "first"):
            patient = session(display, "second", LeaseTerms(wait=300))
            waiting = asyncio.create_task(patient.act(LOOK))
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            another = session(display, "third", LeaseTerms(wait=300))
            queued = asyncio.create_task(another.act(LOOK))
            await asyncio.sleep(0.05)
            async with asyncio.timeout(10):
                await another.aclose()  # while it queues
                with pytest.raises((BackendError, RuntimeError)):
                    await queued
                await patient.aclose()

    run(work())


def test_an_idle_session_loses_the_desktop_and_gets_it_back_when_it_is_free(display: XServer) -> None:
    async def work() -> None:
        async with session(display, "idle", LeaseTerms(ttl=0.05)) as idle:
            await asyncio.sleep(0.1)
            async with session(display, "busy"):
                with pytest.raises(DesktopInUse, match="'busy'"):
                    await idle.act(LOOK)
            assert (await idle.act(LOOK)).ok

    run(work())


def test_a_batch_and_a_person_who_thinks_keep_the_desktop_beyond_its_time(display: XServer) -> None:
    async def work() -> None:
        async with session(display, "holder", LeaseTerms(ttl=0.05)) as holder:
            acting = asyncio.create_task(holder.act({"actions": [{"action": "wait", "seconds": 0.5}]}))
            await asyncio.sleep(0.2)
            with pytest.raises(DesktopInUse):
                await session(display, "other").__aenter__()
            assert (await acting).ok
            async with holder.parked():
                await asyncio.sleep(0.1)
                with pytest.raises(DesktopInUse):
                    await session(display, "other").__aenter__()
            await asyncio.sleep(0.1)
            async with session(display, "other"):
                pass

    run(work())


def test_a_session_that_ends_while_a_person_thinks_does_not_take_the_desktop_again(display: XServer) -> None:
    async def work() -> None:
        asking = session(display, "asking")
        async with asking.parked():
            await asking.aclose()
        async with session(display, "other"):
            pass

    run(work())


def test_a_cancelled_batch_keeps_the_turn(display: XServer) -> None:
    async def work() -> None:
        async with session(display, "holder") as holder:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(holder.act({"actions": [{"action": "wait", "seconds": 60}]}), 0.1)
            with pytest.raises(DesktopInUse):
                await session(display, "other").__aenter__()

    run(work())


def test_the_end_of_a_session_stops_its_batch_before_it_lets_go(display: XServer) -> None:
    async def work() -> None:
        ending = session(display, "ending")
        actions = [{"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}]
        acting = asyncio.create_task(ending.act({"actions": actions}))
        await until(lambda: pressed(display))
        async with asyncio.timeout(10):
            await ending.aclose()
        assert pressed(display) == []
        with pytest.raises(BackendError, match="closed in the middle of a batch") as caught:
            await acting
        assert caught.value.sent == "unknown"
        async with session(display, "next"):
            pass

    run(work())


def test_a_desktop_without_leases_says_so() -> None:
    with pytest.raises(Unsupported, match="no leases"):
        Session(Told(), lease=TERMS)
    assert terms_at(Told()) is None
    assert terms_at(LocalDisplay(":1"), 5) == LeaseTerms(wait=5)


def test_how_long_a_batch_may_take() -> None:
    assert longest({"actions": [{"action": "wait", "seconds": 60}, {"action": "launch", "timeout": 30}]}) == 130
    assert longest({"actions": [{"action": "type", "text": "a" * 1000}]}) == 70
    assert longest({"actions": None}) == longest({}) == 0
    assert longest({"actions": [None, {"seconds": float("nan"), "timeout": "x"}]}) == 20


@pytest.mark.parametrize("wrong", [{"ttl": 0}, {"wait": -1}, {"ttl": float("nan")}])
def test_terms_that_can_not_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="ttl must be"):
        LeaseTerms(**wrong)


# ---- closing what was launched


@pytest.fixture
def notes(applications: Path) -> None:  # noqa: F811
    make_entry(applications, "notes", command("--title", "Notes"), name="Notes")
    make_entry(applications, "clock", command("--title", "Clock"), name="Clock")


def launch(*apps: str, **more: Any) -> dict[str, Any]:
    return {"actions": [{"action": "launch", "app": app, **more} for app in apps]}


async def titles(server: XServer) -> set[str]:
    backend = LocalDisplay(server.display)
    try:
        return {window["title"] for window in await backend.windows() if window["title"]}
    finally:
        await backend.aclose()


@pytest.mark.usefixtures("notes")
def test_by_default_everything_stays_open(desktop: XServer) -> None:  # noqa: F811
    async def work() -> None:
        async with session(desktop, "s") as one:
            await one.act(launch("Notes"))
        assert await titles(desktop) == {"Notes"}
        async with session(desktop, "t", close_launched="end"):
            pass  # what another session launched is none of its business
        assert await titles(desktop) == {"Notes"}

    run(work())


@pytest.mark.usefixtures("notes")
def test_at_the_end_what_was_launched_is_closed_unless_it_is_to_stay(desktop: XServer, tmp_path: Path) -> None:  # noqa: F811
    async def work() -> None:
        recorder = TraceRecorder(tmp_path / "trace", goal="g")
        async with session(desktop, "s", close_launched="end", max_actions=2, trace=recorder) as one:
            await one.act(launch("Notes"))
            await one.act(launch("Clock", keep_open=True))
        assert await titles(desktop) == {"Clock"}
        assert one.left_open == []
        assert one.actions_used == 2
        await one.aclose()

    run(work())
    assert '"quit"' in (tmp_path / "trace" / "trace.jsonl").read_text()


@pytest.mark.usefixtures("notes")
def test_a_caller_who_knows_that_it_is_over_says_so(desktop: XServer) -> None:  # noqa: F811
    async def work() -> None:
        one = session(desktop, "s")
        await one.act(launch("Notes", "Clock"))
        await one.aclose(quit_launched=True)
        assert await titles(desktop) == set()

    run(work())


@pytest.mark.usefixtures("notes")
def test_after_a_while_without_an_action_but_not_while_a_person_thinks(desktop: XServer) -> None:  # noqa: F811
    async def work() -> None:
        async with session(desktop, "s", close_launched="idle", idle_s=0.2) as one:
            await one.act(launch("Notes"))
            async with one.parked():
                await asyncio.sleep(0.6)
                assert await titles(desktop) == {"Notes"}
            async with asyncio.timeout(20):
                while await titles(desktop):
                    await asyncio.sleep(0.05)
            assert (await one.act(LOOK)).ok

    run(work())


def test_what_does_not_close_is_told(desktop: XServer, applications: Path) -> None:  # noqa: F811
    make_entry(applications, "deaf", command("--title", "Deaf", "--on-close", "ignore"), name="Deaf")

    async def work() -> None:
        async with session(desktop, "s", close_launched="end") as one:
            await one.act(launch("Deaf"))
        assert [left["status"] for left in one.left_open] == ["failed"]
        assert "still open" in one.left_open[0]["error"]

    run(work())


def test_what_ran_before_is_never_closed() -> None:
    raised = {"action": "launch", "status": "ok", "outcome": "focus", "window": {"id": 5, "app_id": "a"}, "pid": 7}

    class Running(Told):
        async def windows(self) -> list[dict[str, Any]]:
            return [{"id": 5, "app_id": "a", "pid": 7, "type": "normal", "title": "A"}]

    async def work() -> None:
        answer = {"ok": True, "sent": "all", "results": [raised], "settle": "none", "moving": []}
        backend = Running(Outcome(answer))
        async with Session(backend, close_launched="end") as one:
            await one.act(launch("a"))
        assert len(backend.sent) == 1

    run(work())


def test_what_was_launched_may_be_a_dialog_and_open_a_window_when_it_closes() -> None:
    started = {"action": "launch", "status": "ok", "outcome": "window", "window": {"id": 5, "app_id": "a"}, "pid": 7}

    class Asks(Told):
        async def windows(self) -> list[dict[str, Any]]:
            dialog = {"id": 5, "app_id": "a", "pid": 7, "type": "dialog"}
            return [dialog] if len(self.sent) < 2 else [{"id": 6, "app_id": "a", "pid": 7, "type": "normal"}]

    async def work() -> None:
        answer = {"ok": True, "sent": "all", "results": [started], "settle": "none", "moving": []}
        closed, asked = ({**answer, "results": [{"outcome": outcome}]} for outcome in ("closed", "asked"))
        backend = Asks(Outcome(answer), Outcome(closed), Outcome(asked))
        async with Session(backend, close_launched="end") as one:
            await one.act(launch("a"))
        assert [batch["actions"][0]["window"] for batch in backend.sent[1:]] == [5, 6]
        assert one.left_open == [{"outcome": "asked"}]

    run(work())


def test_a_window_id_that_is_anothers_by_now_is_left_alone() -> None:
    started = {"action": "launch", "status": "ok", "outcome": "window", "window": {"id": 5, "app_id": "a"}, "pid": 7}

    class Reused(Told):
        async def windows(self) -> list[dict[str, Any]]:
            return [
                {"id": 5, "app_id": "b", "pid": 8, "type": "normal"},
                {"id": 6, "app_id": "a", "pid": 9, "type": "normal"},
                {"id": 7, "app_id": "x", "pid": 7, "type": "normal"},
                {"id": 8, "app_id": "a", "pid": 7, "type": "dialog"},
            ]

    async def work() -> None:
        answer = {"ok": True, "sent": "all", "results": [started], "settle": "none", "moving": []}
        backend = Reused(Outcome(answer), Outcome({**answer, "results": [{"outcome": "closed"}]}))
        async with Session(backend, close_launched="end") as one:
            await one.act(launch("a"))
        assert [batch["actions"][0] for batch in backend.sent[1:]] == [{"action": "quit", "window": 7}]

    run(work())


@pytest.mark.parametrize("wrong", [{"close_launched": "always"}, {"idle_s": 0}])
def test_a_policy_that_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"close_launched|idle_s"):
        Session(Told(), **wrong)


def test_settling_counts_at_the_end_and_before_each_look() -> None:
    settle = {"mode": "fixed", "timeout": 60}
    assert longest({"actions": [{"action": "click"}], "settle": settle}) == 80
    assert longest({"actions": [{"action": "screenshot"}, {"action": "zoom"}], "settle": settle}) == 220
    assert longest({"actions": [{"action": "click"}], "settle": {"timeout": "x"}}) == 20


def test_the_end_of_a_session_comes_also_when_nobody_waits_for_it(display: XServer) -> None:
    async def work() -> None:
        ended = session(display, "a")
        held = [{"action": "mouse_down", "x": 1, "y": 1}, {"action": "wait_window", "title": "-", "timeout": 50}]
        running = asyncio.create_task(ended.act({"actions": held, "settle": {"mode": "none"}}))
        await until(lambda: pressed(display))
        closing = asyncio.create_task(ended.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(BackendError):
            await running
        await until(lambda: not pressed(display))
        async with session(display, "b"):
            pass

    run(work())
