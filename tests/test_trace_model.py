"""A model's turns in the trace: what the page is given of them, and that it shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deskhand.trace import TraceRecorder
from deskhand.trace.model_turns import calls_of
from deskhand.trace.steps import Steps, read_events
from tests.test_trace_page import CHROMIUM, browser

CALL = {
    "type": "tool_use",
    "id": "t1",
    "name": "left_click",
    "toolset_name": "computer",
    "input": {"coordinate": [1, 2]},
}


def recorded(directory: Path, *turns: dict[str, Any]) -> Steps:
    with TraceRecorder(directory, goal="g") as trace:
        for turn in turns:
            facts = {"stop": "acts", "tokens": {"input": 1, "cache_read": 2, "cache_write": 3, "output": 4}}
            told = {"given": ["g (picture)"], "reply": [CALL], "text": "I click.", "started": 1.0, "elapsed_s": 2.0}
            trace.model_turn("anthropic:x", **{**told, **turn, "facts": {**facts, **turn.get("facts", {})}})
        trace.finish("done")
    return Steps(*read_events(directory / "trace.jsonl"))


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ([CALL, {"type": "text", "text": "x"}, {"type": "thinking", "signature": "s"}], ["left_click"]),
        ([{**CALL, "name": "computer", "input": {"action": "key", "text": "a"}}], ["key"]),
        ([{"type": "computer_call", "actions": [{"type": "move"}, {"type": "click"}]}], ["move, click"]),
        ([{"type": "function_call", "name": "launch", "arguments": "{}"}, {"type": "reasoning"}], ["launch"]),
        ([{"function_call": {"name": "click", "args": {}}, "thought_signature": "s"}, {"text": "x"}], ["click"]),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "finish", "arguments": "{}"}}]}, ["finish"]),
        ({"role": "assistant", "content": "Action: wait()"}, []),
        ([{"type": "tool_use", "input": 3}, {"type": "computer_call", "actions": [3]}, 3, None], ["tool_use", ""]),
        ({"tool_calls": 3}, []),
        (None, []),
        ("x", []),
    ],
)
def test_every_vendors_calls_are_found(tmp_path: Path, reply: Any, names: list[str]) -> None:
    step = recorded(tmp_path / "t", {"reply": reply}).steps[0]
    assert step["asks"] == names
    assert len(step["calls"]) == len(calls_of(reply)) == len(names)


def test_turns_are_added_up_and_money_is_spoken_of_only_when_it_is_known(tmp_path: Path) -> None:
    walked = recorded(tmp_path / "free", {}, {})
    total = walked.head["model"]
    assert (total["turns"], total["elapsed_s"], total["cost"]) == (2, 4.0, None)
    assert total["tokens"] == {"input": 2, "cache_read": 4, "cache_write": 6, "output": 8}
    assert (
        recorded(tmp_path / "paid", {"facts": {"cost": 0.25}}, {"facts": {"cost": 0.5}}).head["model"]["cost"] == 0.75
    )
    assert recorded(tmp_path / "none").head["model"] is None


@pytest.mark.parametrize(
    ("stop", "badge"), [("acts", "ok"), ("says", "ok"), ("cut", "failed"), ("refused", "refused"), ("full", "failed")]
)
def test_how_a_reply_ended(tmp_path: Path, stop: str, badge: str) -> None:
    step = recorded(tmp_path / "t", {"facts": {"stop": stop, "reason": "the vendor's word"}}).steps[0]
    assert step["badge"] == badge
    assert (step["error"] is None) == (badge == "ok")
    assert step["said"] == ["I click."]


def test_facts_that_are_not_as_they_should_be(tmp_path: Path) -> None:
    odd = {"tokens": {"input": "many", "output": None}, "cost": "much", "stop": None}
    step = recorded(tmp_path / "t", {"facts": odd, "given": 3, "reply": 3}).steps[0]
    assert step["tokens"] == {"input": 0, "cache_read": 0, "cache_write": 0, "output": 0}
    assert (step["cost"], step["given"], step["calls"]) == (None, [], [])


def test_a_secret_that_the_model_repeats_is_masked(tmp_path: Path) -> None:
    with TraceRecorder(tmp_path / "t", goal="g") as trace:
        action = {"action": "type", "text": "hunter22", "secret": True}
        answer = {"ok": True, "sent": "all", "results": [{"action": "type", "status": "ok"}]}
        told: dict[str, Any] = {"text": "hunter22!", "facts": {}, "started": 1.0, "elapsed_s": 1.0}
        trace.model_turn("m", given=["hunter22"], reply=[{**CALL, "input": {"text": "hunter22"}}], **told)
        trace.batch({"actions": [action]}, answer, None, "png", 1.0, 1.0)
        trace.finish("done")
    for name in ("trace.jsonl", "index.html", "summary.json"):
        assert "hunter22" not in (tmp_path / "t" / name).read_text("utf-8")
    assert json.loads((tmp_path / "t" / "summary.json").read_text())["model"]["turns"] == 1


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_shows_a_turn(tmp_path: Path) -> None:
    facts = {"cost": 0.0123, "reason": "tool_use", "pictures": 3, "retries": 2}
    recorded(tmp_path / "t", {"facts": facts, "text": "<b>I</b> click."}, {"facts": {"stop": "cut"}})
    with browser(tmp_path) as page:
        page.open(tmp_path / "t" / "index.html", "#step-1")
        words = page.run("document.getElementById('words').textContent")
        for text in ("<b>I</b> click.", "anthropic:x", '"toolset_name": "computer"', "6 read (2 cached), 4 written"):
            assert text in words
        for text in ("cost 0.0123", "pictures sent 3", "asked again 2×", "g (picture)"):
            assert text in words
        head = page.run("document.getElementById('numbers').textContent")
        assert "model turns2 in 4.0 s" in head
        page.press("ArrowRight")
        assert "ran out of tokens" in page.run("document.getElementById('words').textContent")
        assert page.complaints() == []


def asked(directory: Path, outcome: str = "declined", **ask: Any) -> Steps:
    told = {"verb": "click", "source": "policy: window", "reason": "click in the window 'My <Bank>'", "once": False}
    action = {"action": "click", "x": 1, "y": 2}
    with TraceRecorder(directory, goal="g") as trace:
        trace.approval({**told, "facts": action, **ask}, outcome, 1.0, 2.0)
        trace.finish("done")
    return Steps(*read_events(directory / "trace.jsonl"))


@pytest.mark.parametrize(
    ("outcome", "badge"),
    [("allowed", "ok"), ("declined", "refused"), ("nobody", "refused"), ("no answer", "refused"), ("x", "refused")],
)
def test_a_question_to_a_person_is_a_step(tmp_path: Path, outcome: str, badge: str) -> None:
    walked = asked(tmp_path / "t", outcome)
    step = walked.steps[0]
    assert (step["kind"], step["badge"], step["answer"], step["elapsed_s"]) == ("approval", badge, outcome, 2.0)
    assert step["asked"] == "click (1, 2)"
    assert walked.head["counts"]["approvals"] == 1


@pytest.mark.parametrize("facts", [{}, {"id": "sc", "code": "x"}, 3, None, "text", [1]])
def test_facts_of_any_shape(tmp_path: Path, facts: Any) -> None:
    assert asked(tmp_path / "t", facts=facts, reason=None, once="yes").steps[0]["once"] is False


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_shows_what_a_person_was_asked(tmp_path: Path) -> None:
    asked(tmp_path / "t")
    with browser(tmp_path) as page:
        page.open(tmp_path / "t" / "index.html", "#step-1")
        words = page.run("document.getElementById('words').textContent")
        for text in ("click in the window 'My <Bank>'", "a person declined", "click (1, 2)", "policy: window"):
            assert text in words
        assert "question to a person1" in page.run("document.getElementById('numbers').textContent")
        assert "a person declined" in page.run("document.getElementById('timeline').textContent")
        assert page.complaints() == []
