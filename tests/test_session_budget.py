"""A session's budget: what counts, what does not, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from deskhand import (
    BackendError,
    BatchRefused,
    BudgetSpent,
    DisplayLost,
    Outcome,
    Session,
)
from deskhand.backends.base import Envelope
from tests.told import Told, batch, ok, outcome


def test_each_tried_action_counts_and_a_skipped_one_does_not() -> None:
    stopped = outcome(
        [
            {"action": "click", "status": "ok"},
            {"action": "key", "status": "failed", "error": "no"},
            {"action": "key", "status": "skipped"},
        ],
        False,
    )

    async def run() -> None:
        session = Session(Told(stopped), max_actions=5)
        await session.act(batch("click", "key", "key"))
        assert (session.actions_used, session.actions_left) == (2, 3)
        await session.act(batch("wait", "wait", "wait"))
        assert (session.actions_used, session.actions_left) == (5, 0)

    asyncio.run(run())


def test_a_batch_over_the_budget_is_refused_whole_and_nothing_is_sent() -> None:
    async def run() -> None:
        backend = Told()
        session = Session(backend, max_actions=2)
        with pytest.raises(BudgetSpent, match="holds 3 actions and the run has 2 of 2 left") as caught:
            await session.act(batch("wait", "wait", "wait"))
        assert caught.value.sent == "none"
        assert isinstance(caught.value, BatchRefused)
        assert backend.sent == []
        assert session.actions_used == 0
        await session.act(batch("wait", "wait"))
        with pytest.raises(BudgetSpent):
            await session.act(batch("wait"))
        assert len(backend.sent) == 1

    asyncio.run(run())


def test_refusals_and_looking_cost_nothing() -> None:
    async def run() -> None:
        session = Session(Told(BatchRefused("no", 0), ok("screenshot", picture=1)), max_actions=1)
        with pytest.raises(BatchRefused):
            await session.act(batch("wait"))
        await session.screenshot(max_edge=100)
        await session.apps()
        await session.windows()
        assert session.actions_left == 1

    asyncio.run(run())


def test_batches_at_once_do_not_share_the_last_of_the_budget() -> None:
    async def run() -> None:
        session = Session(Told(), max_actions=3)
        done = await asyncio.gather(*(session.act(batch("wait", "wait")) for _ in range(4)), return_exceptions=True)
        assert [type(one) for one in done] == [Outcome, BudgetSpent, BudgetSpent, BudgetSpent]
        assert session.actions_used == 2

    asyncio.run(run())


def test_without_a_limit_there_is_none() -> None:
    async def run() -> None:
        session = Session(Told())
        await session.act(batch(*["wait"] * 100))
        assert session.actions_left is None
        assert session.actions_used == 100

    asyncio.run(run())


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "3"])
def test_no_budget_at_all_is_a_mistake(limit: Any) -> None:
    with pytest.raises(ValueError, match="max_actions"):
        Session(Told(), max_actions=limit)


@pytest.mark.parametrize("error", [BackendError("the answer was lost"), DisplayLost("gone")])
def test_of_a_batch_that_is_lost_all_counts(error: BackendError) -> None:
    """Else a run whose answers get lost would have no limit."""

    async def run() -> None:
        session = Session(Told(error), max_actions=3)
        with pytest.raises(BackendError):
            await session.act(batch("click", "click", "wait"))
        assert session.actions_left == 0
        with pytest.raises(BudgetSpent):
            await session.act(batch("click"))

    asyncio.run(run())


def test_a_batch_that_is_cancelled_counts_unless_it_waits_for_its_turn() -> None:
    class Slow(Told):
        async def act(self, envelope: Envelope) -> Outcome:
            await asyncio.sleep(60)
            raise AssertionError

    async def run() -> None:
        session = Session(Slow(), max_actions=10)
        first = asyncio.create_task(session.act(batch("click", "click")))
        await asyncio.sleep(0)
        second = asyncio.create_task(session.act(batch("wait", "wait", "wait")))
        await asyncio.sleep(0.01)
        for task in (second, first):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert session.actions_used == 2

    asyncio.run(run())


def test_a_look_that_is_lost_costs_nothing() -> None:
    lost = DisplayLost("gone", answer={"ok": False, "sent": "unknown", "results": [{"action": "a", "status": "ok"}]})

    async def run() -> None:
        session = Session(Told(lost), max_actions=10)
        with pytest.raises(DisplayLost):
            await session.screenshot()
        assert session.actions_used == 0

    asyncio.run(run())


def test_what_a_lost_display_leaves_is_counted() -> None:
    lost = DisplayLost("gone", answer={"ok": False, "sent": "unknown", "results": [{"action": "a", "status": "ok"},
        {"action": "b", "status": "failed", "error": "gone"}, {"action": "c", "status": "skipped"}]})  # fmt: skip

    async def run() -> None:
        session = Session(Told(lost), max_actions=10)
        with pytest.raises(DisplayLost):
            await session.act(batch("a", "b", "c"))
        assert session.actions_used == 2

    asyncio.run(run())


@pytest.mark.parametrize("broken", [{}, {"actions": None}, {"actions": "x"}, {"actions": 3}])
def test_a_batch_that_is_none_goes_to_the_backend_to_refuse(broken: dict[str, Any]) -> None:
    async def run() -> None:
        backend = Told(BatchRefused("no"))
        with pytest.raises(BatchRefused):
            await Session(backend, max_actions=1).act(broken)
        assert len(backend.sent) == 1

    asyncio.run(run())
