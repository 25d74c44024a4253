"""What only one vendor's models do: safety checks and decisions, older tools, calls in text, signatures, marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deskhand.agents.anthropic import Claude
from deskhand.agents.compatible import Compatible
from deskhand.agents.model import Model
from deskhand.agents.openai import GREY, Gpt
from deskhand.approvals import OWN_SCREEN, Ask
from deskhand.backends.lease import DisplayLease
from deskhand.errors import DesktopInUse
from deskhand.testing import XServer
from deskhand.turns import LeaseTerms
from tests.agents.running import run
from tests.probes import RawWindow
from tests.standins import anthropic, chat, google, openai
from tests.standins.brain import Do, told
from tests.standins.server import Answer

CLICK = Do("click", {"x": 100, "y": 50})
DONE = Do("finish", {"success": True, "summary": "it is done"})
CHECK = {"id": "cu_sc_1", "code": "malicious_instructions", "message": "the page wants something"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "a key")


class Person:
    """Answers what it is asked with one word, and remembers what that was."""

    def __init__(self, word: bool, display: XServer) -> None:
        self.word = word
        self.asked: list[Ask] = []
        self._display = display.display
        #: Who had the desktop each time, as another session was told that wanted it.
        self.kept_out: list[str] = []

    async def __call__(self, ask: Ask) -> bool:
        self.asked.append(ask)
        lease = DisplayLease(self._display, None, "another")
        try:
            await lease.take(1)
        except DesktopInUse as error:
            self.kept_out.append(error.facts["holder"])
        finally:
            await lease.release()
        return self.word


def checked_call() -> Any:
    return openai.response(openai.StandIn(told("")).calls([CLICK], [CHECK]))


def unsure_call() -> Any:
    decision = {"decision": "require_confirmation", "explanation": "this may buy something"}
    call = {"id": "c", "name": "click", "args": {"x": 100, "y": 50, "safety_decision": decision}}
    return google.candidate([{"functionCall": call, "thoughtSignature": "c2lnbmVk"}])


class Confirming(anthropic.StandIn):
    @staticmethod
    def model(url: str, keep: int = 5) -> Model:
        return Claude("claude-sonnet-5-5", url, keep, confirm=["left_click"])


SOURCES: list[tuple[Any, Any, str, str, dict[str, Any]]] = [
    (openai.StandIn, checked_call(), "openai safety check", "the page wants something", {}),
    (google.StandIn, unsure_call(), "gemini safety decision", "this may buy something", {}),
    (Confirming, [CLICK], "anthropic confirm", "the model wants to use left_click", {}),
    *[
        (standin, [CLICK], "policy: input", "click on this screen", {"policy": OWN_SCREEN})
        for standin in (anthropic.StandIn, openai.StandIn, chat.StandIn)
    ],
]
SOURCE_NAMES = ["openai", "google", "anthropic", *[f"policy-{one[0].name}" for one in SOURCES[3:]]]


@pytest.mark.parametrize("word", [True, False, None], ids=["yes", "no", "nobody"])
@pytest.mark.parametrize(("standin", "call", "source", "reason", "options"), SOURCES, ids=SOURCE_NAMES)
def test_what_needs_a_person(
    standin: Any,
    call: Any,
    source: str,
    reason: str,
    options: dict[str, Any],
    word: bool | None,
    display: XServer,
    tmp_path: Path,
) -> None:
    """The four sources, one way: parked, asked, recorded, and done or told to the model."""
    person = None if word is None else Person(word, display)
    options = {**options, "approve": person, "lease": LeaseTerms(), "name": "asking"}
    with RawWindow(display) as window:
        ran = run(standin, told(call, [DONE]), display.display, tmp_path, session=options)
        assert len(window.all("press")) == (1 if word else 0)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    answers = [event for event in ran.events if event["event"] == "approval"]
    outcome = {True: "allowed", False: "declined", None: "nobody"}[word]
    assert [(event["ask"]["source"], event["outcome"]) for event in answers] == [(source, outcome)]
    assert answers[0]["ask"]["reason"].startswith(reason)
    if person is not None:
        assert [ask.reason for ask in person.asked] == [answers[0]["ask"]["reason"]]
        assert person.kept_out == ["asking"]  # another session, while the person thought
    acknowledged = [
        name for name in ("acknowledged_safety_checks", "safety_acknowledgement") if name in str(ran.bodies[1])
    ]
    assert bool(acknowledged) == (bool(word) and source.startswith(("openai", "gemini")))
    assert ("did not grant permission" in str(ran.bodies[1])) == (not word)
    kinds = [event["event"] for event in ran.events]
    assert kinds.index("model") < kinds.index("approval")


def test_nobody_is_asked_about_a_reply_that_can_not_be_done(display: XServer, tmp_path: Path) -> None:
    person = Person(True, display)
    items = openai.StandIn(told("")).calls([CLICK, Do("launch", {"application": "x"})], [CHECK])
    ran = run(
        openai.StandIn, told(openai.response(items), [DONE]), display.display, tmp_path, session={"approve": person}
    )
    assert person.asked == []
    assert "has no argument" in str(ran.bodies[1])
    assert ran.batches("click") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tool", "beta"),
    [
        ("claude-sonnet-5-5", "computer_toolset_20260801", None),
        ("claude-opus-4-8", "computer_toolset_20260801", None),
        ("claude-opus-5", "computer_toolset_20260801", None),
        ("claude-opus-4-6", "computer_20251124", "computer-use-2025-11-24"),
        ("claude-sonnet-4-6", "computer_20251124", "computer-use-2025-11-24"),
        ("claude-sonnet-4-5-20250929", "computer_20250124", "computer-use-2025-01-24"),
        ("claude-haiku-4-5", "computer_20250124", "computer-use-2025-01-24"),
    ],
)
def test_each_claude_gets_the_tool_it_takes(
    name: str, tool: str, beta: str | None, display: XServer, tmp_path: Path
) -> None:
    class Older(anthropic.StandIn):
        @staticmethod
        def model(url: str, keep: int = 5) -> Model:
            return Claude(name, url, keep)

    ran = run(Older, told([CLICK, CLICK], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert ran.bodies[0]["tools"][0]["type"] == tool
    assert {name.lower(): value for name, value in ran.headers[0].items()}.get("anthropic-beta") == beta
    assert len(ran.batches("click")) == 2


def test_claudes_marks_for_the_cache(display: XServer, tmp_path: Path) -> None:
    ran = run(anthropic.StandIn, told([CLICK], [CLICK], [DONE]), display.display, tmp_path)
    body = ran.bodies[2]
    assert "cache_control" in body["system"][-1]
    marked = [n for n, message in enumerate(body["messages"]) if "cache_control" in json.dumps(message)]
    assert marked == [2, 4]
    assert "cache_control" in body["messages"][-1]["content"][-1]


@pytest.mark.parametrize("stop", ["pause_turn", "model_context_window_exceeded"])
def test_claudes_other_stops(stop: str, display: XServer, tmp_path: Path) -> None:
    fault = anthropic.message([{"type": "text", "text": "Wait."}], stop)

    class Patient(anthropic.StandIn):
        def __call__(self, request: Any) -> Any:
            last = request.body["messages"][-1]
            if last["role"] == "assistant":  # a paused turn is sent back as it is
                request.body["messages"].append({"role": "user", "content": [{"type": "text", "text": "."}]})
            return super().__call__(request)

    ran = run(Patient, told([DONE]), display.display, tmp_path, faults={0: fault})
    assert ran.result is not None
    assert ran.result.ok == (stop == "pause_turn")
    if stop == "pause_turn":
        assert len(ran.bodies) == 2
    else:
        assert "the conversation is full" in ran.result.text


def test_a_reply_of_nothing_at_all_is_not_sent_back(display: XServer, tmp_path: Path) -> None:
    ran = run(anthropic.StandIn, told("", [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok
    assert [message["role"] for message in ran.bodies[1]["messages"]] == ["user", "user"]


def test_openai_keeps_what_was_reasoned_and_old_calls_keep_an_output(display: XServer, tmp_path: Path) -> None:
    ran = run(openai.StandIn, told(*[[CLICK]] * 6, [DONE]), display.display, tmp_path, keep=2)
    body = ran.bodies[-1]
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert sum(item["type"] == "reasoning" for item in body["input"]) == 6
    outputs = [item["output"] for item in body["input"] if item["type"] == "computer_call_output"]
    assert len(outputs) == 6
    assert outputs[0]["image_url"] == GREY
    assert outputs[-1]["image_url"] != GREY
    assert len({body["prompt_cache_key"] for body in ran.bodies}) == 1


def test_the_older_openai_tool(display: XServer, tmp_path: Path) -> None:
    class Preview(openai.StandIn):
        @staticmethod
        def model(url: str, keep: int = 5) -> Model:
            return Gpt("computer-use-preview", url, keep)

        def __call__(self, request: Any) -> Any:
            answer = super().__call__(request)
            for item in answer.body["output"]:
                if item["type"] == "computer_call":
                    item["action"] = item.pop("actions")[0]
            return answer

    ran = run(Preview, told([CLICK], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert ran.bodies[0]["truncation"] == "auto"
    assert ran.bodies[0]["tools"][0]["type"] == "computer_use_preview"
    assert len(ran.batches("click")) == 1


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_gemini_says_that_its_own_call_can_not_be_read(finish: str, display: XServer, tmp_path: Path) -> None:
    ran = run(google.StandIn, told([DONE]), display.display, tmp_path, faults={0: google.candidate([], finish)})
    assert ran.result is not None
    assert ran.result.ok
    assert "could not be read" in str(ran.bodies[1])


def test_a_prompt_that_google_blocks(display: XServer, tmp_path: Path) -> None:
    blocked = Answer({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    ran = run(google.StandIn, told([DONE]), display.display, tmp_path, faults={0: blocked})
    assert ran.result is not None
    assert "PROHIBITED_CONTENT" in ran.result.text


@pytest.mark.parametrize(
    ("standin", "name"), [(chat.StandIn, "computer_act"), (chat.QwenStandIn, "computer_use")], ids=["tools", "qwen"]
)
@pytest.mark.parametrize("arguments", ['{"actions": [', "[]", '"x"', "{}", '{"action": "fly"}', '{"actions": 3}'])
def test_arguments_that_can_not_be_read(
    standin: Any, name: str, arguments: str, display: XServer, tmp_path: Path
) -> None:
    bad = chat.completion({"tool_calls": [chat.tool_call(name, arguments)]}, "tool_calls")
    ran = run(standin, told(bad, [CLICK], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert len(chat.seen(ran.bodies[1]).errors) == 1
    assert len(ran.batches("click")) == 1


def test_qwens_calls_in_text(display: XServer, tmp_path: Path) -> None:
    call = json.dumps({"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [100, 50]}})
    end = json.dumps({"name": "computer_use", "arguments": {"action": "terminate", "status": "success"}})
    texts = [f"I click.\n<tool_call>\n{text}\n</tool_call>" for text in (call, end)]
    ran = run(chat.QwenStandIn, told(*texts), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert len(ran.batches("click")) == 1
    assert ran.told[0] == "I click."


def test_text_that_is_no_action_of_ui_tars(display: XServer, tmp_path: Path) -> None:
    texts = ["I think about it.", "Thought: x\nAction: fly(to='moon')", "Action: finished(content='done')"]
    ran = run(chat.UiTarsStandIn, told(*texts), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert "holds no action" in str(ran.bodies[1])
    assert "fly" in str(ran.bodies[2]["messages"][-1])


@pytest.mark.parametrize(
    ("name", "adapter", "kind"),
    [
        ("a-local-model", None, "tools"),
        ("Qwen/Qwen3-VL-8B-Instruct", None, "qwen"),
        ("qwen3-32b", None, "tools"),
        ("ByteDance-Seed/UI-TARS-1.5-7B", None, "ui_tars"),
        ("Qwen/Qwen3-VL-8B-Instruct", "tools", "tools"),
    ],
)
def test_how_a_model_clicks_is_known_by_its_name(name: str, adapter: str | None, kind: str) -> None:
    assert Compatible(name, "http://127.0.0.1:1", adapter=adapter).kind == kind
