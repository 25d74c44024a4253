"""pyautogui code, as OSWorld's agents answer in: read as a syntax tree and never run.

Allowed are imports of ``pyautogui`` and ``time``, and calls of the functions below with literal arguments, one a
statement; anything else is refused with a sentence. Read in pyautogui 0.9.54, ``__init__.py`` (signatures, defaults,
``_normalizeXYArgs``, ``_normalizeButton``) and ``_pyautogui_x11.py`` (one press of a wheel button a click, positive up
and right). A whole answer of ``DONE``, ``FAIL`` or ``WAIT`` is OSWorld's (mm_agents/prompts.py).

``duration``, ``interval``, ``tween`` and ``PAUSE`` only say how fast, and the hand has a pace of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, ClassVar

from deskhand.backends.base import Outcome
from deskhand.errors import BatchRefused
from deskhand.pictures import Limits, Size
from deskhand.vendors.base import (
    Action, Adapter, Finish, Step, Turn, Verbs, chat_message, code_block, data_url, drag_from_pointer, joined, plain,
    scroll_by,
)  # fmt: skip
from deskhand.vendors.fields import Fields
from deskhand.vendors.qwen import said
from deskhand.vendors.results import CallResult

#: OSWorld waits this long for WAIT (desktop_env.py, step, pause).
WAIT_SECONDS = 2
MAX_NOTCHES = 1000
_PACE = ("interval", "duration", "tween", "logScreenshot", "_pause")
_BUTTONS: dict[Any, str] = {"left": "left", "middle": "middle", "right": "right"} | {
    "primary": "left",
    "secondary": "right",
    1: "left",
    2: "middle",
    3: "right",
}
_CONSTANTS = {"LEFT": "left", "MIDDLE": "middle", "RIGHT": "right", "PRIMARY": "primary", "SECONDARY": "secondary"}

VERBS = Verbs()
#: The parameters of each function, in order; ``*`` takes the rest.
SIGNATURES: dict[str, tuple[str, ...]] = {
    "click": ("x", "y", "clicks", "interval", "button", "duration", "tween", "logScreenshot", "_pause"),
    **dict.fromkeys(
        ("leftClick", "rightClick", "middleClick"),
        ("x", "y", "interval", "duration", "tween", "logScreenshot", "_pause"),
    ),
    **dict.fromkeys(
        ("doubleClick", "tripleClick"),
        ("x", "y", "interval", "button", "duration", "tween", "logScreenshot", "_pause"),
    ),
    **dict.fromkeys(
        ("mouseDown", "mouseUp"), ("x", "y", "button", "duration", "tween", "logScreenshot", "_pause")
    ),
    "moveTo": ("x", "y", "duration", "tween", "logScreenshot", "_pause"),
    **dict.fromkeys(("moveRel", "move"), ("xOffset", "yOffset", "duration", "tween", "logScreenshot", "_pause")),
    "dragTo": ("x", "y", "duration", "tween", "button", "logScreenshot", "_pause", "mouseDownUp"),
    **dict.fromkeys(
        ("dragRel", "drag"),
        ("xOffset", "yOffset", "duration", "tween", "button", "logScreenshot", "_pause", "mouseDownUp"),
    ),
    **dict.fromkeys(("scroll", "vscroll", "hscroll"), ("clicks", "x", "y", "logScreenshot", "_pause")),
    **dict.fromkeys(("write", "typewrite"), ("message", "interval", "logScreenshot", "_pause")),
    "press": ("keys", "presses", "interval", "logScreenshot", "_pause"),
    **dict.fromkeys(("hotkey", "shortcut"), ("*",)),
    **dict.fromkeys(("keyDown", "keyUp"), ("key", "logScreenshot", "_pause")),
    "sleep": ("seconds",),
}

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
    """`clicks` up to 3, in `click` only; `button` not in leftClick, rightClick, middleClick"""
    button, count = _CLICKS[fields.verb]
    at = adapter.position(fields)
    count = fields.integer("clicks", count, 1, 3)
    return [{"action": "click", **at, "button": _button(fields, button), "count": count}]


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
    keys = [_one_key(fields, key) for key in fields.strings("*")]
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
    at = adapter.position(fields)
    amounts = [100] * (notches // 100) + ([notches % 100] if notches % 100 else [])
    return [{"action": "scroll", **at, **scroll_by(direction, amount)} for amount in amounts]


def _one_key(fields: Fields, key: str) -> str:
    if len(key) > 1 and "+" in key:
        raise fields.refusal(f"{key[:40]!r} is not one key: use hotkey({', '.join(map(repr, key.split('+')))})")
    return "plus" if key == "+" else key


class PyAutoGui(Adapter):
    """Code in a reply's last fenced block, or the whole reply.

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
        if positions not in ("picture", "screen"):
            raise ValueError("positions must be picture or screen")
        super().__init__(screen, limits)
        self.positions = positions
        #: Where the code that is being read has put the pointer; None before it says.
        self.pointer: dict[str, float] | None = None

    @property
    def space(self) -> Any:
        return "screen" if self.positions == "screen" else super().space

    def tools(self) -> list[dict[str, Any]]:
        return []

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        return [{"text": _code(reply)}]

    def read(self, reply: Any) -> Turn:
        code = _code(reply)
        ends = {"DONE": Finish("the model says that it is done"), "FAIL": Finish("the model gave up", success=False)}
        turn = Turn([{"text": code}], ["code"], say=code)
        if code in ends:
            turn.finish = ends[code]
            return turn
        if code == "WAIT":
            turn.parts = self._parts([Step(0, "WAIT", [{"action": "wait", "seconds": WAIT_SECONDS}])])
            return turn
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
        if not actions:
            raise BatchRefused("the code does nothing: call a function such as pyautogui.click(100, 200)")
        turn.parts = self._parts([Step(0, "code", actions)])
        return turn

    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """One user message of chat completions: the newest picture, and what has to be said."""
        picture = None if look is None else data_url(look)
        lines = []
        for result in results:
            picture = data_url(result) or picture
            lines += [said(result)] if not result.ok or result.text else []
        return [chat_message("\n".join(lines) or "Done.", picture)]

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
            _import(statement, names, where)
            return []
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return []  # a text that explains the code
        if isinstance(statement, ast.Assign) and _is_setting(statement):
            return []
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            raise BatchRefused(f"{where}: only calls such as pyautogui.click(100, 200) are allowed, one a line")
        call = statement.value
        name = _function(call.func, names, where)
        given = _arguments(call, name, where)
        try:
            return self._step(0, name, given).actions
        except BatchRefused as error:
            raise BatchRefused(f"{where}: {error}", 0) from None


