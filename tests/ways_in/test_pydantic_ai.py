"""The Pydantic AI capability, with the SDK's own stand-ins for a model, on real X servers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from deskhand import BudgetSpent, DesktopInUse, DisplayLost, LocalDisplay, NoDisplay, Session
from deskhand.desktop import DesktopState
from deskhand.testing import XServer, xvfb
from tests.own_desktop import applications, desktop  # noqa: F401
from tests.probes import RawWindow, pressed

pytest.importorskip("pydantic_ai")
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from deskhand.pydantic_ai import Computer, ComputerToolset
from tests.ways_in.pydantic_runs import CLICK, LOOK, Scripted, act, free, pictures, returns, run, words

pytestmark = pytest.mark.slow


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


def test_a_wrong_setting_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="keep_pictures"):
        Computer(keep_pictures=0)
    with pytest.raises(ValueError, match="backend"):
        Computer.from_spec(backend="x")
