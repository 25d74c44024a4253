"""Any server that speaks OpenAI's chat completions (vLLM, a local server), through the official ``openai`` SDK.

``tools``: the model gets our three tools as functions. ``qwen``: the function ``computer_use`` that Qwen-VL was trained
on, with ours beside it. ``ui_tars``: UI-TARS, which answers in text and takes no tools.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from deskhand.agents.history import KEEP, LEFT_OUT
from deskhand.agents.model import REPLY_SECONDS, SILENCE_SECONDS, Call, Model, Reply, Stop, need
from deskhand.agents.openai import json_object
from deskhand.agents.usage import Usage
from deskhand.backends.base import Outcome
from deskhand.pictures import Size
from deskhand.tools import Tool, ToolAnswer
from deskhand.vendors.base import Adapter
from deskhand.vendors.chat import chat_message, data_url, picture_url
from deskhand.vendors.qwen import Qwen
from deskhand.vendors.ui_tars import PROMPT, UiTars

#: Tokens of a reply: a local model's window may be small.
MAX_TOKENS = 4096


class Compatible(Model):
    """A conversation by chat completions.

    Args:
        name: The model, as the server calls it.
        base_url: The server's address, ``/v1`` included.
        keep: Pictures that are kept in the conversation.
        adapter: ``tools``, ``qwen`` or ``ui_tars``; by default what the name tells, else ``tools``.

    Raises:
        SetupError: The SDK is not installed.
    """

    vendor = "the server"
    prefix = "openai"
    retry_logger = "openai._base_client"
    keys = ("OPENAI_API_KEY",)

    def __init__(self, name: str, base_url: str | None = None, keep: int = KEEP, adapter: str | None = None) -> None:
        super().__init__(name, base_url, keep)
        try:
            import openai
        except ImportError:
            raise need("openai", "openai") from None
        import os

        self._sdk = openai
        # A server of one's own seldom wants a key, and the SDK always does.
        key = os.environ.get("OPENAI_API_KEY") or "none"
        self._client = openai.AsyncOpenAI(base_url=base_url, api_key=key, timeout=SILENCE_SECONDS)
        self.base_url = str(self._client.base_url)
        self.kind = adapter or _kind(name)
        self.takes_tools = self.kind != "ui_tars"
        self.ends_by_itself = self.kind in ("qwen", "ui_tars")
        self._adapter: Adapter | None = None
        self._offered: list[dict[str, Any]] = []

    def begin(self, screen: Size) -> Adapter | None:
        if self.kind == "qwen":
            self._adapter = Qwen(screen)
        elif self.kind == "ui_tars":
            self._adapter = UiTars(screen, "thousandths" if _in_thousandths(self.model) else "resized")
        return self._adapter

    def open(self, instructions: str, tools: Sequence[Tool], goal: str, look: Outcome) -> None:
        self._offered = self._adapter.tools() if self._adapter is not None else []
        for tool in tools:
            function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            self._offered.append({"type": "function", "function": function})
        if self.kind == "ui_tars":
            # It was trained on one user message with the prompt and the task, then the pictures.
            self.history.append({"role": "user", "content": f"{PROMPT}\n## User Instruction\n{goal}"})
            self.history.append(chat_message("The screen now:", data_url(look)))
            return
        self.history.append({"role": "system", "content": instructions})
        self.history.append(chat_message(goal, data_url(look)))

    async def _ask(self) -> Reply:
        import asyncio

        completions: Any = self._client.chat.completions
        more = {"tools": self._offered} if self._offered else {}
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                completion = await completions.create(
                    model=self.model, messages=list(self.history), max_tokens=MAX_TOKENS, **more
                )
        except (self._sdk.OpenAIError, TimeoutError, ValueError) as error:
            raise self.unavailable(error) from error
        with self.reading():
            raw = completion.model_dump(mode="json", exclude_none=True, warnings=False)
            return self._reply(raw["choices"][0], _usage(raw.get("usage") or {}))

    def _reply(self, choice: dict[str, Any], usage: Usage) -> Reply:
        told = choice["message"]
        # Servers add fields of their own (reasoning), which few take back.
        message = {name: told[name] for name in ("role", "content", "tool_calls") if told.get(name) is not None}
        pieces = self._pieces(message)
        reason = str(choice.get("finish_reason", "stop"))
        stop: Stop = "acts" if pieces else "says"
        if reason in ("length", "content_filter") or told.get("refusal"):
            stop = "cut" if reason == "length" else "refused"
            reason = str(told.get("refusal") or reason)
        if stop in ("acts", "says"):
            self.history.append({"role": "assistant", "content": "", **message})
        say = str(message.get("content") or "")
        if self.kind == "qwen":
            say = re.sub(r"<tool_call>.*", "", say, flags=re.DOTALL)
        return Reply(stop, message, say.strip(), pieces if stop == "acts" else [], reason, usage)

    def _pieces(self, message: dict[str, Any]) -> list[Any]:
        text = message.get("content")
        if self.kind == "ui_tars":
            return [text] if isinstance(text, str) else []
        pieces: list[Any] = []
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            if self.kind == "qwen" and function.get("name") == "computer_use":
                if not pieces or isinstance(pieces[-1], Call):
                    pieces.append([])
                pieces[-1].append(call)
            else:
                given = json_object(function.get("arguments") or "{}")
                pieces.append(Call(str(call.get("id")), str(function.get("name")), given))
        if not pieces and self.kind == "qwen" and isinstance(text, str) and "<tool_call>" in text:
            return [[text]]
        return pieces

    def _hear(self, results: list[dict[str, Any]]) -> None:
        # The answers to the calls must come first; then everything else as one message, as many templates want turns.
        self.history += [message for message in results if message["role"] == "tool"]
        rest = [part for message in results if message["role"] != "tool" for part in message["content"]]
        if rest:
            self.history.append({"role": "user", "content": rest})

    def _tell(self, text: str) -> None:
        if self.history[-1]["role"] == "user":
            self.history[-1] = {
                "role": "user",
                "content": [*self.history[-1]["content"], {"type": "text", "text": text}],
            }
        else:
            self.history.append(chat_message(text, None))

    def result(self, call: Call, answer: ToolAnswer) -> list[dict[str, Any]]:
        text = f"Error: {answer.text}" if answer.is_error else answer.text
        messages: list[dict[str, Any]] = [{"role": "tool", "tool_call_id": call.id, "content": text or "Done."}]
        if answer.picture is not None:  # a tool's message holds text only
            messages.append(chat_message("The screen now:", picture_url(answer.picture)))
        return messages

    @staticmethod
    def is_picture(node: dict[str, Any]) -> bool:
        return node.get("type") == "image_url"

    @staticmethod
    def stand_in(node: dict[str, Any]) -> dict[str, Any]:
        return {"type": "text", "text": LEFT_OUT}

    async def aclose(self) -> None:
        await self._client.close()


def _kind(name: str) -> str:
    """What a model's name tells of how it clicks."""
    plain = name.lower().replace("_", "-")
    if "ui-tars" in plain or "uitars" in plain:
        return "ui_tars"
    return "qwen" if "qwen" in plain and "vl" in plain else "tools"


def _in_thousandths(name: str) -> bool:
    """UI-TARS 1.0 and the hosted models give thousandths, 1.5 pixels (UI-TARS repository, README)."""
    return "1.5" not in name and "1-5" not in name


def _usage(counted: dict[str, Any]) -> Usage:
    read = (counted.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Usage(max(0, counted.get("prompt_tokens", 0) - read), read, 0, max(0, counted.get("completion_tokens", 0)))