def _import(statement: ast.Import | ast.ImportFrom, names: dict[str, str], where: str) -> None:
    module = statement.module if isinstance(statement, ast.ImportFrom) else None
    for alias in statement.names:
        if module == "time" and alias.name == "sleep":
            names[alias.asname or "sleep"] = "sleep"
        elif isinstance(statement, ast.Import) and alias.name in ("pyautogui", "time"):
            names[alias.asname or alias.name] = alias.name
        else:
            raise BatchRefused(f"{where}: only pyautogui and time can be imported, not {(module or alias.name)[:40]}")


def _is_setting(statement: ast.Assign) -> bool:
    """``pyautogui.PAUSE = 0.5`` and ``pyautogui.FAILSAFE = False``, which change nothing here."""
    target = statement.targets[0]
    return (
        len(statement.targets) == 1
        and isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.attr in ("PAUSE", "FAILSAFE")
        and isinstance(statement.value, ast.Constant)
    )


def _function(func: ast.expr, names: dict[str, str], where: str) -> str:
    """The name of the function called: ``pyautogui.NAME``, ``time.sleep``, ``sleep``."""
    if isinstance(func, ast.Name) and names.get(func.id) == "sleep":
        return "sleep"
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        module = names.get(func.value.id, func.value.id)
        if module == "pyautogui" or (module == "time" and func.attr == "sleep"):
            return func.attr
    raise BatchRefused(f"{where}: {ast.unparse(func)[:60]} is not allowed: use the functions of pyautogui, and time.sleep")


def _arguments(call: ast.Call, name: str, where: str) -> dict[str, Any]:
    """The arguments by the names of their parameters, those that only say how fast left out."""
    if name not in SIGNATURES:
        return {}  # refused with its nearest names by the verbs
    parameters = SIGNATURES[name]
    values = [_literal(argument, where) for argument in call.args]
    given: dict[str, Any] = {}
    if parameters == ("*",):
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        given["*"] = values
    elif len(values) > len(parameters):
        raise BatchRefused(f"{where}: {name} takes at most {len(parameters)} arguments, not {len(values)}")
    else:
        given = dict(zip(parameters, values, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise BatchRefused(f"{where}: {name} can not take ** arguments here: write them out")
        if keyword.arg in given:
            raise BatchRefused(f"{where}: {name} got {keyword.arg} twice")
        if keyword.arg != "tween":
            given[keyword.arg] = _literal(keyword.value, where)
    return {key: value for key, value in given.items() if key not in _PACE}


def _literal(node: ast.expr, where: str) -> Any:
    """A number, a text, a list of these, or one of pyautogui's constants for buttons."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (str, int, float))):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _literal(node.operand, where)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(item, where) for item in node.elts]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _CONSTANTS:
        return _CONSTANTS[node.attr]
    raise BatchRefused(
        f"{where}: {ast.unparse(node)[:60]} is not a plain number or text: write every value out, without variables"
    )


def _code(reply: Any) -> str:
    value = plain(reply)
    if isinstance(value, dict):
        if isinstance(value.get("choices"), list) and value["choices"]:
            value = value["choices"][0]
        value = value.get("message", value)
        value = value.get("content") if isinstance(value, dict) else value
    if not isinstance(value, str):
        raise BatchRefused("the reply holds no code")
    block = code_block(value)
    code = value.strip() if block is None else block
    if not code:
        raise BatchRefused("the reply holds no code")
    return code
