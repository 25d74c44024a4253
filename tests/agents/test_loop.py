"""The loop: what the agent is shown, and when it ends; the agent and the desktop are the test's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from deskhand import ActionFailed, BatchRefused, BudgetSpent, DisplayLost, Session, TraceRecorder, Unsupported
from deskhand.agents import Check, Done, ListApps, Observation, RunResult, Turn, run_goal
from tests.told import Told, batch, lines, ok, outcome

FAILED = outcome([{"action": "key", "status": "failed", "error": "no window"}], False)


class Agent:
    """Does what it was told, and keeps what it was shown."""

    name = "told"

    def __init__(self, *turns: Turn | ListApps | Done) -> None:
        self.turns = list(turns)
        self.seen: list[Observation] = []

    async def next(self, seen: Observation) -> Turn | ListApps | Done:
        self.seen.append(seen)
        return self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]


def run(agent: Agent, backend: Told, **more: Any) -> tuple[RunResult, list[str]]:
    told: list[str] = []

    async def loop() -> RunResult:
        trace = more.pop("trace", None)
        async with Session(backend, more.pop("max_actions", None), trace) as session:
            return await run_goal("g", agent, session, progress=told.append, **more)

    return asyncio.run(loop()), told


def test_what_came_of_each_turn_is_shown_before_the_next() -> None:
    agent = Agent(ListApps("what is there?"), Turn(batch("click"), "I click."), Turn(batch("key")), Done("fine"))
    result, told = run(agent, Told(ok("click"), FAILED))
    assert (result.ok, result.text, result.turns) == (True, "fine", 4)
    first, apps, clicked, failed = agent.seen
    assert first == Observation("g")
    assert apps.apps == [{"id": "a", "name": "A", "path": "/a"}]
    assert clicked.outcome is not None
    assert clicked.error is None
    assert failed.error == "no window"
    assert told[0] == "what is there?"
    assert "1 applications: A" in told[1]


@pytest.mark.parametrize("error", [BatchRefused("no such key", 0), ActionFailed("did not work")])
def test_an_agent_may_try_another_way(error: Exception) -> None:
    agent = Agent(Turn(batch("key")), Turn(batch("click")), Done("fine"))
    result, told = run(agent, Told(error, ok("click")))
    assert result.ok
    assert agent.seen[1].error == str(error)
    assert told[0] == f"  refused: {error}"


def test_a_spent_budget_is_told_to_the_agent() -> None:
    agent = Agent(Turn(batch("click", "click")), Done("no", success=False))
    result, _ = run(agent, Told(), max_actions=1)
    assert not result.ok
    assert "the run has 1 of 1 left" in str(agent.seen[1].error)
    assert issubclass(BudgetSpent, BatchRefused)


@pytest.mark.parametrize("error", [DisplayLost("gone"), Unsupported("no XTEST")])
def test_what_no_agent_can_help_ends_the_run(error: Exception) -> None:
    with pytest.raises(type(error)):
        run(Agent(Turn(batch("click"))), Told(error))


def test_an_agent_that_is_never_done_is_stopped() -> None:
    result, _ = run(Agent(Turn(batch("click"))), Told(), max_turns=3)
    assert (result.ok, result.turns) == (False, 3)
    assert "not done after 3 turns" in result.text


def test_done_is_believed_only_where_nothing_says_otherwise() -> None:
    right, wrong = Check("a", "1", "1", True), Check("b", "2", "3", False)
    assert run(Agent(Done("fine")), Told(), checks=[lambda: right])[0].ok
    result, told = run(Agent(Done("fine")), Told(), checks=[lambda: right, lambda: wrong])
    assert not result.ok
    assert result.text == "b: expected 2, found 3"
    assert told[-1] == "check WRONG: b: 3"
    given_up, _ = run(Agent(Done("I can not", success=False)), Told(), checks=[lambda: right])
    assert (given_up.ok, given_up.text, given_up.checks) == (False, "I can not", [])


def test_what_the_agent_says_is_in_the_trace(tmp_path: Path) -> None:
    agent = Agent(Turn(batch("click"), "I click."), Done("fine"))
    run(agent, Told(), trace=TraceRecorder(tmp_path, goal="g"))
    assert [event.get("text") for event in lines(tmp_path) if event["event"] == "say"] == ["I click.", "fine"]
