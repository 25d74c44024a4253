"""The OpenAI Agents SDK's computer, driven by its runner with its own scripted model, on real X servers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from deskhand import BatchRefused, LocalDisplay, Session
from deskhand.approvals import Ask, Policy
from deskhand.testing import XServer
from tests.own_desktop import applications, desktop  # noqa: F401
from tests.probes import RawWindow

pytest.importorskip("agents.testing")
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseComputerToolCall

from agents import Agent, RunConfig, Runner, UserError
from deskhand.openai_agents import DesktopComputer

pytestmark = pytest.mark.slow


def call(*actions: dict[str, Any], checks: tuple[dict[str, str], ...] = ()) -> list[Any]:
    return [
        ResponseComputerToolCall.model_validate(
            {
                "id": "item", "call_id": "call", "type": "computer_call", "status": "completed",
                "actions": list(actions), "pending_safety_checks": list(checks),
            }
        )
    ]  # fmt: skip


CLICK = {"type": "click", "x": 10, "y": 20, "button": "left", "keys": []}
DONE = [assistant_message("done")]


def run(display: XServer, work: Callable[[Session], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with Session(LocalDisplay(display.display), **options) as session:
            await work(session)

    asyncio.run(main())


async def goal(computer: DesktopComputer, model: ScriptedModel, config: RunConfig | None = None) -> Any:
    agent = Agent(name="desk", model=model, tools=computer.tools())
    config = config or computer.run_config()
    config.tracing_disabled = True
    return await Runner.run(agent, "go", run_config=config)


def outputs(result: Any) -> list[bytes]:
    items = [item for item in result.to_input_list() if item.get("type") == "computer_call_output"]
    return [base64.b64decode(item["output"]["image_url"].partition(",")[2]) for item in items]


def test_every_verb_arrives(openbox_display: XServer) -> None:
    async def work(session: Session) -> None:
        computer = await DesktopComputer.open(session)
        assert (computer.environment, computer.dimensions) == ("ubuntu", (1229, 768))
        with RawWindow(openbox_display) as window:
            model = ScriptedModel(
                [
                    call({"type": "screenshot"}),
                    call(CLICK, {"type": "double_click", "x": 1228, "y": 767, "keys": ["SHIFT"]}),
                    call({"type": "scroll", "x": 0, "y": 0, "scroll_x": 0, "scroll_y": 300, "keys": []}),
                    call(
                        {"type": "drag", "path": [{"x": 10, "y": 10}, {"x": 50, "y": 60}], "keys": []},
                        {"type": "move", "x": 614, "y": 384, "keys": []},
                        {"type": "wait"},
                    ),
                    DONE,
                ]
            )
            result = await goal(computer, model)
            assert result.final_output == "done"
            assert len(outputs(result)) == 4
            assert all(picture.startswith(b"\x89PNG") for picture in outputs(result))
            presses = window.all("press")
            assert [event.detail for event in presses] == [1, 1, 1, 5, 5, 5, 1]
            assert presses[1].at == presses[2].at == (1279, 799)
            assert presses[1].state & 1  # shift is held
            assert presses[3].at == (0, 0)
            assert presses[0].at == (10, 21)

    run(openbox_display, work)


def test_what_went_wrong_is_told_and_the_rest_of_the_call_is_not_run(display: XServer) -> None:
    async def work(session: Session) -> None:
        computer = await DesktopComputer.open(session)
        outside = {**CLICK, "x": 2000}
        model = ScriptedModel([call(outside, CLICK), call(CLICK), DONE])
        with RawWindow(display) as window:
            assert (await goal(computer, model)).final_output == "done"
            assert len(window.all("press")) == 1
        told = [str(one.input) for one in model.calls]
        assert "Error" not in told[0]
        assert "outside the 1229x768 picture" in told[1]
        assert "the rest of that computer call was not executed" in told[1]
        assert "Error" not in told[2]  # told once

    run(display, work)


def test_without_its_configuration_an_error_ends_the_run(display: XServer) -> None:
    async def work(session: Session) -> None:
        computer = await DesktopComputer.open(session)
        with pytest.raises(BatchRefused, match="outside"):
            await goal(computer, ScriptedModel([call({**CLICK, "x": 2000})]), RunConfig())

    run(display, work)


CHECKS = ({"id": "c1", "code": "malicious_instructions", "message": "this looks like a trap"},)


def test_a_safety_check_is_the_persons_to_allow(display: XServer) -> None:
    asked: list[Ask] = []

    async def yes(ask: Ask) -> bool:
        asked.append(ask)
        return True

    async def work(session: Session) -> None:
        computer = await DesktopComputer.open(session)
        with RawWindow(display) as window:
            result = await goal(computer, ScriptedModel([call(CLICK, checks=CHECKS), DONE]))
            assert len(window.all("press")) == 1
        told = [(ask.source, ask.verb, ask.reason) for ask in asked]
        assert told == [("openai safety check", "click", "this looks like a trap")]
        items = [item for item in result.to_input_list() if item.get("type") == "computer_call_output"]
        assert items[0]["acknowledged_safety_checks"][0]["id"] == "c1"

    run(display, work, approve=yes)


def test_a_safety_check_that_nobody_allows_sends_nothing(display: XServer) -> None:
    async def work(session: Session) -> None:
        computer = await DesktopComputer.open(session)
        with RawWindow(display) as window:
            with pytest.raises(UserError):
                await goal(computer, ScriptedModel([call(CLICK, checks=CHECKS)]))
            assert window.all("press") == []

    run(display, work)


def test_what_the_policy_asks_for_is_told_when_it_is_declined(display: XServer) -> None:
    """And is done when it is allowed; the run goes on either way."""
    words = [False, True]

    async def answer(ask: Ask) -> bool:
        assert ask.source == "policy: input"
        return words.pop(0)

    async def work(session: Session) -> None:
        computer = await DesktopComputer.open(session)
        model = ScriptedModel([call(CLICK, CLICK), call(CLICK), DONE])
        with RawWindow(display) as window:
            result = await goal(computer, model)
            assert result.final_output == "done"
            assert len(window.all("press")) == 1
        told = [str(one.input) for one in model.calls]
        assert "did not grant permission to run 'click'" in told[1]
        assert "the rest of that computer call was not executed" in told[1]
        assert words == []

    run(display, work, approve=answer, policy=Policy(input=True))


def test_applications_are_opened_by_name(desktop: XServer, applications: Path) -> None:  # noqa: F811
    async def work(session: Session) -> None:
        computer = await DesktopComputer.open(session)
        model = ScriptedModel(
            [
                [function_call("computer_apps", {}, call_id="1")],
                [function_call("launch", {"app": "Not there"}, call_id="2")],
                DONE,
            ]
        )
        result = await goal(computer, model)
        told = [item["output"] for item in result.to_input_list() if item.get("type") == "function_call_output"]
        assert "shows no applications" in told[0] or "(" in told[0]
        assert "unknown application 'Not there'" in told[1]
        assert "nothing was sent" in told[1]

    run(desktop, work)
