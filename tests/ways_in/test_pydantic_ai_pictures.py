"""The pictures a Pydantic AI agent is shown: how many are kept, and how large they are."""

from __future__ import annotations

from typing import Any

import pytest

from deskhand.testing import XServer, xvfb

pytest.importorskip("pydantic_ai")
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from deskhand.pydantic_ai import Computer, keep_last_pictures
from tests.ways_in.pydantic_runs import LOOK, Scripted, pictures, returns, run, words

pytestmark = pytest.mark.slow


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
