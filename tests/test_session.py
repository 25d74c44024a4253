"""A session over a desktop of its own making: the budget, the guard, what is remembered and what is recorded."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from deskhand import (
    ActionFailed,
    Backend,
    BackendError,
    BatchRefused,
    BudgetSpent,
    DisplayLost,
    LocalDisplay,
    NoDisplay,
    Outcome,
    Session,
    SetupError,
    TraceRecorder,
    Unsupported,
)
from deskhand.approvals import Ask, Policy
from deskhand.backends.base import Envelope
from deskhand.testing import xvfb
from deskhand.turns import LeaseTerms

CLICK = {"action": "click", "x": 1, "y": 1}


def ok(*names: str, picture: int | None = None, **more: Any) -> Outcome:
    """The outcome of a batch that went well."""
    return outcome([{"action": name, "status": "ok"} for name in names], True, picture, **more)


def outcome(results: list[dict[str, Any]], fine: bool, picture: int | None = None, **more: Any) -> Outcome:
    answer: dict[str, Any] = {"ok": fine, "sent": "all" if fine else "part", "results": results, "settle": "none"}
    answer.update(settled=True, settle_ms=0, moving=[], **more)
    if picture is not None:
        answer["picture"] = {"format": "png", "width": 1, "height": 1, "sequence": picture}
    return Outcome(answer, b"picture" if picture is not None else None)


class Told(Backend):
    """A backend that answers what the test says, one item a batch, and keeps what it was sent."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[dict[str, Any]] = []
        self.closed = 0
        self.at_once = 0

    async def info(self) -> dict[str, Any]:
        return {}

    async def act(self, batch: Envelope) -> Outcome:
        self.sent.append(dict(batch))
        self.at_once += 1
        assert self.at_once == 1, "two batches at once"
        await asyncio.sleep(0)
        self.at_once -= 1
        answer = self.answers.pop(0) if self.answers else ok(*(action["action"] for action in batch["actions"]))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def apps(self) -> list[dict[str, str]]:
        return [{"id": "a", "name": "A", "path": "/a"}]

    async def windows(self) -> list[dict[str, Any]]:
        return []

    async def aclose(self) -> None:
        self.closed += 1


def batch(*names: str, **more: Any) -> dict[str, Any]:
    return {"actions": [{"action": name} for name in names], **more}


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "trace.jsonl").read_text("utf-8").splitlines()]


# ---- the budget


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


@pytest.mark.parametrize("limit", [0, -1])
def test_no_budget_at_all_is_a_mistake(limit: int) -> None:
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


def test_the_end_is_passed_on() -> None:
    async def run() -> None:
        backend = Told()
        with pytest.raises(ZeroDivisionError):
            async with Session(backend):
                raise ZeroDivisionError
        assert backend.closed == 1

    asyncio.run(run())


# ---- the trace


def test_everything_is_recorded_refusals_too(tmp_path: Path) -> None:
    lost = DisplayLost("the X server is gone", answer={"ok": False, "sent": "unknown", "error": "the X server is gone",
        "results": [{"action": "click", "status": "failed", "error": "the X server is gone"}]})  # fmt: skip

    async def run() -> None:
        told = Told(
            ok("click", picture=1), BatchRefused("no such key", 0), NoDisplay("none"), Unsupported("8 bit"), lost
        )
        session = Session(told, max_actions=3, trace=TraceRecorder(tmp_path, goal="g"))
        await session.act(batch("click", picture=True))
        for error in (BatchRefused, NoDisplay, Unsupported, DisplayLost):
            with pytest.raises(error):
                await session.act(batch("click"))
        with pytest.raises(BudgetSpent):
            await session.act(batch("click", "click", "click"))
        await session.apps()

    asyncio.run(run())
    events = lines(tmp_path)[1:]
    assert [event["event"] for event in events] == ["batch"] * 6 + ["tool"]
    assert events[0]["after"] == "0001.png"
    assert [event["answer"]["sent"] for event in events[:6]] == ["all", "none", "none", "none", "unknown", "none"]
    assert [event["answer"].get("error", "")[:11] for event in events[1:6]] == [
        "no such key", "none", "8 bit", "the X serve", "the batch h",
    ]  # fmt: skip
    assert all(event["envelope"]["actions"] for event in events[:6])


def test_a_cancelled_batch_is_recorded(tmp_path: Path) -> None:
    class Waiting(Told):
        async def act(self, batch: Envelope) -> Outcome:
            await asyncio.Event().wait()
            raise AssertionError

    async def run() -> None:
        session = Session(Waiting(), trace=TraceRecorder(tmp_path, goal="g"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.act(batch("click")), 0.05)
        assert session.last_outcome is not None
        assert session.last_outcome["text"].startswith("cancelled")

    asyncio.run(run())
    assert lines(tmp_path)[1]["answer"]["sent"] == "unknown"


def test_a_trace_that_can_not_be_written_does_not_make_a_sent_batch_look_unsent(tmp_path: Path) -> None:
    class Full(TraceRecorder):
        def batch(self, *_: Any, **__: Any) -> None:
            raise SetupError("no space left")

    async def run() -> None:
        session = Session(Told(ok("click"), BatchRefused("no")), trace=Full(tmp_path, goal="g"), max_actions=9)
        with pytest.raises(SetupError, match="no space left") as caught:
            await session.act(batch("click"))
        assert caught.value.sent == "all"
        assert caught.value.facts["answer"]["ok"]
        assert session.actions_used == 1
        with pytest.raises(BatchRefused):
            await session.act(batch("click"))

    asyncio.run(run())


def test_an_error_says_how_much_was_sent() -> None:
    assert (BatchRefused("x").sent, NoDisplay("x").sent, Unsupported("x").sent) == ("none", "none", "none")
    assert (ActionFailed("x").sent, DisplayLost("x").sent) == ("part", "unknown")


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


def test_a_list_of_applications_that_fails_is_told_and_stands_in_the_trace(tmp_path: Path) -> None:
    class WithoutLookup(Told):
        async def apps(self) -> list[dict[str, str]]:
            raise Unsupported("there is no lookup here")

    async def run() -> None:
        session = Session(WithoutLookup(), trace=TraceRecorder(tmp_path, goal="g"))
        with pytest.raises(Unsupported):
            await session.apps()
        assert session.last_outcome is not None
        assert (session.last_outcome["ok"], session.last_outcome["text"]) == (False, "there is no lookup here")

    asyncio.run(run())
    assert lines(tmp_path)[1]["answer"] == {"error": "there is no lookup here"}
