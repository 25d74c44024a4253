"""The Messages API of Anthropic, as far as a conversation with tools needs it, checked as strictly as the real one."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Sequence
from typing import Any

from tests.standins.brain import Do, Mind, Seen
from tests.standins.server import Answer, Request

COMPUTER = {
    "click": lambda given: ("left_click", {"coordinate": [given["x"], given["y"]]}),
    "type": lambda given: ("type", given),
    "key": lambda given: ("key", {"text": given["keys"]}),
    "wait": lambda given: ("wait", {"duration": given["seconds"]}),
    "screenshot": lambda given: ("screenshot", {}),
}


def message(content: Sequence[dict[str, Any]], stop: str, **more: Any) -> Answer:
    """A whole answer of the API."""
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 50,
        "output_tokens": 20,
    }
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-stand-in", "content": list(content)}
    return Answer({**body, "stop_reason": stop, "stop_sequence": None, "usage": usage, **more})


def error(status: int, kind: str, said: str, **headers: str) -> Answer:
    """An error in the API's form."""
    return Answer({"type": "error", "error": {"type": kind, "message": said}}, status, headers)


class Messages:
    """Answers with what ``mind`` says."""

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._ids = itertools.count()

    def __call__(self, request: Request) -> Answer:
        assert request.path.startswith("/v1/messages"), request.path
        wrong = problem(request.body)
        if wrong:
            return error(400, "invalid_request_error", wrong)
        said = self._mind(seen(request.body))
        if isinstance(said, str):
            return message([{"type": "text", "text": said}] if said else [], "end_turn")
        toolset = any(tool.get("type", "").startswith("computer_toolset") for tool in request.body["tools"])
        blocks = [self.block(do, toolset) for do in said]
        return message([{"type": "text", "text": f"I do {said[0].name}."}, *blocks], "tool_use")

    def block(self, do: Do, toolset: bool = True) -> dict[str, Any]:
        """A call as a content block."""
        block = {"type": "tool_use", "id": f"toolu_{next(self._ids)}"}
        if do.name not in COMPUTER:
            return {**block, "name": do.name, "input": do.arguments}
        verb, given = COMPUTER[do.name](do.arguments)
        if toolset:
            return {**block, "name": verb, "toolset_name": "computer", "input": given}
        return {**block, "name": "computer", "input": {"action": verb, **given}}


def problem(body: Any) -> str | None:
    """What the real API would refuse, of what can go wrong in a loop: calls without results, misplaced blocks, marks."""
    waiting: list[str] = []
    for number, entry in enumerate(body["messages"]):
        content = entry["content"]
        if not content:
            return f"messages.{number}: content must not be empty"
        if entry["role"] == "assistant":
            waiting += [block["id"] for block in content if block["type"] == "tool_use"]
            continue
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if answered != waiting:
            return f"messages.{number}: tool_use ids {waiting} need tool_result blocks right after, found {answered}"
        kinds = [block["type"] == "tool_result" for block in content]
        if kinds != sorted(kinds, reverse=True):
            return f"messages.{number}: tool_result blocks must come first"
        for block in content:
            if block.get("is_error") and any(inner["type"] == "image" for inner in block["content"]):
                return f"messages.{number}: an error result holds text only"
        waiting = []
    if waiting or body["messages"][-1]["role"] != "user":
        return "the conversation must end with a user message that answers every call"
    marks = str(body).count("cache_control")
    return f"{marks} cache marks and 4 is the most" if marks > 4 else None


def seen(body: Any) -> Seen:
    """What a request shows."""
    goal = body["messages"][0]["content"][0]["text"]
    results, errors, texts, picture = [], [], [], None
    for block in body["messages"][-1]["content"]:
        for inner in block["content"] if block["type"] == "tool_result" else [block]:
            if inner["type"] == "image":
                picture = base64.b64decode(inner["source"]["data"])
        if block["type"] == "tool_result":
            text = " ".join(inner["text"] for inner in block["content"] if inner["type"] == "text")
            (errors if block.get("is_error") else results).append(text)
        elif block["type"] == "text":
            texts.append(block["text"])
    tools = [tool.get("name") or tool["type"] for tool in body["tools"]]
    return Seen(goal, tools, results, errors, "\n".join(texts), picture)
