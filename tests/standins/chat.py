"""Chat completions, as vLLM and local servers speak them: with our own tools, and with Qwen's and UI-TARS's forms."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from typing import Any

from deskhand.agents.compatible import Compatible
from deskhand.agents.model import Model
from tests.standins.brain import OURS, Do, Mind, Seen
from tests.standins.openai import error
from tests.standins.server import Answer, Request


def completion(message: dict[str, Any], finish: str) -> Answer:
    """A whole answer of the server."""
    usage = {
        "prompt_tokens": 1150,
        "completion_tokens": 20,
        "total_tokens": 1170,
        "prompt_tokens_details": {"cached_tokens": 1000},
    }
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": None, **message}}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "stand-in"}
    return Answer({**body, "choices": [choice], "usage": usage})


def tool_call(name: str, arguments: Any, number: int = 0) -> dict[str, Any]:
    """A call; ``arguments`` may be text that is no JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text}}


class StandIn:
    """The server's answers, of a model that has our own tools."""

    name = "tools"
    keys: dict[str, str] = {}
    base = "OPENAI_BASE_URL"
    model_name = "a-local-model"
    limited = error(429, "rate_limit_exceeded", "too many tokens a minute", **{"retry-after-ms": "20"})
    wrong_key = error(401, "invalid_api_key", "Incorrect API key provided")
    no_model = error(404, "model_not_found", "the model does not exist")
    refuses = completion({"refusal": "no harm"}, "stop")
    out_of_tokens = completion(
        {"tool_calls": [tool_call("computer_act", '{"actions": [{"action": "type", "te')]}, "length"
    )

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._ids = itertools.count()

    @classmethod
    def model(cls, url: str, keep: int = 5) -> Model:
        return Compatible(cls.model_name, url, keep)

    @staticmethod
    def conversation(body: Any) -> list[Any]:
        """The messages of a request."""
        return list(body["messages"])

    @staticmethod
    def pictures(body: Any) -> int:
        """Pictures in a request."""
        return json.dumps(body["messages"]).count('"type": "image_url"')

    def __call__(self, request: Request) -> Answer:
        assert request.path == "/chat/completions", request.path
        wrong = problem(request.body)
        if wrong:
            return error(400, "invalid_request_error", wrong)
        said = self._mind(seen(request.body))
        if isinstance(said, Answer):
            return said
        if isinstance(said, str):
            return completion({"content": said}, "stop")
        return self.reply(said)

    def reply(self, said: Sequence[Do]) -> Answer:
        """A reply with these calls."""
        calls: list[dict[str, Any]] = []
        actions: list[dict[str, Any]] = []

        def act() -> None:
            if actions:
                calls.append(tool_call("computer_act", {"actions": list(actions)}, next(self._ids)))
                actions.clear()

        for do in said:
            if do.name in OURS and do.name != "launch":
                act()
                calls.append(tool_call(do.name, do.arguments, next(self._ids)))
            else:
                actions.append({"action": do.name, **do.arguments})
        act()
        return completion({"tool_calls": calls, "reasoning_content": "I think."}, "tool_calls")


class QwenStandIn(StandIn):
    """The server's answers, of a Qwen-VL."""

    name = "qwen"
    model_name = "Qwen/Qwen3-VL-8B-Instruct"
    out_of_tokens = completion({"tool_calls": [tool_call("computer_use", '{"action": "type", "te')]}, "length")

    def reply(self, said: Sequence[Do]) -> Answer:
        calls = [tool_call(*_qwen(do), next(self._ids)) for do in said]
        return completion({"content": "I act.", "tool_calls": calls}, "tool_calls")


def _qwen(do: Do) -> tuple[str, dict[str, Any]]:
    given = do.arguments
    if do.name == "finish":
        return "computer_use", {"action": "terminate", "status": "success" if given["success"] else "failure"}
    if do.name in OURS:
        return do.name, given
    forms: dict[str, Any] = {"click": {"action": "left_click", "coordinate": [given.get("x"), given.get("y")]}}
    forms |= {"key": {"action": "key", "keys": str(given.get("keys")).split("+")}}
    forms |= {"wait": {"action": "wait", "time": given.get("seconds")}}
    return "computer_use", forms.get(do.name, {"action": do.name, **given})


class UiTarsStandIn(StandIn):
    """The server's answers, of a UI-TARS, which answers in text."""

    name = "ui_tars"
    model_name = "UI-TARS-1.5-7B"
    out_of_tokens = completion({"content": "Thought: I type.\nAction: type(content='rm -r"}, "length")

    def reply(self, said: Sequence[Do]) -> Answer:
        lines = "\n".join(_ui_tars(do) for do in said)
        return completion({"content": f"Thought: I act.\nAction: {lines}"}, "stop")


def _ui_tars(do: Do) -> str:
    given = do.arguments
    if do.name == "finish":
        return (
            f"finished(content={given['summary']!r})"
            if given["success"]
            else f"call_user(content={given['summary']!r})"
        )
    if do.name == "click":
        return f"click(point='<point>{given['x']} {given['y']}</point>')"
    if do.name == "key":
        return f"hotkey(key='{given['keys'].replace('+', ' ')}')"
    if do.name == "wait":
        return "wait()"
    return f"type(content={given['text']!r})"


def problem(body: Any) -> str | None:
    """What a server's template would refuse: calls without answers, turns that do not alternate."""
    waiting: list[str] = []
    before = ""
    for number, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            if not waiting or waiting.pop(0) != message["tool_call_id"]:
                return f"messages[{number}]: no call found for this tool message"
        elif waiting:
            return f"messages[{number}]: the calls {waiting} have no answer"
        if role == before == "assistant":
            return f"messages[{number}]: the roles must alternate"
        waiting += [call["id"] for call in message.get("tool_calls", [])]
        before = role
    return f"the calls {waiting} have no answer" if waiting else None


def seen(body: Any) -> Seen:
    """What a request shows."""
    messages = body["messages"]
    last = max((n for n, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    results: list[str] = []
    errors: list[str] = []
    texts: list[str] = []
    picture = None
    for message in messages[last + 1 :]:
        content = message["content"]
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = " ".join(part["text"] for part in parts if part["type"] == "text")
        for part in parts:
            if part["type"] == "image_url":
                picture = base64.b64decode(part["image_url"]["url"].partition(",")[2])
        if "Error:" in text and last >= 0:
            errors.append(text)
        elif message["role"] == "tool":
            results.append(text)
        texts.append(text)
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    first: Any = next(m["content"] for m in messages if m["role"] == "user")
    goal = first if isinstance(first, str) else first[-1]["text"]
    return Seen(goal, tools, results, errors, "\n".join(texts), picture)
