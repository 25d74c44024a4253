"""A session over a desktop of its own making: the guard, what is remembered, and its end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from deskhand import (
    ActionFailed,
    BackendError,
    BatchRefused,
    DisplayLost,
    LocalDisplay,
    NoDisplay,
    Session,
    TraceRecorder,
    Unsupported,
)
from deskhand.approvals import Ask, Policy
from deskhand.testing import xvfb
from deskhand.turns import LeaseTerms
from tests.told import Told, batch, ok, outcome

CLICK = {"action": "click", "x": 1, "y": 1}


# ---- the guard


def test_only_the_newest_picture_of_this_session_may_be_acted_on() -> None:
    async def run() -> None:
        backend = Told(ok("screenshot", picture=7), ok("wait"), ok("wait", picture=9))
        session = Session(backend)
        with pytest.raises(BatchRefused, match="it was given none"):
            await session.act(batch("wait", expect={"sequence": 7}))
        await session.screenshot()
        await session.act(batch("wait", expect={"sequence": 7}))
        await session.act(batch("wait", expect={"sequence": 7}, picture=True))
        with pytest.raises(BatchRefused, match="the picture 7 is not the newest this session was given") as caught:
            await session.act(batch("wait", expect={"sequence": 7}))
        assert caught.value.index == 0
        assert caught.value.sent == "none"
        assert session.sequence == 9
        assert len(backend.sent) == 3
        # Checked here, so that another session's picture on the same desktop does not count.
        assert backend.sent[1]["expect"] == {}

    asyncio.run(run())


@pytest.mark.parametrize("wrong", ["7", True, 7.5, [7], {}, "x" * 1000])
def test_a_guard_that_is_no_number_is_the_backends_to_refuse(wrong: object) -> None:
    async def run() -> None:
        backend = Told(BatchRefused("expect: sequence must be a number"))
        with pytest.raises(BatchRefused):
            await Session(backend).act(batch("wait", expect={"sequence": wrong}))
        assert backend.sent[0]["expect"] == {"sequence": wrong}

    asyncio.run(run())


def test_sessions_on_one_real_display_count_their_own_pictures() -> None:
    async def run(display: str) -> None:
        backend = LocalDisplay(display)
        one, two = Session(backend), Session(backend)
        await one.screenshot()
        await two.screenshot()
        assert one.sequence != two.sequence
        wait: dict[str, Any] = {"actions": [{"action": "wait", "seconds": 0}]}
        assert (await one.act({**wait, "expect": {"sequence": one.sequence}})).ok
        with pytest.raises(BatchRefused):
            await one.act({**wait, "expect": {"sequence": two.sequence}})
        with pytest.raises(BatchRefused, match="expect"):
            await one.act({**wait, "expect": {"sequence": "1"}})
        await one.aclose()
        await two.aclose()

    with xvfb() as server:
        asyncio.run(run(server.display))


# ---- what is remembered


def test_launches_and_the_last_outcome() -> None:
    window = {"action": "launch", "status": "ok", "window": {"id": 5}}
    failed = outcome([window, {"action": "launch", "status": "failed", "error": "no window"}], False)

    async def run() -> None:
        session = Session(Told(failed, BatchRefused("unknown"), ok("wait")))
        assert session.last_outcome is None
        await session.act(batch("launch", "launch"))
        assert session.launched == [window]
        assert session.last_outcome is not None
        assert (session.last_outcome["ok"], session.last_outcome["text"]) == (False, "no window")
        with pytest.raises(BatchRefused):
            await session.act(batch("launch"))
        assert (session.last_outcome["ok"], session.last_outcome["text"]) == (False, "unknown")
        await session.act(batch("wait"))
        assert (session.last_outcome["ok"], session.last_outcome["text"]) == (True, "done")

    asyncio.run(run())


def test_a_picture_that_could_not_be_taken_is_not_fine() -> None:
    async def run() -> None:
        session = Session(Told(outcome([{"action": "wait", "status": "ok"}], False, error="no picture: lost")))
        done = await session.act(batch("wait", picture=True))
        assert done.error == "no picture: lost"
        assert session.last_outcome is not None
        assert session.last_outcome["text"] == "no picture: lost"

    asyncio.run(run())


def test_an_error_says_how_much_was_sent() -> None:
    assert (BatchRefused("x").sent, NoDisplay("x").sent, Unsupported("x").sent) == ("none", "none", "none")
    assert (ActionFailed("x").sent, DisplayLost("x").sent) == ("part", "unknown")


# ---- its end


def test_the_end_is_passed_on() -> None:
    async def run() -> None:
        backend = Told()
        with pytest.raises(ZeroDivisionError):
            async with Session(backend):
                raise ZeroDivisionError
        assert backend.closed == 1

    asyncio.run(run())


def test_a_session_that_was_closed_sends_nothing_and_does_not_take_the_desktop_again(tmp_path: Path) -> None:
    async def main() -> None:
        with xvfb() as server:
            closed = Session(LocalDisplay(server.display), name="closed", lease=LeaseTerms())
            async with closed:
                pass
            with pytest.raises(RuntimeError, match="session is closed"):
                await closed.act({"actions": [CLICK]})
            asked, answer = asyncio.Event(), asyncio.Event()

            async def approve(ask: Ask) -> bool:
                asked.set()
                await answer.wait()
                return True

            trace = TraceRecorder(tmp_path, goal="g")
            options: dict[str, Any] = {"policy": Policy(input=True), "approve": approve}
            parked = Session(LocalDisplay(server.display), trace=trace, name="parked", lease=LeaseTerms(), **options)
            acting = asyncio.create_task(parked.act({"actions": [CLICK] * 2}))
            await asked.wait()
            await parked.aclose()
            trace.finish("stopped")
            answer.set()
            with pytest.raises(BackendError, match="closed before the batch began") as caught:
                await acting
            assert caught.value.sent == "none"
            assert parked.actions_used == 0
            async with Session(LocalDisplay(server.display), name="next", lease=LeaseTerms()):
                pass

    asyncio.run(main())
