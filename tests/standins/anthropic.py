"""The Messages API of Anthropic, as far as a conversation with tools needs it, checked as strictly as the real one."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from deskhand.agents.anthropic import Claude
from deskhand.agents.model import Model
from tests.standins.brain import OURS, Do, Mind, Seen
from tests.standins.server import Answer, Request


def verb(do: Do) -> tuple[str, dict[str, Any]]:
    """A call on the computer as the toolset names it."""
    given = do.arguments
    if do.name == "click":
        return "left_click", {"coordinate": [given["x"], given["y"]]}
    if do.name == "key":
        return "key", {"text": given["keys"]}
    if do.name == "wait":
        return "wait", {"duration": given["seconds"]}
    return do.name, given


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


class StandIn:
    """The server's answers: what ``mind`` says, and what a test wants to go wrong."""

    name = "anthropic"
    keys = {"ANTHROPIC_API_KEY": "a key"}
    base = "ANTHROPIC_BASE_URL"
    limited = error(429, "rate_limit_error", "too many tokens a minute", **{"retry-after-ms": "20"})
    wrong_key = error(401, "authentication_error", "invalid x-api-key")
    no_model = error(404, "not_found_error", "model: nothing")
    refuses = message([], "refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "no harm"})
    #: A call that broke off in the middle of its text.
    out_of_tokens = message(
        [
            {
                "type": "tool_use",
                "id": "toolu_cut",
                "name": "type",
                "toolset_name": "computer",
                "input": {"text": "rm -r"},
            }
        ],
        "max_tokens",
    )

    @staticmethod
    def model(url: str, keep: int = 5) -> Model:
        return Claude("claude-sonnet-5-5", url, keep)

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._ids = itertools.count()

    @staticmethod
    def conversation(body: Any) -> list[Any]:
        """The messages of a request, without the marks for the cache, which are no part of what is cached."""
        return [json.loads(re.sub(r', "cache_control": {[^}]*}', "", json.dumps(entry))) for entry in body["messages"]]

    @staticmethod
    def pictures(body: Any) -> int:
        """Pictures in a request."""
        return json.dumps(body["messages"]).count('"type": "image"')

    def __call__(self, request: Request) -> Answer:
        assert request.path.startswith("/v1/messages"), request.path
        wrong = problem(request.body)
        if wrong:
            return error(400, "invalid_request_error", wrong)
        said = self._mind(seen(request.body))
        if isinstance(said, Answer):
            return said
        if isinstance(said, str):
            return message([{"type": "text", "text": said}] if said else [], "end_turn")
        toolset = any(tool.get("type", "").startswith("computer_toolset") for tool in request.body["tools"])
        blocks = [self.block(do, toolset) for do in said]
        return message([{"type": "text", "text": f"I do {said[0].name}."}, *blocks], "tool_use")

    def block(self, do: Do, toolset: bool = True) -> dict[str, Any]:
        """A call as a content block."""
        block = {"type": "tool_use", "id": f"toolu_{next(self._ids)}"}
        if do.name in OURS:
            return {**block, "name": do.name, "input": do.arguments}
        name, given = verb(do)
        if toolset:
            return {**block, "name": name, "toolset_name": "computer", "input": given}
        return {**block, "name": "computer", "input": {"action": name, **given}}


def problem(body: Any) -> str | None:
    """What the real API would refuse: calls without results, misplaced blocks, too many marks for the cache."""
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
    results: list[str] = []
    errors: list[str] = []
    texts: list[str] = []
    picture = None
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
