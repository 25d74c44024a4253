"""Gemini, through the official ``google-genai`` SDK (read: 3.6.1, ``models.py``, ``types.py``): generate content.

A reply of the model stays in the conversation as the SDK gave it: it carries signatures that the next request needs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from deskhand.agents.history import KEEP
from deskhand.agents.model import MAX_TOKENS, REPLY_SECONDS, SILENCE_SECONDS, Call, Model, Reply, Stop, need
from deskhand.agents.usage import Usage
from deskhand.backends.base import Outcome
from deskhand.pictures import Size
from deskhand.tools import Tool, ToolAnswer
from deskhand.vendors.chat import media_type
from deskhand.vendors.gemini import Gemini as Adapter

#: Gemini API documentation, Computer Use: the model recommended for it; one of the SDK's own names
#: (``_gaos/types/interactions/model.py``).
DEFAULT = "gemini-3.5-flash"
#: As many tries as the other two SDKs make by themselves; this one makes one unless it is told.
TRIES = 3
_STOPS: dict[str, Stop] = {
    "MAX_TOKENS": "cut",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
    "MALFORMED_RESPONSE": "malformed",
}


class Gemini(Model):
    """A conversation by generate content, with the computer-use tool for a desktop.

    Raises:
        SetupError: The SDK is not installed.
    """

    vendor = "Google"
    prefix = "google"
    retry_logger = "google_genai._api_client"
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")

    def __init__(self, name: str = DEFAULT, base_url: str | None = None, keep: int = KEEP) -> None:
        super().__init__(name, base_url, keep)
        try:
            from google import genai
            from google.genai import errors, types
        except ImportError:
            raise need("google-genai", "google") from None
        self._types = types
        self._error = errors.APIError
        options = types.HttpOptions(
            base_url=base_url,
            timeout=int(SILENCE_SECONDS * 1000),
            retry_options=types.HttpRetryOptions(attempts=TRIES),
        )
        # The SDK takes GOOGLE_API_KEY first, and says so on the terminal when both are set.
        key = os.environ.get("GEMINI_API_KEY") or None
        self._client = genai.Client(api_key=key, http_options=options)

    def begin(self, screen: Size) -> Adapter:
        self._adapter = Adapter(screen)
        return self._adapter

    def open(self, instructions: str, tools: Sequence[Tool], goal: str, look: Outcome) -> None:
        self._adapter.custom = frozenset(tool.name for tool in tools)
        ours = [
            {"name": tool.name, "description": tool.description, "parameters_json_schema": tool.parameters}
            for tool in tools
        ]
        offered: list[dict[str, Any]] = [*self._adapter.tools(), {"function_declarations": ours}]
        config: dict[str, Any] = {
            "system_instruction": instructions,
            "tools": offered if ours else offered[:1],
            "max_output_tokens": MAX_TOKENS,
            "automatic_function_calling": {"disable": True},
        }
        self._config = self._types.GenerateContentConfig(**config)
        parts: list[dict[str, Any]] = [{"text": goal}]
        if look.picture is not None:
            parts.append(_inline(look.picture))
        self.history.append({"role": "user", "parts": parts})

    async def _ask(self) -> Reply:
        import asyncio

        import httpx

        lost: tuple[type[Exception], ...] = (self._error, httpx.HTTPError, OSError, TimeoutError, ValueError)
        try:
            import aiohttp
        except ImportError:
            pass
        else:
            lost = (*lost, aiohttp.ClientError)  # the SDK uses it where it is installed
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                response = await self._client.aio.models.generate_content(
                    model=self.model, contents=list(self.history), config=self._config
                )
        except lost as error:
            raise self.unavailable(error) from error
        with self.reading():
            return self._reply(response)

    def _reply(self, response: Any) -> Reply:
        usage = _usage(response.usage_metadata)
        if not response.candidates:
            blocked = response.prompt_feedback and response.prompt_feedback.block_reason
            if not blocked:
                raise self.unreadable()
            return Reply("refused", {}, reason=f"the prompt was blocked: {blocked.value}", usage=usage)
        candidate = response.candidates[0]
        raw = candidate.model_dump(mode="json", exclude_none=True, warnings=False)
        parts = (raw.get("content") or {}).get("parts") or []
        reason = candidate.finish_reason.value if candidate.finish_reason else "STOP"
        pieces: list[Any] = []
        for part in parts:
            call = part.get("function_call")
            if call is None:
                continue
            if call.get("name") in self._adapter.custom:
                pieces.append(Call(str(call.get("id") or ""), str(call["name"]), call.get("args") or {}))
            elif pieces and not isinstance(pieces[-1], Call):
                pieces[-1].append(part)
            else:
                pieces.append([part])
        stop: Stop = _STOPS.get(reason, "refused")
        if reason in ("STOP", "FINISH_REASON_UNSPECIFIED"):
            stop = "acts" if pieces else "says"
        if stop in ("acts", "says") and parts:
            self.history.append(candidate.content)
        say = "\n".join(part["text"] for part in parts if part.get("text") and not part.get("thought")).strip()
        return Reply(stop, parts, say, pieces if stop == "acts" else [], reason, usage)

    def _hear(self, results: list[dict[str, Any]]) -> None:
        self.history.append({"role": "user", "parts": results})

    def _tell(self, text: str) -> None:
        self.history.append({"role": "user", "parts": [{"text": text}]})

    def result(self, call: Call, answer: ToolAnswer) -> list[dict[str, Any]]:
        told: dict[str, Any] = {"error" if answer.is_error else "output": answer.text or "Done."}
        response: dict[str, Any] = {"name": call.name, "response": told}
        if call.id:
            response["id"] = call.id
        if answer.picture is not None:
            response["parts"] = [_inline(answer.picture)]
        return [{"function_response": response}]

    @staticmethod
    def is_picture(node: dict[str, Any]) -> bool:
        return "inline_data" in node

    @staticmethod
    def stand_in(node: dict[str, Any]) -> None:
        return None  # a function response may hold no other part than media

    async def aclose(self) -> None:
        await self._client.aio.aclose()
        self._client.close()


def _inline(picture: bytes) -> dict[str, Any]:
    return {"inline_data": {"mime_type": media_type(picture), "data": picture}}


def _usage(counted: Any) -> Usage:
    if counted is None:
        return Usage()
    read = counted.cached_content_token_count or 0
    written = (counted.candidates_token_count or 0) + (counted.thoughts_token_count or 0)
    return Usage(max(0, (counted.prompt_token_count or 0) - read), read, 0, written)
