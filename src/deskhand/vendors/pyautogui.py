"""pyautogui code, as OSWorld's agents answer in: read as a syntax tree and never run.

Allowed are imports of ``pyautogui`` and ``time``, and calls of the functions below with literal arguments, one a
statement; anything else is refused with a sentence. Read in pyautogui 0.9.54, ``__init__.py`` (signatures, defaults,
``_normalizeXYArgs``, ``_normalizeButton``) and ``_pyautogui_x11.py`` (one press of a wheel button a click, positive up
and right). A last line of ``DONE``, ``FAIL`` or ``WAIT`` is OSWorld's (mm_agents/prompts.py).

``duration``, ``interval``, ``tween`` and ``PAUSE`` only say how fast, and the hand has a pace of its own.
"""

from __future__ import annotations

import ast
from typing import Any, ClassVar

from deskhand.errors import BatchRefused
from deskhand.pictures import Limits, Size
from deskhand.vendors.base import Step, Turn
from deskhand.vendors.chat import code_block, reply_text
from deskhand.vendors.fields import Fields
from deskhand.vendors.osworld_space import ENDINGS, MAX_NOTCHES, WAIT_SECONDS, OSWorldSpace
from deskhand.vendors.pyautogui_code import arguments, function_name, is_setting, read_import
from deskhand.vendors.verbs import Action, Verbs, drag_from_pointer, joined, turn

_BUTTONS: dict[Any, str] = {"left": "left", "middle": "middle", "right": "right"} | {
    "primary": "left",
    "secondary": "right",
    1: "left",
    2: "middle",
    3: "right",
}

VERBS = Verbs()
_CLICKS = {
    "click": ("left", 1),
    "leftClick": ("left", 1),
    "rightClick": ("right", 1),
    "middleClick": ("middle", 1),
    "doubleClick": ("left", 2),
    "tripleClick": ("left", 3),
}


