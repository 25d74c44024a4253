"""OpenAI's models, through the official ``openai`` SDK (read: 3.57.0, ``resources/responses``).

The whole conversation goes with each request and nothing is stored there (``store=False``), so that old pictures can be
left out; what the model reasoned goes with it encrypted.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from deskhand.agents.history import KEEP, LEFT_OUT
from deskhand.agents.model import MAX_TOKENS, REPLY_SECONDS, SILENCE_SECONDS, Call, Model, Reply, Stop, need
from deskhand.agents.usage import Usage
from deskhand.backends.base import Outcome
from deskhand.pictures import Size
from deskhand.tools import Tool, ToolAnswer
from deskhand.vendors.chat import data_url, picture_url
from deskhand.vendors.openai import Computer, Preview

#: One of the SDK's own names (``types/shared/chat_model.py``); it takes the computer tool.
DEFAULT = "gpt-6.2-sol"
#: A computer call's output holds a picture and nothing else, so one that is left out becomes this: 16x16, grey.
GREY = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAEUlEQVR42mNsYEAFTAwjWgAAmZAAoFDIQrAAAAAASUVORK5CYII="
)
_NOTE = " Of older pictures only the last few are kept: the others are replaced by a small grey one."


class Gpt(Model):
    """A conversation over the Responses API.

    Raises:
        SetupError: The SDK is not installed.
    """

    vendor = "OpenAI"
    prefix = "openai"
    retry_logger = "openai._base_client"
    keys = ("OPENAI_API_KEY",)

    def __init__(self, name: str = DEFAULT, base_url: str | None = None, keep: int = KEEP) -> None:
        super().__init__(name, base_url, keep)
        try:
            import openai
        except ImportError:
            raise need("openai", "openai") from None
        self._sdk = openai
        self._client = openai.AsyncOpenAI(base_url=base_url, timeout=SILENCE_SECONDS)
        self.base_url = str(self._client.base_url)
        self._request: dict[str, Any] = {}

    def begin(self, screen: Size) -> Computer:
        older = self.model.startswith("computer-use-preview")
        self._adapter = Preview(screen) if older else Computer(screen)
        self._request = {"truncation": "auto"} if older else {}
        return self._adapter

    def open(self, instructions: str, tools: Sequence[Tool], goal: str, look: Outcome) -> None:
        ours = [
            # strict would want every argument required, and knows only a part of JSON Schema
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in tools
        ]
        self._request |= {
            "model": self.model,
            "instructions": instructions + _NOTE,
            "tools": [*self._adapter.tools(), *ours],
            "max_output_tokens": MAX_TOKENS,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            # Requests with the same key go to the server that has their beginning cached.
            "prompt_cache_key": f"deskhand-{uuid.uuid4().hex}",
        }
        content: list[dict[str, Any]] = [{"type": "input_text", "text": goal}]
        picture = data_url(look)
        if picture is not None:
            content.append(self._image(picture))
        self.history.append({"type": "message", "role": "user", "content": content})

    def _image(self, url: str) -> dict[str, Any]:
        image = {"type": "input_image", "image_url": url}
        return {**image, "detail": self._adapter.detail} if self._adapter.detail else {**image, "detail": "high"}

    async def _ask(self) -> Reply:
        import asyncio

        responses: Any = self._client.responses
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                response = await responses.create(input=list(self.history), **self._request)
        except (self._sdk.OpenAIError, TimeoutError, ValueError) as error:
            raise self.unavailable(error) from error
        with self.reading():
            return self._reply(response.model_dump(mode="json", exclude_none=True, warnings=False))

    def _reply(self, raw: dict[str, Any]) -> Reply:
        items = raw["output"]
        pieces: list[Any] = []
        for item in items:
            if item.get("type") == "computer_call":
                if not pieces or isinstance(pieces[-1], Call):
                    pieces.append([])
                pieces[-1].append(item)
            elif item.get("type") == "function_call":
                pieces.append(Call(str(item.get("call_id")), str(item.get("name")), json_object(item.get("arguments"))))
        say, refusal = _words(items)
        stop, reason = _stop(raw, refusal, bool(pieces))
        if stop in ("acts", "says"):
            self.history += items
        return Reply(stop, items, say, pieces if stop == "acts" else [], reason, _usage(raw.get("usage") or {}))

    def _hear(self, results: list[dict[str, Any]]) -> None:
        # What is said beside the outputs comes after them all.
        self.history += [item for item in results if item["type"] != "message"]
        self.history += [item for item in results if item["type"] == "message"]

    def _tell(self, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        self.history.append({"type": "message", "role": "user", "content": content})

    def result(self, call: Call, answer: ToolAnswer) -> list[dict[str, Any]]:
        text = f"Error: {answer.text}" if answer.is_error else answer.text
        output: list[dict[str, Any]] = [{"type": "input_text", "text": text or "Done."}]
        if answer.picture is not None:
            output.append(self._image(picture_url(answer.picture)))
        return [{"type": "function_call_output", "call_id": call.id, "output": output}]

    @staticmethod
    def is_picture(node: dict[str, Any]) -> bool:
        return node.get("type") in ("input_image", "computer_screenshot") and node.get("image_url") != GREY

    @staticmethod
    def stand_in(node: dict[str, Any]) -> dict[str, Any]:
        if node["type"] == "computer_screenshot":
            return {**node, "image_url": GREY}
        return {"type": "input_text", "text": LEFT_OUT}

    async def aclose(self) -> None:
        await self._client.close()


def json_object(text: Any) -> dict[str, Any] | None:
    """The arguments of a function call, which come as text; None when they are no JSON object."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _words(items: list[dict[str, Any]]) -> tuple[str, str]:
    """What the messages of a response say, and how they refuse."""
    parts = [part for item in items if item.get("type") == "message" for part in item.get("content") or []]
    say = "\n".join(part["text"] for part in parts if part.get("type") == "output_text")
    return say.strip(), "\n".join(part["refusal"] for part in parts if part.get("type") == "refusal")


def _stop(raw: dict[str, Any], refusal: str, calls: bool) -> tuple[Stop, str]:
    status = str(raw.get("status", "completed"))
    if status == "incomplete":
        reason = str((raw.get("incomplete_details") or {}).get("reason", status))
        return ("refused" if reason == "content_filter" else "cut"), reason
    if status in ("failed", "cancelled"):
        return "refused", str((raw.get("error") or {}).get("message", status))
    if refusal and not calls:
        return "refused", refusal
    return ("acts" if calls else "says"), status


def _usage(counted: dict[str, Any]) -> Usage:
    details = counted.get("input_tokens_details") or {}
    read, write = details.get("cached_tokens", 0), details.get("cache_write_tokens", 0)
    plain = max(0, counted.get("input_tokens", 0) - read - write)
    return Usage(plain, read, write, max(0, counted.get("output_tokens", 0)))
