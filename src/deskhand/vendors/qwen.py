"""Qwen-VL's ``computer_use``: one function whose ``action`` names the verb, with positions in thousandths (0 to 1000).

There is no SDK: the verbs are those of the function's schema in Qwen's cookbook (QwenLM/Qwen3-VL, cookbooks,
Computer use), as it stands in the models' prompt, ``TOOL`` below. A call comes as a tool call of OpenAI's chat
completions, or as text in ``<tool_call>``.

``scroll`` and ``hscroll`` count pixels, positive up and right; ``left_click_drag`` starts where the pointer is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from deskhand.backends.base import Outcome
from deskhand.errors import BatchRefused
from deskhand.pictures import QWEN
from deskhand.vendors.base import Adapter, Finish, Turn, Words
from deskhand.vendors.chat import chat_message, data_url, reply_text, said
from deskhand.vendors.fields import Fields, plain
from deskhand.vendors.results import CallResult
from deskhand.vendors.verbs import Action, Verbs, drag_from_pointer, joined

VERBS = Verbs()


@VERBS.add("key", gives="key", takes="keys")
def _key(adapter: Adapter, fields: Fields) -> list[Action]:
    """a list, all at once"""
    return [{"action": "key", "keys": joined(fields.strings("keys"))}]


@VERBS.add("type", gives="type", takes="text")
def _type(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "type", "text": fields.string("text")}]


@VERBS.add("mouse_move", gives="move", takes="coordinate")
def _mouse_move(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "move", **_at(fields)}]


_CLICKS = {
    "left_click": ("left", 1),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}


@VERBS.add(*_CLICKS, gives="click", takes="coordinate?")
def _click(adapter: Adapter, fields: Fields) -> list[Action]:
    button, count = _CLICKS[fields.verb]
    return [{"action": "click", **_at(fields, needed=False), "button": button, "count": count}]


@VERBS.add("left_click_drag", gives="mouse_down move mouse_up", takes="coordinate")
def _left_click_drag(adapter: Adapter, fields: Fields) -> list[Action]:
    """from the pointer"""
    return drag_from_pointer(**_at(fields))


@VERBS.add("scroll", gives="scroll", takes="pixels coordinate?")
def _scroll(adapter: Adapter, fields: Fields) -> list[Action]:
    """positive is up; 100 pixels a notch, at least one"""
    return [{"action": "scroll", **_at(fields, needed=False), "dy": -_pixels(fields), "unit": "pixels"}]


@VERBS.add("hscroll", gives="scroll", takes="pixels coordinate?")
def _hscroll(adapter: Adapter, fields: Fields) -> list[Action]:
    """positive is right; 100 pixels a notch, at least one"""
    return [{"action": "scroll", **_at(fields, needed=False), "dx": _pixels(fields), "unit": "pixels"}]


@VERBS.add("wait", gives="wait", takes="time")
def _wait(adapter: Adapter, fields: Fields) -> list[Action]:
    """at most 60 s a call"""
    return [{"action": "wait", "seconds": fields.number("time", low=0, high=60)}]


@VERBS.add("terminate", gives="", takes="status")
def _terminate(adapter: Qwen, fields: Fields) -> list[Action]:
    """ends the run"""
    status = fields.one_of("status", ("success", "failure"))
    adapter.finish = Finish(f"the model ended the run: {status}", status == "success")
    return []


@VERBS.add("answer", gives="", takes="text")
def _answer(adapter: Qwen, fields: Fields) -> list[Action]:
    """ends the run with what it says"""
    adapter.finish = Finish(fields.string("text"))
    return []


def _at(fields: Fields, needed: bool = True) -> dict[str, Any]:
    if not needed and not fields.has("coordinate"):
        fields.take("coordinate", None)
        return {}
    value = fields.take("coordinate")
    if not isinstance(value, list) or len(value) != 2:
        raise fields.refusal("coordinate must be [x, y], each from 0 to 1000")
    inner = Fields(fields.verb, {"x of coordinate": value[0], "y of coordinate": value[1]})
    return {"x": inner.number("x of coordinate"), "y": inner.number("y of coordinate")}


def _pixels(fields: Fields) -> float:
    pixels: float = fields.number("pixels", low=-10_000, high=10_000)
    if not pixels:
        raise fields.refusal("pixels is 0: nothing would move")
    return pixels


#: The function as the model is told of it.
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "computer_use",
        "description": "Use a mouse and keyboard to interact with a computer. The screen's resolution is 1000x1000.",
        "parameters": {
            "type": "object",
            "required": ["action"],
            "properties": {
                "action": {"type": "string", "enum": list(VERBS), "description": "The action to perform."},
                "keys": {"type": "array", "description": "Required only by `action=key`."},
                "text": {"type": "string", "description": "Required only by `action=type` and `action=answer`."},
                "coordinate": {
                    "type": "array",
                    "description": "(x, y), each from 0 to 1000. Required only by `action=mouse_move` and"
                    " `action=left_click_drag`.",
                },
                "pixels": {
                    "type": "number",
                    "description": "The amount of scrolling to perform. Positive values scroll up, negative values"
                    " scroll down. Required only by `action=scroll` and `action=hscroll`.",
                },
                "time": {"type": "number", "description": "The seconds to wait. Required only by `action=wait`."},
                "status": {
                    "type": "string",
                    "enum": ["success", "failure"],
                    "description": "The status of the task. Required only by `action=terminate`.",
                },
            },
        },
    },
}


class Qwen(Adapter):
    """The function ``computer_use``, offered as a tool or in the prompt."""

    vendor = "Qwen-VL"
    tool = "computer_use"
    verbs: ClassVar[Verbs] = VERBS
    source = "Qwen's cookbook (no SDK)"
    default_limits = QWEN
    last = "terminate or answer"

    @property
    def space(self) -> Any:
        return {"grid": 1000}

    def tools(self) -> list[dict[str, Any]]:
        return [TOOL]

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        return _calls(plain(reply))

    def read(self, reply: Any) -> Turn:
        say = re.sub(r"<tool_call>.*", "", reply_text(reply) or "", flags=re.DOTALL).strip()
        return self._turn(self.calls(reply), say, _words)

    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """Messages of chat completions: a ``tool`` message for every tool call, then the newest picture as the user's;
        for calls in text one user message with ``<tool_response>``.
        """
        picture = None if look is None else data_url(look)
        messages: list[dict[str, Any]] = []
        lines = []
        for call, result in zip(turn.calls or [{}], results, strict=False):
            picture = data_url(result) or picture
            text = said(result)
            if call.get("id"):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            else:
                lines.append(f"<tool_response>\n{text}\n</tool_response>")
        if lines or picture:
            messages.append(chat_message("\n".join(lines) or "The screen now:", picture))
        return messages


def _words(call: dict[str, Any], number: int) -> Words:
    given = call["arguments"]
    if not isinstance(given, dict):
        raise BatchRefused("computer_use: its arguments must be a JSON object with an action", number)
    return given.get("action"), {key: value for key, value in given.items() if key != "action"}


def _calls(value: Any) -> list[dict[str, Any]]:
    """Calls of ``computer_use`` in a message, a completion, a list of tool calls, or a text."""
    if isinstance(value, str):
        return [_parsed(text) for text in re.findall(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", value, re.DOTALL)]
    if isinstance(value, list):
        return [call for item in value for call in _calls(item)]
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("choices"), list):
        return _calls(value["choices"][:1])
    if isinstance(value.get("message"), dict):
        return _calls(value["message"])
    if isinstance(value.get("function"), dict):
        function = value["function"]
        return [{"id": value.get("id"), **_named(function)}] if function.get("name") == "computer_use" else []
    if "arguments" in value:
        return [_named(value)] if value.get("name") == "computer_use" else []
    return _calls(value["tool_calls"]) if value.get("tool_calls") else _calls(value.get("content"))


def _named(function: dict[str, Any]) -> dict[str, Any]:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    return {"arguments": arguments}


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"arguments": None}
    if not isinstance(value, dict) or value.get("name") != "computer_use":
        return {"arguments": None}
    return _named(value)
