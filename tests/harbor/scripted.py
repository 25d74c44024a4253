"""A model's server that replays actions: one of computer-1's JSON replies after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from tests.standins.server import Answer, Request

DONE = {"type": "done", "result": "It is done."}
#: What solves the task of ``tasks``: click, type, two keys, and done, said twice as computer-1 asks for it.
SOLUTION: list[Any] = [
    {"type": "click", "x": 400, "y": 300},
    {"type": "type", "text": "desk hand"},
    {"type": "keypress", "keys": ["Return"]},
    {"type": "keypress", "keys": ["ctrl", "d"]},
    DONE,
    DONE,
]


class Scripted:
    """Answers chat completions. ``replies`` are actions, or texts as they are; the last one again and again.

    Trials that run at once are told apart by what their first message says: each has its own place in the script, which
    is how many replies of the model its history holds.
    """

    def __init__(self, replies: Sequence[Any]) -> None:
        self._replies = list(replies)
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: Request) -> Answer:
        body = request.body
        with self._lock:
            self.requests.append(body)
        said = sum(message["role"] == "assistant" for message in body["messages"])
        reply = self._replies[min(said, len(self._replies) - 1)]
        text = reply if isinstance(reply, str) else json.dumps({"analysis": "a", "plan": "p", "action": reply})
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted"}
        return Answer({**answer, "choices": [choice], "usage": usage})

    @property
    def pictures(self) -> list[int]:
        """The pictures each request held."""
        return [pictures(body) for body in self.requests]


def pictures(body: dict[str, Any]) -> int:
    parts = [part for message in body["messages"] for part in _parts(message["content"])]
    return sum(part.get("type") == "image_url" for part in parts)


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []
