"""Claude, through the official ``anthropic`` SDK (read: 2.14.0, ``resources/beta/messages``).

The computer toolset where the model takes it, the older tool before that. What stays the same (tools, instructions) and
the last two messages are marked for the cache; pictures are left out in steps, see ``history``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from deskhand.agents.history import KEEP, LEFT_OUT
from deskhand.agents.model import MAX_TOKENS, REPLY_SECONDS, SILENCE_SECONDS, Call, Model, Reply, Stop, need
from deskhand.agents.usage import Usage
from deskhand.backends.base import Outcome
from deskhand.pictures import Size
from deskhand.tools import Tool, ToolAnswer
from deskhand.vendors.anthropic import VERBS, Toolset, image
from deskhand.vendors.anthropic import Tool as OlderTool

#: One of the SDK's own names (``types/model_param.py``), which the computer toolset lists as supported.
DEFAULT = "claude-sonnet-5-5"
# Claude API documentation, Computer use tool, Earlier tool versions. A model that is in neither list takes the toolset.
_20250124 = re.compile(r"claude-(3|sonnet-4-(0|2|5)|opus-4-(0|1|2)|haiku-4-5)")
_20251124 = re.compile(r"claude-(opus-4-(5|6|7)|sonnet-4-6|mythos-preview)")
_CACHE = {"type": "ephemeral"}
_STOPS: dict[str, Stop] = {
    "max_tokens": "cut",
    "refusal": "refused",
    "pause_turn": "paused",
    "model_context_window_exceeded": "full",
}


class Claude(Model):
    """A conversation over the Messages API.

    Args:
        name: The model, as Anthropic calls it.
        base_url: The server's address, when it is not the SDK's own.
        keep: Pictures that are kept in the conversation.
        confirm: The verbs of its computer tool (``left_click``, ``key``) that a person has to allow, each call.

    Raises:
        SetupError: The SDK is not installed.
    """

    vendor = "Anthropic"
    prefix = "anthropic"
    retry_logger = "anthropic._base_client"
    keys = ("ANTHROPIC_API_KEY",)

    def __init__(
        self, name: str = DEFAULT, base_url: str | None = None, keep: int = KEEP, confirm: Collection[str] = ()
    ) -> None:
        super().__init__(name, base_url, keep)
        unknown = sorted(set(confirm) - set(VERBS))
        if unknown:
            raise ValueError(f"there is no verb {unknown[0]!r}: use some of {', '.join(VERBS)}")
        self._confirm = confirm
        try:
            import anthropic
        except ImportError:
            raise need("anthropic", "anthropic") from None
        self._sdk = anthropic
        self._client = anthropic.AsyncAnthropic(base_url=base_url, timeout=SILENCE_SECONDS)
        self.base_url = str(self._client.base_url)
        self._betas: list[str] = []
        self._system: list[dict[str, Any]] = []
        self._tools: list[dict[str, Any]] = []

    def begin(self, screen: Size) -> Toolset | OlderTool:
        version = "20250124" if _20250124.match(self.model) else "20251124" if _20251124.match(self.model) else None
        if version is None:
            self._adapter: Toolset | OlderTool = Toolset(screen, confirm=self._confirm)
        else:
            self._adapter = OlderTool(screen, version, confirm=self._confirm)
            self._betas = self._adapter.betas
        return self._adapter

    def open(self, instructions: str, tools: Sequence[Tool], goal: str, look: Outcome) -> None:
        ours = [{"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools]
        self._tools = [*self._adapter.tools(), *ours]
        # Tools stand before the instructions in what is cached, so one mark holds for both.
        self._system = [{"type": "text", "text": instructions, "cache_control": _CACHE}]
        content: list[dict[str, Any]] = [{"type": "text", "text": goal}]
        if look.picture is not None:
            content.append(image(look.picture))
        self.history.append({"role": "user", "content": content})

    async def _ask(self) -> Reply:
        import asyncio

        messages: Any = self._client.beta.messages
        more = {"betas": self._betas} if self._betas else {}
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                message = await messages.create(
                    model=self.model,
                    max_tokens=MAX_TOKENS,
                    system=self._system,
                    tools=self._tools,
                    messages=self._marked(),
                    **more,
                )
        except (self._sdk.AnthropicError, TimeoutError, ValueError) as error:
            raise self.unavailable(error) from error
        with self.reading():
            return self._reply(message.model_dump(mode="json", exclude_none=True, warnings=False))

    def _reply(self, raw: dict[str, Any]) -> Reply:
        blocks = raw["content"]
        pieces: list[Any] = []
        for block in blocks:
            if block.get("type") != "tool_use":
                continue
            if block.get("toolset_name") or (block.get("name") == "computer" and isinstance(self._adapter, OlderTool)):
                if not pieces or isinstance(pieces[-1], Call):
                    pieces.append([])
                pieces[-1].append(block)
            else:
                given = block.get("input")
                pieces.append(
                    Call(str(block.get("id")), str(block.get("name")), given if isinstance(given, dict) else None)
                )
        reason = str(raw.get("stop_reason", ""))
        stop = _STOPS.get(reason, "acts" if pieces else "says")
        if stop == "refused":
            details = raw.get("stop_details") or {}
            reason = str(details.get("explanation") or details.get("category") or reason)
        if stop in ("acts", "says", "paused") and blocks:
            self.history.append({"role": "assistant", "content": blocks})
        counted = raw.get("usage") or {}
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        usage = Usage(*(max(0, counted.get(name, 0)) for name in names))
        say = "\n".join(block["text"] for block in blocks if block.get("type") == "text").strip()
        return Reply(stop, blocks, say, pieces if stop == "acts" else [], reason, usage)

    def _marked(self) -> list[dict[str, Any]]:
        """The conversation with marks for the cache on the last two messages of ours.

        The one before the last is where the request before this one ended, which is what the server has cached.
        """
        marked = list(self.history)
        ours = [number for number, message in enumerate(marked) if message["role"] == "user"]
        for number in ours[-2:]:
            content = list(marked[number]["content"])
            content[-1] = {**content[-1], "cache_control": _CACHE}
            marked[number] = {**marked[number], "content": content}
        return marked

    def _hear(self, results: list[dict[str, Any]]) -> None:
        # Claude API documentation, Handle tool calls: the results come first in the message, all else after them.
        first = [block for block in results if block["type"] == "tool_result"]
        rest = [block for block in results if block["type"] != "tool_result"]
        self.history.append({"role": "user", "content": first + rest})

    def _tell(self, text: str) -> None:
        self.history.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def result(self, call: Call, answer: ToolAnswer) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = [{"type": "text", "text": answer.text or "Done."}]
        pictures = [image(answer.picture)] if answer.picture is not None else []
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id}
        if answer.is_error:  # a picture may not stand in a result that is an error
            return [{**block, "content": content, "is_error": True}, *pictures]
        return [{**block, "content": content + pictures}]

    @staticmethod
    def is_picture(node: dict[str, Any]) -> bool:
        return node.get("type") == "image"

    @staticmethod
    def stand_in(node: dict[str, Any]) -> dict[str, Any]:
        return {"type": "text", "text": LEFT_OUT}

    async def aclose(self) -> None:
        await self._client.close()
