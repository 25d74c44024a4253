from __future__ import annotations

import asyncio
from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.vendors.base import Finish
from deskhand.vendors.qwen import TOOL, VERBS, Qwen
from deskhand.vendors.running import run_turn
from tests.vendors.examples import SCREEN, tool_call
from tests.vendors.outcomes import PretendSession, outcome


def run(reply: Any, session: PretendSession) -> tuple[list[dict[str, Any]], Finish | None]:
    return asyncio.run(run_turn(Qwen(SCREEN), reply, session))


def test_tool_calls_of_a_completion() -> None:
    other = {"id": "x", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    calls = [tool_call("left_click", {"coordinate": [500, 500]}), other]
    reply = {"choices": [{"message": {"role": "assistant", "content": "I click.", "tool_calls": calls}}]}
    session = PretendSession()
    messages, finish = run(reply, session)
    assert finish is None
    assert session.batches[0]["space"] == {"grid": 1000}
    assert messages[0] == {"role": "tool", "tool_call_id": "call_0", "content": "Done."}
    assert messages[1]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert Qwen(SCREEN).read(reply).say == "I click."


def test_calls_in_text() -> None:
    text = 'So.\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "wait", "time": 1}}\n</tool_call>'
    session = PretendSession(outcome("failed", error="it broke"))
    (message,), _ = run(text, session)
    assert message["role"] == "user"
    assert message["content"][1]["text"] == "<tool_response>\nError: it broke\n</tool_response>"
    assert Qwen(SCREEN).read(text).say == "So."


@pytest.mark.parametrize(
    "call",
    ["not json", "[1]", '{"name": "computer_use", "arguments": "not json"}', '{"name": "computer_use"}', "[" * 100_000],
)
def test_what_is_not_a_call_is_refused(call: str) -> None:
    with pytest.raises(BatchRefused, match="must be a JSON object"):
        Qwen(SCREEN).read(f"<tool_call>{call}</tool_call>")


def test_a_call_that_was_cut_off_is_refused() -> None:
    with pytest.raises(BatchRefused):
        Qwen(SCREEN).read('<tool_call>\n{"name": "computer_use", "arguments": {"action": "type", "te')


def test_ends() -> None:
    assert run([tool_call("terminate", {"status": "failure"})], PretendSession())[1] == Finish(
        "the model ended the run: failure", success=False
    )
    assert run([tool_call("answer", {"text": "42"})], PretendSession())[1] == Finish("42")
    with pytest.raises(BatchRefused, match="nothing may follow"):
        Qwen(SCREEN).read([tool_call("terminate", {"status": "success"}), tool_call("wait", {"time": 1}, 1)])


def test_a_run_does_not_end_when_what_came_before_failed() -> None:
    session = PretendSession(outcome("failed"))
    calls = [tool_call("left_click", {}), tool_call("terminate", {"status": "success"}, 1)]
    messages, finish = run(calls, session)
    assert finish is None
    assert messages[1]["content"] == "Not executed: an earlier action failed."


def test_the_tool_offers_every_verb() -> None:
    assert TOOL["function"]["parameters"]["properties"]["action"]["enum"] == list(VERBS)
    assert Qwen(SCREEN).tools() == [TOOL]


def test_a_reply_without_calls_is_the_last_word() -> None:
    turn = Qwen(SCREEN).read({"role": "assistant", "content": "All done."})
    assert (turn.calls, turn.say) == ([], "All done.")
