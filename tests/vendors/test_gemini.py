from __future__ import annotations

import asyncio
import json
from importlib import import_module
from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.vendors.base import Ask
from deskhand.vendors.gemini import BROWSER, DESKTOP, Gemini
from deskhand.vendors.running import run_turn
from tests.vendors.examples import GEMINI, SCREEN, function_call
from tests.vendors.outcomes import PNG, PretendSession, outcome

DECISION = {"decision": "require_confirmation", "explanation": "It buys something."}


def run(adapter: Gemini, reply: Any, session: PretendSession, approve: Any = None) -> list[dict[str, Any]]:
    session.approve = approve
    return asyncio.run(run_turn(adapter, reply, session))[0]


async def yes(ask: Ask) -> bool:
    return True


def response(*calls: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": "thinking", "thought": True}, {"text": "I click."}]
    return {"candidates": [{"content": {"role": "model", "parts": [*parts, *({"function_call": c} for c in calls)]}}]}


def test_calls_of_a_response_in_thousandths() -> None:
    session = PretendSession()
    reply = response(function_call("click", {"x": 999, "y": 0}), function_call("type", {"text": "x"}, 1))
    adapter = Gemini(SCREEN)
    assert adapter.read(reply).say == "I click."
    parts = run(adapter, reply, session)
    assert session.batches[0]["space"] == {"grid": 999}
    assert len(session.batches) == 1
    first, second = (part["function_response"] for part in parts)
    assert (first["id"], first["name"], first["response"]) == ("fc_0", "click", {"output": "Done."})
    assert first["parts"] == second["parts"] == [{"inline_data": {"mime_type": "image/png", "data": PNG}}]


def test_failures_use_the_error_key() -> None:
    session = PretendSession(outcome("failed", "skipped", error="no window"))
    calls = [function_call("click", {"x": 1, "y": 2}), function_call("type", {"text": "x"}, 1)]
    first, second = (part["function_response"] for part in run(Gemini(SCREEN), calls, session))
    assert first["response"] == {"error": "no window"}
    assert second["response"] == {"error": "Not executed: an earlier action in this turn failed."}
    assert "parts" not in second


def test_the_interactions_api() -> None:
    step = {"type": "function_call", "id": "s1", "name": "click", "arguments": {"x": 1, "y": 2, "intent": "so"}}
    reply = {"steps": [{"type": "model_output", "content": [{"type": "text", "text": "hm"}]}, step]}
    adapter = Gemini(SCREEN, api="interactions")
    assert adapter.tools() == [{"type": "computer_use", "environment": "desktop"}]
    (result,) = run(adapter, reply, PretendSession())
    assert (result["type"], result["call_id"], result["name"]) == ("function_result", "s1", "click")
    assert json.loads(result["result"][0]["text"]) == {"output": "Done."}
    assert result["result"][1]["mime_type"] == "image/png"
    assert "is_error" not in result
    assert run(adapter, reply, PretendSession(outcome("failed")))[0]["is_error"]


@pytest.mark.parametrize("decision", [DECISION, "require_confirmation", {"decision": "something new"}])
def test_safety_decision_is_asked_and_acknowledged(decision: Any) -> None:
    call = function_call("click", {"x": 1, "y": 2, "safety_decision": decision})
    session = PretendSession()
    (refused,) = run(Gemini(SCREEN), [call], session)
    assert session.batches == []
    assert "did not grant permission" in refused["function_response"]["response"]["error"]
    assert "safety_acknowledgement" not in refused["function_response"]["response"]
    (allowed,) = run(Gemini(SCREEN), [call], session, yes)
    assert allowed["function_response"]["response"]["safety_acknowledgement"] == "true"


def test_a_regular_decision_asks_nobody() -> None:
    call = function_call("click", {"x": 1, "y": 2, "safety_decision": {"decision": "regular"}})
    (part,) = run(Gemini(SCREEN), [call], PretendSession())
    assert part["function_response"]["response"] == {"output": "Done."}


def test_desktop_refuses_what_only_a_browser_has() -> None:
    with pytest.raises(BatchRefused, match="navigate is a browser's function"):
        Gemini(SCREEN).read([function_call("navigate", {"url": "https://e.org"})])
    assert set(DESKTOP) < set(BROWSER)


def test_browser_needs_to_be_told_its_browser_and_search_page() -> None:
    adapter = Gemini(SCREEN, "browser")
    for verb, words in (("open_web_browser", "no browser is set"), ("search", "no search page is set")):
        with pytest.raises(BatchRefused, match=words):
            adapter.read([function_call(verb, {})])
    (part,) = run(adapter, [function_call("go_back", {})], PretendSession())
    assert part["function_response"]["response"] == {"url": "about:blank", "output": "Done."}


def test_older_forms() -> None:
    adapter = Gemini(SCREEN, "browser")

    def actions(verb: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = adapter.read([function_call(verb, given)]).parts[0].envelope["actions"]
        return found

    old = {"x": 1, "y": 2, "destination_x": 3, "destination_y": 4}
    assert actions("drag_and_drop", old) == [{"action": "drag", "path": [[1, 2], [3, 4]]}]
    bare = {"x": 1, "y": 2, "text": "q", "press_enter": False, "clear_before_typing": False}
    assert [action["action"] for action in actions("type_text_at", bare)] == ["click", "type"]
    assert actions("scroll_document", {"direction": "left"}) == [{"action": "scroll", "dx": -640, "unit": "pixels"}]
    with pytest.raises(BatchRefused, match="destination_y is missing"):
        actions("drag_and_drop", {"x": 1, "y": 2, "destination_x": 3})
    notches = {"x": 1, "y": 2, "direction": "up", "magnitude_in_wheel_clicks": 4}
    assert actions("scroll", notches) == [{"action": "scroll", "x": 1, "y": 2, "dy": -4}]
    with pytest.raises(BatchRefused, match="give one"):
        actions("scroll", {**notches, "magnitude_in_pixels": 4})


def test_the_callers_own_functions_are_left_to_it() -> None:
    adapter = Gemini(SCREEN, custom=["look_up"])
    turn = adapter.read([function_call("look_up", {"q": 1}), function_call("click", {"x": 1, "y": 2})])
    assert [call["name"] for call in turn.calls] == ["click"]
    with pytest.raises(BatchRefused, match="no action 'look_up'"):
        Gemini(SCREEN).read([function_call("look_up", {})])


def test_wrong_arguments_of_the_adapter() -> None:
    with pytest.raises(ValueError, match="desktop or browser"):
        Gemini(SCREEN, "mobile")
    with pytest.raises(ValueError, match="generate_content or interactions"):
        Gemini(SCREEN, api="grpc")


def test_against_the_installed_sdk() -> None:
    pytest.importorskip("google.genai")
    types = import_module("google.genai.types")

    for verb, (given, _) in GEMINI.items():
        call = types.FunctionCall(id="1", name=verb, args={"intent": "x", **given})
        content = types.Content(role="model", parts=[types.Part(function_call=call)])
        reply = types.GenerateContentResponse(candidates=[types.Candidate(content=content)])
        adapter = Gemini(SCREEN, "browser", browser="Firefox ESR", search="https://find.org")
        (part,) = run(adapter, reply, PretendSession())
        typed = types.Part.model_validate(part)
        assert typed.function_response is not None
        assert typed.function_response.name == verb
        assert typed.function_response.parts is not None
        blob = typed.function_response.parts[0].inline_data
        assert blob is not None
        assert blob.data == PNG
    for environment in ("desktop", "browser"):
        (tool,) = Gemini(SCREEN, environment).tools()
        assert types.Tool.model_validate(tool).computer_use is not None


def test_against_the_installed_sdk_interactions() -> None:
    pytest.importorskip("google.genai")
    interactions = "google.genai._gaos.types.interactions"
    calls = import_module(f"{interactions}.functioncallstep")
    results = import_module(f"{interactions}.functionresultstep")

    step = calls.FunctionCallStep(id="s1", name="click", arguments={"x": 1, "y": 2})
    (result,) = run(Gemini(SCREEN, api="interactions"), [step], PretendSession())
    assert results.FunctionResultStep.model_validate(result).call_id == "s1"
