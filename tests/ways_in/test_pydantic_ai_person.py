"""The Pydantic AI capability where a person is needed: runs that are parked, resumed, answered or given up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deskhand.approvals import Policy
from deskhand.testing import XServer
from tests.probes import RawWindow

pytest.importorskip("pydantic_ai")
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.capabilities import HandleDeferredToolCalls

from deskhand.pydantic_ai import Computer
from tests.ways_in.pydantic_runs import CLICK, LOOK, Scripted, act, free, returns, run, words

pytestmark = pytest.mark.slow


def parked_agent(display: XServer, script: Scripted, **more: Any) -> Agent[None, str | DeferredToolRequests]:
    computer: Computer[None] = Computer(display=display.display, policy=Policy(launch=True, input=True), **more)
    return Agent(script.model, capabilities=[computer], output_type=[str, DeferredToolRequests])


def test_a_parked_run_keeps_session_and_desktop_and_is_resumed_with_both(display: XServer) -> None:
    script = Scripted(LOOK, act(CLICK), act({"action": "click", "x": 30, "y": 40}))
    agent = parked_agent(display, script, max_actions=2)

    async def work() -> None:
        with RawWindow(display) as window:
            parked = await agent.run("click")
            assert isinstance(parked.output, DeferredToolRequests)
            (call,) = parked.output.approvals
            assert parked.output.metadata[call.tool_call_id]["asks"][0]["source"] == "policy: input"
            assert window.all("press") == []
            assert not await free(display)
            results = parked.output.build_results(approve_all=True)
            done = await agent.run(message_history=parked.all_messages(), deferred_tool_results=results)
            assert done.output == "done"  # the second click is not asked for again: a yes holds for the session
            assert [event.at for event in window.all("press")] == [(10, 20), (30, 40)]
            assert await free(display)

    run(work())


def test_the_budget_and_the_pictures_go_on_in_the_resumed_run(display: XServer) -> None:
    script = Scripted(act({"action": "wait", "seconds": 0}), act(CLICK), act({"action": "wait", "seconds": 0}))
    agent = parked_agent(display, script, max_actions=2)

    async def work() -> None:
        parked = await agent.run("click")
        assert isinstance(parked.output, DeferredToolRequests)
        results = parked.output.build_results(approve_all=True)
        done = await agent.run(message_history=parked.all_messages(), deferred_tool_results=results)
        assert "the run has 0 of 2 left" in words(returns(done.all_messages())[-1])

    run(work())


def test_a_no_is_told_and_the_run_goes_on(display: XServer) -> None:
    script = Scripted(act(CLICK), LOOK)
    agent = parked_agent(display, script)

    async def work() -> None:
        with RawWindow(display) as window:
            parked = await agent.run("click")
            assert isinstance(parked.output, DeferredToolRequests)
            (call,) = parked.output.approvals
            no = DeferredToolResults(approvals={call.tool_call_id: ToolDenied("not this")})
            done = await agent.run(message_history=parked.all_messages(), deferred_tool_results=no)
            assert done.output == "done"
            assert "not this" in words(returns(done.all_messages())[0])
            assert window.all("press") == []
        assert await free(display)

    run(work())


@pytest.mark.parametrize("word", [True, False])
def test_the_answer_is_in_the_trace(display: XServer, tmp_path: Path, word: bool) -> None:
    agent = parked_agent(display, Scripted(act(CLICK), act(CLICK)), trace=tmp_path)

    async def work() -> None:
        parked = await agent.run("click")
        assert isinstance(parked.output, DeferredToolRequests)
        answers = DeferredToolResults(approvals={parked.output.approvals[0].tool_call_id: word})
        again = await agent.run(message_history=parked.all_messages(), deferred_tool_results=answers)
        if not word:
            assert isinstance(again.output, DeferredToolRequests)  # a no holds for the one call
            answers = DeferredToolResults(approvals={again.output.approvals[0].tool_call_id: True})
            again = await agent.run(message_history=again.all_messages(), deferred_tool_results=answers)
        assert again.output == "done"

    run(work())
    (directory,) = tmp_path.iterdir()
    events = [json.loads(line) for line in (directory / "trace.jsonl").read_text().splitlines()]
    told = [event.get("outcome", "") for event in events if event["event"] in ("approval", "batch")]
    assert told == (["allowed", "", ""] if word else ["declined", "allowed", ""])


def test_a_handler_answers_within_the_run(display: XServer) -> None:
    script = Scripted(act(CLICK))
    asked: list[Any] = []

    async def handle(ctx: Any, requests: DeferredToolRequests) -> DeferredToolResults:
        asked.append(requests.metadata)
        return requests.build_results(approve_all=True)

    computer: Computer[None] = Computer(display=display.display, policy=Policy(input=True))
    agent = Agent(script.model, capabilities=[computer, HandleDeferredToolCalls(handler=handle)])

    async def work() -> None:
        with RawWindow(display) as window:
            assert (await agent.run("click")).output == "done"
            assert len(window.all("press")) == len(asked) == 1
        assert await free(display)

    run(work())


def test_parked_runs_can_be_given_up(display: XServer) -> None:
    script = Scripted(act(CLICK))
    computer: Computer[None] = Computer(display=display.display, policy=Policy(input=True))
    agent = Agent(script.model, capabilities=[computer], output_type=[str, DeferredToolRequests])

    async def work() -> None:
        await agent.run("click")
        assert not await free(display)
        await computer.aclose()
        assert await free(display)

    run(work())
