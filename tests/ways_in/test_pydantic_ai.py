"""The Pydantic AI capability, with the SDK's own stand-ins for a model, on real X servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from deskhand import BudgetSpent, DesktopInUse, DisplayLost, LocalDisplay, NoDisplay, Session
from deskhand.approvals import Policy
from deskhand.backends.lease import DisplayLease
from deskhand.desktop import DesktopState
from deskhand.testing import XServer, xvfb
from tests.own_desktop import applications, desktop  # noqa: F401
from tests.probes import RawWindow, pressed

pytest.importorskip("pydantic_ai")
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from deskhand.pydantic_ai import Computer, ComputerToolset, keep_last_pictures

pytestmark = pytest.mark.slow

CLICK = {"action": "click", "x": 10, "y": 20}
LOOK: tuple[str, dict[str, Any]] = ("computer_screenshot", {})


def act(*actions: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "computer_act", {"actions": list(actions)}


class Scripted:
    """A model that makes these calls, one turn each, then says "done"; ``seen`` is every request it was sent."""

    def __init__(self, *turns: tuple[str, dict[str, Any]]) -> None:
        self.turns = list(turns)
        self.seen: list[list[ModelMessage]] = []
        self.info: AgentInfo | None = None
        self.calls = 0
        self.model = FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        self.info = info
        if not self.turns:
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = self.turns.pop(0)
        self.calls += 1
        return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=f"call-{id(self)}-{self.calls}")])


def returns(messages: list[ModelMessage]) -> list[ToolReturnPart[Any]]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def words(part: ToolReturnPart[Any]) -> str:
    content: Any = part.content
    return content if isinstance(content, str) else str([item for item in content if isinstance(item, str)])


def pictures(messages: list[ModelMessage]) -> int:
    contents: list[Any] = [part.content for part in returns(messages)]
    lists: list[list[Any]] = [content for content in contents if isinstance(content, list)]
    return sum(isinstance(item, BinaryContent) for content in lists for item in content)


def run(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await work

    return asyncio.run(main())


async def free(display: XServer) -> bool:
    """Whether nobody has the desktop."""
    lease = DisplayLease(display.display, None, "a look")
    try:
        await lease.take(60)
    except DesktopInUse:
        return False
    finally:
        await lease.release()
    return True


def test_a_run_acts_looks_and_lets_go(openbox_display: XServer) -> None:
    script = Scripted(LOOK, act(CLICK), ("computer_screenshot", {"region": [0, 0, 50, 50]}))
    agent = Agent(script.model, capabilities=[Computer(display=openbox_display.display)])

    async def work() -> None:
        with RawWindow(openbox_display) as window:
            result = await agent.run("click it")
            assert result.output == "done"
            assert [event.at for event in window.all("press")] == [(10, 20)]
        assert await free(openbox_display)
        found = returns(result.all_messages())
        assert [part.tool_name for part in found] == ["computer_screenshot", "computer_act", "computer_screenshot"]
        first: Any = found[0].content
        text, picture = first
        assert "the whole screen, 1280x800" in text
        assert picture.media_type == "image/png"
        assert picture.data.startswith(b"\x89PNG")
        assert found[1].metadata["results"][0]["point"] == [10, 20]

    run(work())
    assert script.info is not None
    assert "computer_act runs a batch" in (script.info.instructions or "")
    tools = {tool.name: tool for tool in script.info.function_tools}
    assert sorted(tools) == ["computer_act", "computer_apps", "computer_screenshot"]
    assert all(tool.sequential for tool in tools.values())


def test_every_tool_with_the_test_model(desktop: XServer, applications: Path) -> None:  # noqa: F811
    """It calls every tool once, with the least its schema allows."""
    agent = Agent(TestModel(), capabilities=[Computer(display=desktop.display)])
    result = agent.run_sync("try everything")
    found = returns(result.all_messages())
    assert sorted(part.tool_name for part in found) == ["computer_act", "computer_apps", "computer_screenshot"]
    assert all(part.outcome == "success" for part in found)


def test_a_refusal_is_a_retry_and_a_failure_is_told(openbox_display: XServer) -> None:
    outside = {"action": "click", "x": 1280, "y": 5}
    script = Scripted(
        act(CLICK, outside),
        act(CLICK, {"action": "wait_window", "title": "no such", "timeout": 0}),
        act({"action": "launch", "app": "no such application"}),
        act(CLICK, CLICK, CLICK),
    )
    agent = Agent(script.model, capabilities=[Computer(display=openbox_display.display, max_actions=3)])

    async def work() -> None:
        with RawWindow(openbox_display) as window:
            result = await agent.run("go")
            assert len(window.all("press")) == 1
        refused, failed, unknown, spent = returns(result.all_messages())
        assert refused.outcome == "retried"
        assert "outside the 1280x800 picture" in words(refused)
        assert "nothing was sent" in words(refused)
        assert "sent: part" in words(failed)
        assert pictures(result.all_messages()) == 1  # a batch that stopped still shows where
        assert (unknown.outcome, spent.outcome) == ("retried", "failed")
        assert "the run has 1 of 3 left" in words(spent)

    run(work())


def test_a_model_that_does_not_learn_ends_the_run_and_the_desktop_is_free(display: XServer) -> None:
    script = Scripted(*[act({"action": "nothing"})] * 20)
    agent = Agent(script.model, capabilities=[Computer(display=display.display)])

    async def work() -> None:
        with pytest.raises(UnexpectedModelBehavior, match="max retries"):
            await agent.run("go")
        assert await free(display)

    run(work())
    assert len(script.turns) == 20 - 6


def test_runs_side_by_side_have_sessions_of_their_own() -> None:
    """One agent, two desktops at once: a click of each run arrives at its own."""

    async def work(one: XServer, two: XServer) -> None:
        places = [one.display, two.display]
        computer: Computer[None] = Computer(backend=lambda: LocalDisplay(places.pop(0)), max_actions=1)
        both = asyncio.Barrier(2)

        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            if returns(messages):
                return ModelResponse(parts=[TextPart("done")])
            await both.wait()
            return ModelResponse(parts=[ToolCallPart(*act(CLICK))])

        agent = Agent(FunctionModel(answer), capabilities=[computer])
        with RawWindow(one) as first, RawWindow(two) as second:
            results = await asyncio.gather(agent.run("a"), agent.run("b"))
            assert [result.output for result in results] == ["done", "done"]
            assert len(first.all("press")) == len(second.all("press")) == 1

    with xvfb() as one, xvfb() as two:
        run(work(one, two))


def test_a_second_run_on_one_desktop_is_refused_or_queues(display: XServer) -> None:
    async def work() -> None:
        inside, leave = asyncio.Event(), asyncio.Event()

        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            inside.set()
            await leave.wait()
            return ModelResponse(parts=[TextPart("done")])

        agent = Agent(FunctionModel(answer), capabilities=[Computer(display=display.display, name="the first")])
        first = asyncio.create_task(agent.run("a"))
        await inside.wait()
        with pytest.raises(DesktopInUse, match="'the first'"):
            await agent.run("b")
        patient = Agent(FunctionModel(answer), capabilities=[Computer(display=display.display, queue_s=30)])
        second = asyncio.create_task(patient.run("c"))
        leave.set()
        assert (await first).output == (await second).output == "done"
        assert await free(display)

    run(work())


def test_a_cancelled_run_leaves_nothing_pressed_and_lets_go(display: XServer) -> None:
    script = Scripted(act({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}))
    agent = Agent(script.model, capabilities=[Computer(display=display.display)])

    async def work() -> None:
        running = asyncio.create_task(agent.run("go"))
        async with asyncio.timeout(20):
            while not pressed(display):
                await asyncio.sleep(0.01)  # the X server tells nobody what is pressed
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert pressed(display) == []
        assert await free(display)

    run(work())


def test_a_desktop_that_is_not_there_or_is_lost_ends_the_run() -> None:
    script = Scripted(LOOK)
    with pytest.raises(NoDisplay, match=":987"):
        Agent(script.model, capabilities=[Computer(display=":987")]).run_sync("go")

    async def work() -> None:
        with xvfb() as server:
            import os

            async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
                if len(messages) > 1:
                    os.kill(server.pid, 15)
                    return ModelResponse(parts=[ToolCallPart(*act({"action": "wait", "seconds": 30}))])
                return ModelResponse(parts=[ToolCallPart(*LOOK)])

            with pytest.raises((DisplayLost, NoDisplay)):
                await Agent(FunctionModel(answer), capabilities=[Computer(display=server.display)]).run("go")

    run(work())


# ---- what needs a person


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


# ---- pictures


def test_old_pictures_are_left_out_and_the_beginning_seldom_changes(display: XServer) -> None:
    script = Scripted(*[LOOK] * 14)
    agent = Agent(script.model, capabilities=[Computer(display=display.display, keep_pictures=3)])
    result = agent.run_sync("look")
    shown = [pictures(messages) for messages in script.seen]
    assert max(shown) < 6
    assert all(count >= min(3, number) for number, count in enumerate(shown))
    breaks = 0
    for before, after in zip(script.seen, script.seen[1:], strict=False):
        breaks += [_seen(message) for message in before] != [_seen(message) for message in after[: len(before)]]
    assert breaks == 3  # 14 pictures, three left out at a time
    assert pictures(result.all_messages()) == 14  # the run's own history keeps them


def _seen(message: ModelMessage) -> Any:
    if not isinstance(message, ModelRequest):
        return message.parts
    return [part.content if isinstance(part, ToolReturnPart) else part for part in message.parts]


def test_the_processor_leaves_other_tools_alone() -> None:
    picture = BinaryContent(b"x", media_type="image/png")
    other = ToolReturnPart("camera", content=[picture], tool_call_id="1")
    ours = [ToolReturnPart("desk_computer_act", content=["text", picture], tool_call_id=str(n)) for n in range(9)]
    history: list[ModelMessage] = [ModelRequest(parts=[other]), *(ModelRequest(parts=[part]) for part in ours)]
    processed = keep_last_pictures(2)(history)
    assert processed[0] is history[0]
    assert pictures(processed) == 1 + 3
    assert pictures(history) == 10
    assert keep_last_pictures(2)(processed) == processed
    with pytest.raises(ValueError, match="1 or more"):
        keep_last_pictures(0)


# ---- other ways to use it


def test_from_a_specification(display: XServer, tmp_path: Path) -> None:
    spec = {
        "capabilities": [
            {
                "Computer": {
                    "display": display.display,
                    "max_actions": 1,
                    "policy": {"launch": True, "windows": ["bank"]},
                }
            }
        ]
    }
    script = Scripted(act(CLICK), act(CLICK))
    agent = Agent.from_spec(spec, model=script.model, custom_capability_types=[Computer])
    found = returns(agent.run_sync("go").all_messages())
    assert [part.outcome for part in found] == ["success", "failed"]


def test_the_toolset_over_a_session_of_the_callers(display: XServer) -> None:
    script = Scripted(act(CLICK), act(CLICK))

    async def work() -> None:
        async with Session(LocalDisplay(display.display), max_actions=1) as session:
            agent = Agent(script.model, toolsets=[ComputerToolset(session)])
            await agent.run("go")
            assert session.actions_used == 1
            with pytest.raises(BudgetSpent):
                await session.act({"actions": [CLICK]})

    run(work())


def test_every_run_leaves_a_trace(display: XServer, tmp_path: Path) -> None:
    script = Scripted(LOOK)
    agent = Agent(script.model, capabilities=[Computer(display=display.display, trace=tmp_path)])
    agent.run_sync("look at it")
    (directory,) = tmp_path.iterdir()
    assert "look at it" in (directory / "index.html").read_text("utf-8")


@pytest.mark.slow
def test_an_application_is_opened_on_xfce(xfce: DesktopState) -> None:
    script = Scripted(
        ("computer_apps", {}),
        act({"action": "launch", "app": "Mousepad"}, {"action": "type", "text": "Hello"}),
        act({"action": "key", "keys": "ctrl+a"}, {"action": "key", "keys": "Delete"}),
    )
    computer: Computer[None] = Computer(display=xfce.display, close_launched="end")
    result = Agent(script.model, capabilities=[computer]).run_sync("write")
    apps, opened, _ = returns(result.all_messages())
    assert "Mousepad (org.xfce.mousepad)" in words(apps)
    assert opened.metadata["results"][0]["window"]["title"].endswith("Mousepad")

    async def left() -> list[dict[str, Any]]:
        backend = LocalDisplay(xfce.display)
        try:
            return await backend.windows()
        finally:
            await backend.aclose()

    assert not [window for window in run(left()) if "Mousepad" in window["title"]]


def test_the_model_decides_how_large_pictures_are() -> None:
    async def sizes(server: XServer, name: str) -> str:
        script = Scripted(LOOK)
        model = FunctionModel(script._answer, model_name=name)
        result = await Agent(model, capabilities=[Computer(display=server.display)]).run("look")
        return words(returns(result.all_messages())[0])

    with xvfb(2560, 1440) as server:
        assert "1366x768" in run(sizes(server, "gpt-6"))
        assert "1440x810" in run(sizes(server, "gemini-4"))
        assert "1430x804" in run(sizes(server, "claude-sonnet"))


def test_a_wrong_setting_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="keep_pictures"):
        Computer(keep_pictures=0)
    with pytest.raises(ValueError, match="backend"):
        Computer.from_spec(backend="x")