@VERBS.add(*_CLICKS, gives="click", takes="x? y? clicks? button?")
def _click(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """`clicks` (up to 3) in click only; `button` in click, doubleClick and tripleClick"""
    button, count = _CLICKS[fields.verb]
    at = adapter.position(fields)
    if fields.verb == "click":
        count = fields.integer("clicks", 1, 1, 3)
    if fields.verb in ("click", "doubleClick", "tripleClick"):
        button = _button(fields, button)
    return [{"action": "click", **at, "button": button, "count": count}]


@VERBS.add("mouseDown", gives="mouse_down", takes="x? y? button?")
def _mouse_down(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    return [{"action": "mouse_down", **adapter.position(fields), "button": _button(fields, "left")}]


@VERBS.add("mouseUp", gives="mouse_up", takes="x? y? button?")
def _mouse_up(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    return [{"action": "mouse_up", **adapter.position(fields), "button": _button(fields, "left")}]


@VERBS.add("moveTo", gives="move", takes="x y")
def _move_to(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    at = adapter.position(fields)
    if not at:
        raise fields.refusal("x and y are missing")
    return [{"action": "move", **at}]


@VERBS.add("moveRel", "move", gives="move", takes="xOffset yOffset")
def _move_rel(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """after a position earlier in the code"""
    return [{"action": "move", **adapter.offset(fields)[1]}]


@VERBS.add("dragTo", gives="drag mouse_down move mouse_up", takes="x y button?")
def _drag_to(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """from the last position in the code, else from the pointer"""
    start = adapter.pointer
    end = adapter.position(fields)
    if not end:
        raise fields.refusal("x and y are missing")
    button = _drag_button(fields)
    if start is None:
        return drag_from_pointer(**end, button=button)
    return [_drag(start, end, button)]


@VERBS.add("dragRel", "drag", gives="drag", takes="xOffset yOffset button?")
def _drag_rel(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """after a position earlier in the code"""
    start, end = adapter.offset(fields)
    return [_drag(start, end, _drag_button(fields))]


@VERBS.add("scroll", "vscroll", gives="scroll", takes="clicks x? y?")
def _scroll(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """positive is up; a click is a notch"""
    clicks = _notches(fields)
    return _turned(adapter, fields, "up" if clicks > 0 else "down", abs(clicks))


@VERBS.add("hscroll", gives="scroll", takes="clicks x? y?")
def _hscroll(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """positive is right; a click is a notch"""
    clicks = _notches(fields)
    return _turned(adapter, fields, "right" if clicks > 0 else "left", abs(clicks))


@VERBS.add("write", "typewrite", gives="type key", takes="message")
def _write(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """text, or a list of key names"""
    message = fields.take("message")
    if isinstance(message, list):
        return [{"action": "key", "keys": _one_key(fields, key)} for key in fields.strings("message")]
    return [{"action": "type", "text": fields.string("message")}]


@VERBS.add("press", gives="key", takes="keys presses=1")
def _press(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """one key, or a list of keys one after the other"""
    keys, presses = fields.take("keys"), fields.integer("presses", 1, 1, 100)
    if not isinstance(keys, list):
        return [{"action": "key", "keys": _one_key(fields, fields.string("keys")), "repeat": presses}]
    return [{"action": "key", "keys": _one_key(fields, key)} for key in fields.strings("keys") * presses]


@VERBS.add("hotkey", "shortcut", gives="key", takes="*keys")
def _hotkey(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """all at once"""
    given = fields.take("*")
    if not given or not all(isinstance(key, str) and key for key in given):
        raise fields.refusal("its keys are a list of strings, at least one, such as hotkey('ctrl', 'c')")
    keys = [_one_key(fields, key) for key in given]
    return [{"action": "key", "keys": joined(keys)}]


@VERBS.add("keyDown", gives="key_down", takes="key")
def _key_down(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    return [{"action": "key_down", "keys": _one_key(fields, fields.string("key"))}]


@VERBS.add("keyUp", gives="key_up", takes="key")
def _key_up(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    return [{"action": "key_up", "keys": _one_key(fields, fields.string("key"))}]


@VERBS.add("sleep", gives="wait", takes="seconds")
def _sleep(adapter: PyAutoGui, fields: Fields) -> list[Action]:
    """of `time` or `pyautogui`; at most 60 s"""
    return [{"action": "wait", "seconds": fields.number("seconds", low=0, high=60)}]


def _button(fields: Fields, default: str) -> str:
    value = fields.take("button", default)
    key = value.lower() if isinstance(value, str) else value
    if isinstance(key, bool) or not isinstance(key, (str, int)) or key not in _BUTTONS:
        raise fields.refusal(f"button must be 'left', 'middle' or 'right', not {str(value)[:40]!r}")
    return _BUTTONS[key]


def _drag_button(fields: Fields) -> str:
    if not fields.boolean("mouseDownUp", True):
        raise fields.refusal("mouseDownUp=False is not supported: use mouseDown, moveTo, mouseUp")
    return _button(fields, "left")


def _drag(start: dict[str, float], end: dict[str, float], button: str) -> Action:
    return {"action": "drag", "path": [[start["x"], start["y"]], [end["x"], end["y"]]], "button": button}


def _notches(fields: Fields) -> int:
    clicks: int = fields.integer("clicks", low=-MAX_NOTCHES, high=MAX_NOTCHES)
    if not clicks:
        raise fields.refusal("clicks is 0: nothing would move")
    return clicks


def _turned(adapter: PyAutoGui, fields: Fields, direction: str, notches: int) -> list[Action]:
    return turn(direction, notches, adapter.position(fields))


def _one_key(fields: Fields, key: str) -> str:
    if len(key) > 1 and "+" in key:
        raise fields.refusal(f"{key[:40]!r} is not one key: use hotkey({', '.join(map(repr, key.split('+')))})")
    return "plus" if key == "+" else key


class PyAutoGui(OSWorldSpace):
    """Code in a reply's fenced blocks, or the whole reply.

    Args:
        screen: The root window's width and height in pixels.
        positions: ``picture`` (pixels of the picture the model saw) or ``screen`` (as pyautogui itself takes them).
        limits: What pictures the model takes, when it is not the default.
    """

    vendor = "pyautogui"
    tool = "pyautogui"
    verbs: ClassVar[Verbs] = VERBS
    source = "pyautogui 0.9.54"

    def __init__(self, screen: Size, positions: str = "picture", limits: Limits | None = None) -> None:
        super().__init__(screen, positions, limits)
        #: Where the code that is being read has put the pointer; None before it says.
        self.pointer: dict[str, float] | None = None

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        return [{"text": _code(reply)}]

    def read(self, reply: Any) -> Turn:
        code = _code(reply)
        turn = Turn([{"text": code}], ["code"], say=code)
        before, _, last = ("\n" + code).rpartition("\n")
        ending = ENDINGS.get(last.strip())
        if ending is not None:
            turn.finish, code = ending, before.strip()
        waits = last.strip() == "WAIT"
        if waits:
            code = before.strip()
        actions = self._actions(code)
        if waits:
            actions.append({"action": "wait", "seconds": WAIT_SECONDS})
        if not actions and turn.finish is None:
            raise BatchRefused("the code does nothing: call a function such as pyautogui.click(100, 200)")
        turn.parts = self._parts([Step(0, "code", actions)])
        return turn

    def _actions(self, code: str) -> list[Action]:
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            raise BatchRefused(f"line {line or 1} of the code can not be read: answer with Python code only") from None
        self.pointer = None
        actions: list[Action] = []
        names: dict[str, str] = {}
        for statement in tree.body:
            actions += self._statement(statement, names)
        return actions

    def position(self, fields: Fields) -> dict[str, float]:
        """``x`` and ``y``, each a number, or both as a pair in ``x``; ``{}`` for where the pointer is."""
        first, second = fields.take("x", None), fields.take("y", None)
        if isinstance(first, list) and len(first) == 2 and second is None:
            first, second = first
        if first is None and second is None:
            return {}
        if first is None or second is None:
            raise fields.refusal("it needs both x and y, or neither")
        inner = Fields(fields.verb, {"x": first, "y": second})
        self.pointer = {name: int(inner.number(name)) for name in ("x", "y")}
        return self.pointer

    def offset(self, fields: Fields) -> tuple[dict[str, float], dict[str, float]]:
        """Where the pointer is, and where that plus ``xOffset`` and ``yOffset`` is."""
        start = self.pointer
        if start is None:
            raise fields.refusal("where the pointer is is not known here: use moveTo or dragTo with a position")
        dx, dy = fields.number("xOffset", 0), fields.number("yOffset", 0)
        self.pointer = {"x": start["x"] + int(dx), "y": start["y"] + int(dy)}
        return start, self.pointer

    def _statement(self, statement: ast.stmt, names: dict[str, str]) -> list[Action]:
        """The actions of one statement; ``names`` are the modules and functions imported so far."""
        where = f"line {statement.lineno}"
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            read_import(statement, names, where)
            return []
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return []  # a text that explains the code
        if isinstance(statement, ast.Assign) and is_setting(statement):
            return []
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            raise BatchRefused(f"{where}: only calls such as pyautogui.click(100, 200) are allowed, one a line")
        call = statement.value
        name = function_name(call.func, names, where)
        given = arguments(call, name, where)
        try:
            return self._step(0, name, given).actions
        except BatchRefused as error:
            raise BatchRefused(f"{where}: {error}", 0) from None


def _code(reply: Any) -> str:
    """The fenced blocks of a reply, or the whole of it."""
    text = reply_text(reply)
    block = code_block(text) if text is not None else None
    code = (text or "").strip() if block is None else block
    if not code:
        raise BatchRefused("the reply holds no code")
    return code
