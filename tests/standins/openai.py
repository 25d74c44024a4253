"""The Responses API of OpenAI, as far as a conversation with the computer tool needs it."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from typing import Any

from deskhand.agents.model import Model
from deskhand.agents.openai import GREY, Gpt
from tests.standins.brain import OURS, Do, Mind, Seen
from tests.standins.server import Answer, Request


def response(output: Sequence[dict[str, Any]], status: str = "completed", **more: Any) -> Answer:
    """A whole answer of the API."""
    usage = {
        "input_tokens": 1150,
        "input_tokens_details": {"cached_tokens": 1000, "cache_write_tokens": 50},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 1170,
    }
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-stand-in", "status": status}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None}
    return Answer({**body, **settings, "output": list(output), "usage": usage, **more})


def words(*parts: dict[str, Any]) -> dict[str, Any]:
    """A message item."""
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


def error(status: int, code: str, said: str, **headers: str) -> Answer:
    """An error in the API's form."""
    return Answer({"error": {"message": said, "type": code, "param": None, "code": code}}, status, headers)


def action(do: Do) -> dict[str, Any]:
    """A call on the computer as one of a computer call's actions."""
    if do.name == "click":
        return {"type": "click", "button": "left", **do.arguments}
    if do.name == "key":
        return {"type": "keypress", "keys": do.arguments["keys"].split("+")}
    if do.name == "wait":
        return {"type": "wait"}
    return {"type": do.name, **do.arguments}


class StandIn:
    """The server's answers: what ``mind`` says, and what a test wants to go wrong."""

    name = "openai"
    keys = {"OPENAI_API_KEY": "a key"}
    base = "OPENAI_BASE_URL"
    limited = error(429, "rate_limit_exceeded", "too many tokens a minute", **{"retry-after-ms": "20"})
    wrong_key = error(401, "invalid_api_key", "Incorrect API key provided")
    no_model = error(404, "model_not_found", "the model does not exist")
    refuses = response([words({"type": "refusal", "refusal": "no harm"})])
    out_of_tokens = response(
        [
            {
                "id": "cu_cut",
                "call_id": "call_cut",
                "type": "computer_call",
                "status": "incomplete",
                "actions": [{"type": "type", "text": "rm -r"}],
                "pending_safety_checks": [],
            }
        ],
        "incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._ids = itertools.count()

    @staticmethod
    def model(url: str, keep: int = 5) -> Model:
        return Gpt("gpt-6.2-sol", url, keep)

    @staticmethod
    def conversation(body: Any) -> list[Any]:
        """The items of a request."""
        return list(body["input"])

    @staticmethod
    def pictures(body: Any) -> int:
        """Pictures in a request, small grey ones not counted."""
        text = json.dumps(body["input"])
        return text.count('"image_url"') - text.count(json.dumps(GREY))

    def __call__(self, request: Request) -> Answer:
        assert request.path == "/responses", request.path
        wrong = problem(request.body)
        if wrong:
            return error(400, "invalid_request_error", wrong)
        said = self._mind(seen(request.body))
        if isinstance(said, Answer):
            return said
        if isinstance(said, str):
            return response([words({"type": "output_text", "text": said, "annotations": []})] if said else [])
        thought = {"id": f"rs_{next(self._ids)}", "type": "reasoning", "summary": [], "encrypted_content": "secret"}
        return response([thought, *self.calls(said)])

    def calls(self, said: Sequence[Do], checks: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
        """Calls as items; those on the computer that follow each other are one computer call's actions."""
        items: list[dict[str, Any]] = []
        for do in said:
            number = next(self._ids)
            item: dict[str, Any] = {"id": f"fc_{number}", "call_id": f"call_{number}", "status": "completed"}
            if do.name in OURS:
                arguments = json.dumps(do.arguments)
                items.append({**item, "type": "function_call", "name": do.name, "arguments": arguments})
            elif items and items[-1]["type"] == "computer_call":
                items[-1]["actions"].append(action(do))
            else:
                call = {"type": "computer_call", "actions": [action(do)], "pending_safety_checks": list(checks)}
                items.append({**item, **call})
        return items


def problem(body: Any) -> str | None:
    """What the real API would refuse: calls without outputs, outputs without calls, a picture that is missing."""
    waiting: dict[str, Any] = {}
    for number, item in enumerate(body["input"]):
        if item["type"] in ("computer_call", "function_call"):
            waiting[item["call_id"]] = item
        elif item["type"] in ("computer_call_output", "function_call_output"):
            call = waiting.pop(item["call_id"], None)
            if call is None or f"{call['type']}_output" != item["type"]:
                return f"input[{number}]: no call found for output {item['call_id']}"
            if item["type"] == "computer_call_output" and not item["output"].get("image_url"):
                return f"input[{number}]: a computer call output needs a screenshot"
        elif item["type"] == "message" and item["role"] == "user" and waiting:
            return f"input[{number}]: no tool output found for {list(waiting)}"
    if waiting:
        return f"no tool output found for {list(waiting)}"
    return None if body["store"] is False else "the conversation must not be stored"


def seen(body: Any) -> Seen:
    """What a request shows."""
    items = body["input"]
    last = max((n for n, item in enumerate(items) if item["type"] in ("reasoning", "computer_call")), default=-1)
    results: list[str] = []
    errors: list[str] = []
    texts: list[str] = []
    picture = None
    for item in items[last + 1 :]:
        parts = item.get("content", item.get("output", []))
        for part in [parts] if isinstance(parts, dict) else parts:
            if part.get("image_url"):
                picture = base64.b64decode(part["image_url"].partition(",")[2])
            elif "text" in part:
                texts.append(part["text"])
        if item["type"] == "function_call_output":
            text = " ".join(part["text"] for part in parts if part["type"] == "input_text")
            (errors if text.startswith("Error") else results).append(text)
        elif item["type"] == "message" and len(items) > 1:
            text = " ".join(part["text"] for part in parts if part["type"] == "input_text")
            if "Error" in text:
                errors.append(text)
        elif item["type"] == "computer_call_output":
            results.append("")
    tools = [tool.get("name") or tool["type"] for tool in body["tools"]]
    return Seen(items[0]["content"][0]["text"], tools, results, errors, "\n".join(texts), picture)
