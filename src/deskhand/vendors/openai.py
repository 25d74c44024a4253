"""OpenAI's computer use: the tool ``computer``, a call of which holds ``actions``, and the older
``computer_use_preview``, a call of which holds one ``action``.

Read in the ``openai`` SDK 3.57.0: ``types/responses/computer_action.py``, ``response_computer_tool_call.py``,
``response_input_item_param.py`` (ComputerCallOutput), ``computer_tool.py``, ``computer_use_preview_tool.py``.

Positions are pixels of the picture; ``scroll_x`` and ``scroll_y`` are pixels, positive right and down. An output holds
only a picture, so what went wrong is said in a message beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deskhand.backends.base import Outcome
from deskhand.errors import BatchRefused
from deskhand.pictures import OPENAI, OPENAI_PREVIEW
from deskhand.vendors.base import Adapter, Ask, Step, Turn
from deskhand.vendors.chat import data_url
from deskhand.vendors.fields import Fields, plain
from deskhand.vendors.results import CallResult
from deskhand.vendors.verbs import Action, Verbs, joined, modifiers

BUTTONS = {"left": "left", "right": "right", "wheel": "middle", "back": "back", "forward": "forward"}
#: The action says not how long. OpenAI's sample loops take 1 to 2 s.
WAIT_SECONDS = 2

VERBS = Verbs()


@VERBS.add("click", gives="click", takes="button x y keys?")
def _click(adapter: Adapter, fields: Fields) -> list[Action]:
    """`wheel` is the middle button; `keys` held"""
    button = BUTTONS[fields.one_of("button", list(BUTTONS))]
    return [{"action": "click", **fields.at(), "button": button, **_held(fields)}]


@VERBS.add("double_click", gives="click", takes="x y keys?")
def _double_click(adapter: Adapter, fields: Fields) -> list[Action]:
    """`keys` held"""
    return [{"action": "click", **fields.at(), "count": 2, **_held(fields)}]


@VERBS.add("drag", gives="drag", takes="path keys?")
def _drag(adapter: Adapter, fields: Fields) -> list[Action]:
    """`path` of `{x, y}`, two or more; `keys` held"""
    path = fields.take("path")
    if not isinstance(path, list) or len(path) < 2:
        raise fields.refusal("path must be a list of two or more {x, y}")
    points = []
    for number, point in enumerate(path):
        inner = Fields(f"{fields.verb}: path[{number}]", point)
        at = inner.at()
        inner.finish()
        points.append([at["x"], at["y"]])
    return [{"action": "drag", "path": points, **_held(fields)}]


@VERBS.add("keypress", gives="key", takes="keys")
def _keypress(adapter: Adapter, fields: Fields) -> list[Action]:
    """all at once"""
    return [{"action": "key", "keys": joined(fields.strings("keys"))}]


@VERBS.add("move", gives="move key_down key_up", takes="x y keys?")
def _move(adapter: Adapter, fields: Fields) -> list[Action]:
    """`keys` held"""
    move = {"action": "move", **fields.at()}
    chord = _chord(fields)
    if chord is None:
        return [move]
    return [{"action": "key_down", "keys": chord}, move, {"action": "key_up", "keys": chord}]


@VERBS.add("screenshot", gives="screenshot")
def _screenshot(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "screenshot"}]


@VERBS.add("scroll", gives="scroll", takes="x y scroll_x scroll_y keys?")
def _scroll(adapter: Adapter, fields: Fields) -> list[Action]:
    """pixels, 100 a notch and at least one; `keys` held"""
    by = {"dx": fields.integer("scroll_x", low=-10_000, high=10_000)}
    by["dy"] = fields.integer("scroll_y", low=-10_000, high=10_000)
    if not any(by.values()):
        raise fields.refusal("scroll_x and scroll_y are both 0: positive scroll_y is down")
    return [{"action": "scroll", **fields.at(), **by, "unit": "pixels", **_held(fields)}]


@VERBS.add("type", gives="type", takes="text")
def _type(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "type", "text": fields.string("text")}]


@VERBS.add("wait", gives="wait")
def _wait(adapter: Adapter, fields: Fields) -> list[Action]:
    """2 s"""
    return [{"action": "wait", "seconds": WAIT_SECONDS}]


def _chord(fields: Fields) -> str | None:
    """The keys held during an action; an empty list holds none."""
    return None if fields.take("keys", []) == [] else joined(fields.strings("keys"))


def _held(fields: Fields) -> dict[str, Any]:
    return modifiers(fields.verb, _chord(fields))


class Computer(Adapter):
    """The tool ``computer`` of the Responses API."""

    vendor = "OpenAI"
    tool = "computer"
    verbs = VERBS
    source = "openai 3.57.0"
    default_limits = OPENAI
    needs_picture = True
    picture_each_call = True
    #: The picture is not to be scaled down before the model sees it (OpenAI API documentation, Computer use).
    detail: str | None = "original"

    def tools(self) -> list[dict[str, Any]]:
        return [{"type": "computer"}]

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        return [item for item in _items(reply) if item.get("type") == "computer_call"]

    def read(self, reply: Any) -> Turn:
        calls = self.calls(reply)
        steps = [self._call(number, call) for number, call in enumerate(calls)]
        turn = Turn(calls, [step.verb for step in steps], self._parts(steps), say=_text(reply))
        turn.asks = [
            Ask(
                step.call,
                step.verb,
                "openai safety check",
                str(check.get("message") or check.get("code") or "a safety check is pending"),
                check,
            )
            for step in steps
            for check in _pending(calls[step.call])
        ]
        return turn

    def _call(self, number: int, call: dict[str, Any]) -> Step:
        actions, single = call.get("actions"), call.get("action")
        if actions is not None and single is not None and actions != [single]:
            raise BatchRefused("the call holds both action and actions, which differ: send actions only", number)
        if actions is None:
            actions = [] if single is None else [single]
        if not isinstance(actions, list) or not actions:
            raise BatchRefused("the call holds no actions: send at least one, such as a screenshot", number)
        found: list[Action] = []
        verbs = []
        for action in actions:
            if not isinstance(action, dict):
                raise BatchRefused("each action must be an object with a type", number)
            given = {key: value for key, value in action.items() if key != "type"}
            step = self._step(number, action.get("type"), given)
            found += step.actions
            verbs.append(step.verb)
        return Step(number, ", ".join(verbs), found)

    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """Input items: a ``computer_call_output`` for every call, then a message where something has to be said.

        Raises:
            ValueError: There is no picture for a call, neither its own nor ``look``.
        """
        items: list[dict[str, Any]] = []
        lines: list[str] = []
        latest = None if look is None else data_url(look)
        for call, result in zip(turn.calls, results, strict=False):
            latest = data_url(result) or latest
            if latest is None:
                raise ValueError("a computer_call_output needs a picture: take one and pass it as look")
            output = {"type": "computer_screenshot", "image_url": latest}
            if self.detail:
                output["detail"] = self.detail
            item: dict[str, Any] = {"type": "computer_call_output", "call_id": call.get("call_id"), "output": output}
            # Nothing is run before a person has allowed every check, so a call that was not refused has been.
            if call.get("pending_safety_checks") and result.status != "not sent" and turn.parts:
                item["acknowledged_safety_checks"] = call["pending_safety_checks"]
            items.append(item)
            said = _said(result)
            if said:
                lines.append(f"Computer call {call.get('call_id')}: {said}" if len(turn.calls) > 1 else said)
        if lines:
            content = [{"type": "input_text", "text": "\n".join(lines)}]
            items.append({"type": "message", "role": "user", "content": content})
        return items


class Preview(Computer):
    """The older tool ``computer_use_preview``; the request needs ``truncation="auto"``."""

    tool = "computer_use_preview"
    default_limits = OPENAI_PREVIEW
    detail = None

    def tools(self) -> list[dict[str, Any]]:
        width, height = self.picture
        tool = {"type": "computer_use_preview", "environment": "linux"}
        return [{**tool, "display_width": width, "display_height": height}]


def _pending(call: dict[str, Any]) -> list[dict[str, Any]]:
    """The checks that a call waits for; one that is no object is a check all the same."""
    checks = call.get("pending_safety_checks") or []
    checks = checks if isinstance(checks, list) else [checks]
    return [check if isinstance(check, dict) else {"code": str(check)} for check in checks]


def _said(result: CallResult) -> str:
    if result.status == "skipped":
        return "Not executed: an earlier computer call failed."
    if result.status == "not sent":
        return "Not executed: another computer call was refused, so nothing was sent."
    if result.status == "failed":
        done = sum(action["status"] == "ok" for action in result.actions)
        total = len(result.actions)
        before = f"action {done + 1} of {total} failed, the rest was not executed: " if total else ""
        return f"Error: {before}{result.text or 'it did not work'}"
    return result.text


def _items(reply: Any) -> list[dict[str, Any]]:
    """The output items of a response, or of a list of them."""
    value = plain(reply)
    if isinstance(value, dict):
        value = value["output"] if isinstance(value.get("output"), list) else [value]
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(reply: Any) -> str:
    lines = []
    for item in _items(reply):
        content = item.get("content")
        if item.get("type") == "message" and isinstance(content, list):
            lines += [str(part.get("text", "")) for part in content if isinstance(part, dict)]
    return "\n".join(line for line in lines if line)
