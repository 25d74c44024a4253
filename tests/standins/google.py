"""Generate content of the Gemini API, as far as a conversation with the computer-use tool needs it."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from deskhand.agents.google import Gemini
from deskhand.agents.model import Model
from tests.standins.brain import OURS, Do, Mind, Seen
from tests.standins.server import Answer, Request


def candidate(parts: Sequence[dict[str, Any]], finish: str = "STOP", **more: Any) -> Answer:
    """A whole answer of the API."""
    usage = {
        "promptTokenCount": 1150,
        "cachedContentTokenCount": 1000,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 1170,
    }
    found = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0, **more}
    return Answer({"candidates": [found], "usageMetadata": usage, "modelVersion": "gemini-stand-in"})


def error(status: int, kind: str, said: str) -> Answer:
    """An error in the API's form."""
    return Answer({"error": {"code": status, "message": said, "status": kind}}, status)


def function(do: Do) -> tuple[str, dict[str, Any]]:
    """A call on the computer as one of the predefined functions."""
    if do.name == "key":
        keys = do.arguments["keys"].split("+")
        return ("hotkey", {"keys": keys}) if len(keys) > 1 else ("press_key", {"key": keys[0]})
    if do.name == "screenshot":
        return "take_screenshot", {}
    return do.name, do.arguments


class StandIn:
    """The server's answers: what ``mind`` says, and what a test wants to go wrong."""

    name = "google"
    keys = {"GEMINI_API_KEY": "a key"}
    base = "GOOGLE_GEMINI_BASE_URL"
    limited = error(429, "RESOURCE_EXHAUSTED", "too many tokens a minute")
    wrong_key = error(403, "PERMISSION_DENIED", "the key is not valid")
    no_model = error(404, "NOT_FOUND", "models/nothing is not found")
    refuses = candidate([], "SAFETY")
    out_of_tokens = candidate([{"functionCall": {"name": "type", "args": {"text": "rm -r"}}}], "MAX_TOKENS")

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._ids = itertools.count()

    @staticmethod
    def model(url: str, keep: int = 5) -> Model:
        return Gemini("gemini-3.5-flash", url, keep)

    @staticmethod
    def conversation(body: Any) -> list[Any]:
        """The contents of a request."""
        return list(body["contents"])

    @staticmethod
    def pictures(body: Any) -> int:
        """Pictures in a request."""
        return json.dumps(camel(body["contents"])).count('"inlineData"')

    def __call__(self, request: Request) -> Answer:
        assert request.path.endswith(":generateContent"), request.path
        wrong = problem(request.body)
        if wrong:
            return error(400, "INVALID_ARGUMENT", wrong)
        said = self._mind(seen(request.body))
        if isinstance(said, Answer):
            return said
        if isinstance(said, str):
            return candidate([{"text": said}] if said else [])
        return candidate([{"text": "Let me see.", "thought": True}, *map(self.part, said)])

    def part(self, do: Do) -> dict[str, Any]:
        """A call as a part."""
        name, given = (do.name, do.arguments) if do.name in OURS else function(do)
        call = {"id": f"call_{next(self._ids)}", "name": name, "args": given}
        return {"functionCall": call, "thoughtSignature": base64.b64encode(b"signed").decode()}


def problem(body: Any) -> str | None:
    """What the real API would refuse: calls without responses, a signature that was lost."""
    waiting: list[Any] = []
    for number, content in enumerate(body["contents"]):
        if content["role"] == "model":
            calls = [part for part in content["parts"] if "functionCall" in part]
            if any("thoughtSignature" not in part for part in calls):
                return f"contents[{number}]: a function call is missing a thought_signature"
            waiting = [part["functionCall"]["id"] for part in calls]
        else:
            answered = [part["functionResponse"]["id"] for part in content["parts"] if "functionResponse" in part]
            if answered != waiting:
                return f"contents[{number}]: function responses {answered} do not match the calls {waiting}"
            waiting = []
    return None if body["contents"][-1]["role"] == "user" else "the last content must be the user's"


def camel(value: Any) -> Any:
    """JSON with its keys in the one form: the API takes both, and the SDK sends both (Protocol Buffers, JSON)."""
    if isinstance(value, dict):
        return {re.sub("_(.)", lambda found: found[1].upper(), key): camel(item) for key, item in value.items()}
    return [camel(item) for item in value] if isinstance(value, list) else value


def seen(body: Any) -> Seen:
    """What a request shows."""
    body = camel(body)
    results: list[str] = []
    errors: list[str] = []
    texts: list[str] = []
    picture = None
    for part in body["contents"][-1]["parts"]:
        if "text" in part:
            texts.append(part["text"])
        answered = part.get("functionResponse")
        if answered is not None:
            told = answered["response"]
            (errors if "error" in told else results).append(told.get("error") or told.get("output", ""))
        for inner in [part, *(answered or {}).get("parts", [])]:
            if "inlineData" in inner:
                data = inner["inlineData"]["data"]
                picture = base64.b64decode(data.replace("-", "+").replace("_", "/"))
    tools = []
    for tool in body["tools"]:
        tools += [declared["name"] for declared in tool.get("functionDeclarations", [])] or list(tool)
    return Seen(body["contents"][0]["parts"][0]["text"], tools, results, errors, "\n".join(texts), picture)
