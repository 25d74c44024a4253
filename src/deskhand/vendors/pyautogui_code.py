"""The parts of pyautogui code, from its syntax tree: imports, function names and literal arguments. Nothing is run."""

from __future__ import annotations

import ast
from typing import Any

from deskhand.errors import BatchRefused

_PACE = ("interval", "duration", "tween", "logScreenshot", "_pause")
_CONSTANTS = {"LEFT": "left", "MIDDLE": "middle", "RIGHT": "right", "PRIMARY": "primary", "SECONDARY": "secondary"}
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
    **dict.fromkeys(("mouseDown", "mouseUp"), ("x", "y", "button", "duration", "tween", "logScreenshot", "_pause")),
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


def read_import(statement: ast.Import | ast.ImportFrom, names: dict[str, str], where: str) -> None:
    module = statement.module if isinstance(statement, ast.ImportFrom) else None
    for alias in statement.names:
        if module == "time" and alias.name == "sleep":
            names[alias.asname or "sleep"] = "sleep"
        elif isinstance(statement, ast.Import) and alias.name in ("pyautogui", "time"):
            names[alias.asname or alias.name] = alias.name
        elif module == "pyautogui":
            raise BatchRefused(f"{where}: write 'import pyautogui', and its functions as pyautogui.click(100, 200)")
        else:
            raise BatchRefused(f"{where}: only pyautogui and time can be imported, not {(module or alias.name)[:40]}")


def is_setting(statement: ast.Assign) -> bool:
    """``pyautogui.PAUSE = 0.5`` and ``pyautogui.FAILSAFE = False``, which change nothing here."""
    target = statement.targets[0]
    return (
        len(statement.targets) == 1
        and isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.attr in ("PAUSE", "FAILSAFE")
        and isinstance(statement.value, ast.Constant)
    )


def function_name(func: ast.expr, names: dict[str, str], where: str) -> str:
    """The name of the function called: ``pyautogui.NAME``, ``time.sleep``, ``sleep``."""
    if isinstance(func, ast.Name) and names.get(func.id) == "sleep":
        return "sleep"
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        module = names.get(func.value.id, func.value.id)
        if module == "pyautogui" or (module == "time" and func.attr == "sleep"):
            return func.attr
    raise BatchRefused(f"{where}: {_source(func)} is not allowed: use the functions of pyautogui, and time.sleep")


def arguments(call: ast.Call, name: str, where: str) -> dict[str, Any]:
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
        f"{where}: {_source(node)} is not a plain number or text: write every value out, without variables"
    )


def _source(node: ast.expr) -> str:
    """The beginning of an expression, as it may be quoted."""
    try:
        return ast.unparse(node)[:60]
    except RecursionError:
        return "an expression that long"
