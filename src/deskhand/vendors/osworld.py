"""OSWorld's ``computer_13``: one JSON object an action, in fenced blocks of the reply.

Read in OSWorld (xlang-ai/OSWorld): ``desktop_env/actions.py`` (the actions and their parameters),
``desktop_env/controllers/python.py`` (``execute_action``: the pyautogui call each becomes, and both ways to give the
parameters) and ``mm_agents/agent.py`` (``parse_actions_from_string``). Its other action space is code: ``pyautogui``.

``SCROLL`` counts clicks of the wheel, positive up and right; ``DRAG_TO`` starts where the pointer is.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from deskhand.errors import BatchRefused
from deskhand.vendors.base import Adapter, Turn
from deskhand.vendors.chat import reply_text
from deskhand.vendors.fields import Fields, plain
from deskhand.vendors.osworld_space import ENDINGS, MAX_NOTCHES, WAIT_SECONDS, OSWorldSpace
from deskhand.vendors.verbs import Action, Verbs, drag_from_pointer, joined, turn

VERBS = Verbs()
_BUTTONS = ("left", "right", "middle")


@VERBS.add("MOVE_TO", gives="move", takes="x y")
def _move_to(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "move", **_at(fields, needed=True)}]


@VERBS.add("CLICK", gives="click", takes="button? x? y? num_clicks?")
def _click(adapter: Adapter, fields: Fields) -> list[Action]:
    count = fields.integer("num_clicks", 1, 1, 3)
    return [{"action": "click", **_at(fields), "button": _button(fields), "count": count}]


@VERBS.add("RIGHT_CLICK", "DOUBLE_CLICK", gives="click", takes="x? y?")
def _other_click(adapter: Adapter, fields: Fields) -> list[Action]:
    button, count = ("right", 1) if fields.verb == "RIGHT_CLICK" else ("left", 2)
    return [{"action": "click", **_at(fields), "button": button, "count": count}]


@VERBS.add("MOUSE_DOWN", gives="mouse_down", takes="button?")
def _mouse_down(adapter: Adapter, fields: Fields) -> list[Action]:
    """where the pointer is"""
    return [{"action": "mouse_down", "button": _button(fields)}]


@VERBS.add("MOUSE_UP", gives="mouse_up", takes="button?")
def _mouse_up(adapter: Adapter, fields: Fields) -> list[Action]:
    """where the pointer is"""
    return [{"action": "mouse_up", "button": _button(fields)}]


@VERBS.add("DRAG_TO", gives="mouse_down move mouse_up", takes="x y")
def _drag_to(adapter: Adapter, fields: Fields) -> list[Action]:
    """from the pointer"""
    return drag_from_pointer(**_at(fields, needed=True))


@VERBS.add("SCROLL", gives="scroll", takes="dx? dy?")
def _scroll(adapter: Adapter, fields: Fields) -> list[Action]:
    """positive is up and right; a click is a notch"""
    across, up = (fields.integer(name, 0, -MAX_NOTCHES, MAX_NOTCHES) for name in ("dx", "dy"))
    if not across and not up:
        raise fields.refusal("dx and dy are both 0: nothing would move")
    return [*turn("right" if across > 0 else "left", abs(across)), *turn("up" if up > 0 else "down", abs(up))]


@VERBS.add("TYPING", gives="type", takes="text")
def _typing(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "type", "text": fields.string("text")}]


@VERBS.add("PRESS", gives="key", takes="key")
def _press(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "key", "keys": _one_key(fields)}]


@VERBS.add("KEY_DOWN", gives="key_down", takes="key")
def _key_down(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "key_down", "keys": _one_key(fields)}]


@VERBS.add("KEY_UP", gives="key_up", takes="key")
def _key_up(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "key_up", "keys": _one_key(fields)}]


@VERBS.add("HOTKEY", gives="key", takes="keys")
def _hotkey(adapter: Adapter, fields: Fields) -> list[Action]:
    """a list, all at once"""
    keys = fields.strings("keys")
    for key in keys:
        _checked(fields, key)
    return [{"action": "key", "keys": joined(keys)}]


@VERBS.add("WAIT", gives="wait")
def _wait(adapter: Adapter, fields: Fields) -> list[Action]:
    """2 s"""
    return [{"action": "wait", "seconds": WAIT_SECONDS}]


@VERBS.add(*ENDINGS, gives="")
def _end(adapter: OSWorld, fields: Fields) -> list[Action]:
    """ends the run"""
    adapter.finish = ENDINGS[fields.verb]
    return []


def _at(fields: Fields, needed: bool = False) -> dict[str, Any]:
    """``x`` and ``y``, numbers that are cut to whole pixels, as pyautogui does; ``{}`` for where the pointer is."""
    if not needed and not fields.has("x") and not fields.has("y"):
        for name in ("x", "y"):
            fields.take(name, None)
        return {}
    return {name: int(fields.number(name)) for name in ("x", "y")}


def _button(fields: Fields) -> str:
    return str(fields.one_of("button", _BUTTONS, "left"))


def _one_key(fields: Fields) -> str:
    return joined([_checked(fields, fields.string("key"))])


def _checked(fields: Fields, key: str) -> str:
    if len(key) > 1 and "+" in key:
        raise fields.refusal(f"{key[:40]!r} is not one key: use HOTKEY with a list of keys")
    return key


class OSWorld(OSWorldSpace):
    """The action space ``computer_13``, which the prompt describes to the model.

    Args:
        screen: The root window's width and height in pixels.
        positions: ``picture`` (pixels of the picture the model saw) or ``screen`` (as OSWorld itself takes them).
        limits: What pictures the model takes, when it is not the default.
    """

    vendor = "OSWorld"
    tool = "computer_13"
    verbs: ClassVar[Verbs] = VERBS
    source = "the OSWorld repository (no SDK)"
    last = "DONE or FAIL"

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        return _calls(plain(reply))

    def read(self, reply: Any) -> Turn:
        return self._turn(self.calls(reply), _say(reply), lambda call, _: (call["action_type"], call["parameters"]))


def _say(reply: Any) -> str:
    return re.sub(r"```.*?(```|\Z)", "", reply_text(reply) or "", flags=re.DOTALL).strip()


def _calls(value: Any) -> list[dict[str, Any]]:
    """Actions as OSWorld has them (objects, or the words WAIT, DONE, FAIL), a list of these, or a reply with them."""
    if isinstance(value, list):
        found = [_action(item) for item in value]
    elif isinstance(value, dict) and "action_type" in value:
        found = [_action(value)]
    else:
        found = _in_text(reply_text(value))
    if not found:
        raise BatchRefused("the reply holds no action: answer with a JSON object with action_type, in a code block")
    return found


def _in_text(text: str | None) -> list[dict[str, Any]]:
    if text is None:
        return []
    if text.strip() in VERBS or text.lstrip().startswith("{"):
        return [_action(_parsed(text.strip()))]
    blocks = re.findall(r"```[ \t]*(?:json[ \t]*)?(.*?)```", text, re.DOTALL)
    found = []
    for block in blocks:
        parsed = _parsed(block.strip())
        found += [_action(item) for item in parsed] if isinstance(parsed, list) else [_action(parsed)]
    return found


def _parsed(text: str) -> Any:
    if text in ("WAIT", "DONE", "FAIL"):
        return {"action_type": text, "parameters": {}}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BatchRefused("an action is not JSON that can be read: answer with one JSON object a code block") from None


def _action(value: Any) -> dict[str, Any]:
    """One action, its parameters in an object of their own or beside its type."""
    if isinstance(value, str) and value in ("WAIT", "DONE", "FAIL"):
        return {"action_type": value, "parameters": {}}
    if not isinstance(value, dict):
        raise BatchRefused("an action must be a JSON object with action_type")
    value = plain(value)
    rest = {name: item for name, item in value.items() if name != "action_type"}
    given = rest.pop("parameters", None)
    if given is None:
        return {"action_type": value.get("action_type"), "parameters": rest}
    if rest or not isinstance(given, dict):
        raise BatchRefused("the parameters of an action stand in parameters or beside action_type, not in both")
    return {"action_type": value.get("action_type"), "parameters": given}
