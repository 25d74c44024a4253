from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.hand.actions import Scroll
from deskhand.hand.envelope import parse_batch
from deskhand.vendors.base import Ask
from deskhand.vendors.openai import Computer, Preview
from deskhand.vendors.running import run_turn
from tests.vendors.examples import OPENAI, SCREEN, computer_call, preview_call
from tests.vendors.outcomes import PretendSession, outcome

CHECK = {"id": "sc_1", "code": "malicious_instructions", "message": "The page asks for something else."}
CLICK = {"type": "click", "button": "left", "x": 1, "y": 2}


def run(reply: Any, session: PretendSession, approve: Any = None) -> list[dict[str, Any]]:
    session.approve = approve
    return asyncio.run(run_turn(Computer(SCREEN), reply, session))[0]


async def yes(ask: Ask) -> bool:
    return True


def test_one_call_of_several_actions_is_one_batch_and_one_picture() -> None:
    session = PretendSession()
    items = run({"output": [computer_call(CLICK, {"type": "type", "text": "x"}, {"type": "screenshot"})]}, session)
    assert [action["action"] for action in session.batches[0]["actions"]] == ["click", "type", "screenshot"]
    assert session.batches[0]["space"] == {"picture": [1280, 800]}
    assert len(items) == 1
    assert items[0]["call_id"] == "call_0"
    assert items[0]["output"]["image_url"].startswith("data:image/png;base64,")
    assert items[0]["output"]["detail"] == "original"
    assert session.looks == 0


def test_scroll_is_in_pixels_at_a_hundred_a_notch_and_at_least_one() -> None:
    for pixels, notches in ((100, 1), (-250, -2), (30, 1), (-1, -1), (10_000, 100)):
        turn = Computer(SCREEN).read(
            [computer_call({"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": pixels})]
        )
        action = parse_batch(turn.parts[0].envelope).actions[0]
        assert isinstance(action, Scroll)
        assert action.notches() == (0, notches)


def test_a_failure_is_said_beside_the_picture() -> None:
    session = PretendSession(outcome("ok", "failed", "skipped", error="no window"))
    items = run([computer_call(CLICK, CLICK, CLICK)], session)
    assert items[0]["output"]["image_url"]
    text = items[1]["content"][0]["text"]
    assert text == "Error: action 2 of 3 failed, the rest was not executed: no window"
    assert items[1]["role"] == "user"


def test_a_refusal_takes_a_picture_and_sends_nothing() -> None:
    session = PretendSession()
    items = run([computer_call({"type": "click", "x": 1, "y": 2})], session)
    assert session.batches == []
    assert session.looks == 1
    assert items[0]["type"] == "computer_call_output"
    assert items[1]["content"][0]["text"] == "Error: click: button is missing"


def test_each_of_several_calls_has_its_own_picture() -> None:
    session = PretendSession(outcome("ok"), outcome("failed"))
    items = run([computer_call(CLICK, number=n) for n in range(3)], session)
    assert [item["call_id"] for item in items[:3]] == ["call_0", "call_1", "call_2"]
    assert all(item["output"]["image_url"] for item in items[:3])
    assert "call_2: Not executed" in items[3]["content"][0]["text"]


def test_safety_checks_are_asked_and_acknowledged() -> None:
    session = PretendSession()
    reply = [computer_call(CLICK, pending_safety_checks=[CHECK])]
    asks = Computer(SCREEN).read(reply).asks
    assert (asks[0].source, asks[0].reason) == ("openai safety check", "The page asks for something else.")

    refused = run(reply, session)
    assert session.batches == []
    assert "acknowledged_safety_checks" not in refused[0]
    assert "did not grant permission" in refused[1]["content"][0]["text"]

    allowed = run(reply, session, yes)
    assert len(session.batches) == 1
    assert allowed[0]["acknowledged_safety_checks"] == [CHECK]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (computer_call(), "holds no actions"),
        (computer_call(CLICK, action={"type": "wait"}), "which differ"),
        (computer_call(actions="click"), "holds no actions"),
        (computer_call(actions=["click"]), "must be an object with a type"),
        (computer_call({}), "names no action"),
        (computer_call(*[CLICK] * 101), "100 is the most"),
    ],
)
def test_calls_of_a_wrong_form_are_refused(call: dict[str, Any], words: str) -> None:
    with pytest.raises(BatchRefused, match=words):
        Computer(SCREEN).read([call])


def test_preview() -> None:
    adapter = Preview((1920, 1080))
    assert adapter.picture == (1366, 768)
    tool = {"type": "computer_use_preview", "environment": "linux", "display_width": 1366, "display_height": 768}
    assert adapter.tools() == [tool]
    turn = adapter.read([preview_call(CLICK)])
    items = adapter.answer(turn, [outcome("ok")])
    assert "detail" not in items[0]["output"]
    with pytest.raises(ValueError, match="needs a picture"):
        adapter.answer(turn, [])


def test_against_the_installed_sdk() -> None:
    pytest.importorskip("openai")
    from pydantic import TypeAdapter

    sdk = import_module("openai.types.responses.computer_action")
    input_items = import_module("openai.types.responses.response_input_item_param")
    tool_call = import_module("openai.types.responses").ResponseComputerToolCall

    kinds = {kind.model_fields["type"].annotation.__args__[0]: kind for kind in sdk.ComputerAction.__args__[0].__args__}
    assert set(kinds) == set(Computer.verbs)
    for verb, (given, _) in OPENAI.items():
        fields = {name: field for name, field in kinds[verb].model_fields.items() if name != "type"}
        takes = Computer.verbs[verb].takes.split()
        assert {word.rstrip("?") for word in takes} == set(fields), verb
        assert {word for word in takes if not word.endswith("?")} == {n for n, f in fields.items() if f.is_required()}
        call = tool_call.model_validate(computer_call({"type": verb, **given}))
        (item,) = run([call], PretendSession())
        TypeAdapter(input_items.ComputerCallOutput).validate_python(item)
        old = tool_call.model_validate(preview_call({"type": verb, **given}))
        assert Preview((1280, 768)).read([old]).parts
    failed = run([computer_call(CLICK)], PretendSession(outcome("failed")))
    TypeAdapter(input_items.Message).validate_python(failed[1])
