"""What the tests of the Pydantic AI capability share: a model that makes given calls, and what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from deskhand import DesktopInUse
from deskhand.backends.lease import DisplayLease
from deskhand.testing import XServer

pytest.importorskip("pydantic_ai")
from pydantic_ai import BinaryContent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

CLICK = {"action": "click", "x": 10, "y": 20}
LOOK: tuple[str, dict[str, Any]] = ("computer_screenshot", {})


def act(*actions: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "computer_act", {"actions": list(actions)}


class Scripted:
    """A model that makes these calls, one turn each, then says "done"; ``seen`` is every request it was sent."""

    def __init__(self, *turns: tuple[str, dict[str, Any]]) -> None:
        self.turns = list(turns)
        self.seen: list[list[ModelMessage]] = []
        self.info: AgentInfo | None = None
        self.calls = 0
        self.model = FunctionModel(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        self.info = info
        if not self.turns:
            return ModelResponse(parts=[TextPart("done")])
        name, arguments = self.turns.pop(0)
        self.calls += 1
        return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=f"call-{id(self)}-{self.calls}")])


def returns(messages: list[ModelMessage]) -> list[ToolReturnPart[Any]]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def words(part: ToolReturnPart[Any]) -> str:
    content: Any = part.content
    return content if isinstance(content, str) else str([item for item in content if isinstance(item, str)])


def pictures(messages: list[ModelMessage]) -> int:
    contents: list[Any] = [part.content for part in returns(messages)]
    lists: list[list[Any]] = [content for content in contents if isinstance(content, list)]
    return sum(isinstance(item, BinaryContent) for content in lists for item in content)


def run(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await work

    return asyncio.run(main())


async def free(display: XServer) -> bool:
    """Whether nobody has the desktop."""
    lease = DisplayLease(display.display, None, "a look")
    try:
        await lease.take(60)
    except DesktopInUse:
        return False
    finally:
        await lease.release()
    return True
