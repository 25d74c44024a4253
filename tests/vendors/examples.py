"""For every verb of every vendor: a good call, and what it must become."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deskhand.vendors import load
from deskhand.vendors.base import Adapter

SCREEN = (1280, 800)
Actions = list[dict[str, Any]]


def drag(x0: float, y0: float, x1: float, y1: float) -> dict[str, Any]:
    return {"action": "drag", "path": [[x0, y0], [x1, y1]]}


def from_pointer(x: int, y: int, button: str = "left") -> Actions:
    moves = [{"action": "move", "x": x - 1, "y": y}, {"action": "move", "x": x, "y": y}]
    return [{"action": "mouse_down", "button": button}, *moves, {"action": "mouse_up", "button": button}]


def click(x: float | None = None, y: float | None = None, button: str = "left", count: int = 1) -> dict[str, Any]:
    at = {} if x is None else {"x": x, "y": y}
    return {"action": "click", **at, "button": button, "count": count}


def key(keys: str, **more: Any) -> dict[str, Any]:
    return {"action": "key", "keys": keys, **more}


ENTER = key("Return")

ANTHROPIC: dict[str, tuple[dict[str, Any], Actions]] = {
    "key": ({"text": "ctrl+s", "repeat": 2}, [key("ctrl+s", repeat=2)]),
    "hold_key": ({"text": "shift", "duration": 1}, [{"action": "hold_key", "keys": "shift", "seconds": 1}]),
    "type": ({"text": "Grüße"}, [{"action": "type", "text": "Grüße"}]),
    "cursor_position": ({}, [{"action": "cursor_position"}]),
    "mouse_move": ({"coordinate": [0, 0]}, [{"action": "move", "x": 0, "y": 0}]),
    "left_mouse_down": ({}, [{"action": "mouse_down"}]),
    "left_mouse_up": ({}, [{"action": "mouse_up"}]),
    "left_click": (
        {"coordinate": [10, 20], "text": "ctrl+shift"},
        [{**click(10, 20), "modifiers": ["Control_L", "Shift_L"]}],
    ),
    "left_click_drag": ({"start_coordinate": [1, 2], "coordinate": [30, 40]}, [drag(1, 2, 30, 40)]),
    "right_click": ({"coordinate": [10, 20]}, [click(10, 20, "right")]),
    "middle_click": ({}, [click(button="middle")]),
    "double_click": ({"coordinate": [1279, 799]}, [click(1279, 799, count=2)]),
    "triple_click": ({"coordinate": [10, 20]}, [click(10, 20, count=3)]),
    "scroll": (
        {"coordinate": [5, 6], "scroll_direction": "up", "scroll_amount": 3},
        [{"action": "scroll", "x": 5, "y": 6, "dy": -3}],
    ),
    "wait": ({"duration": 2}, [{"action": "wait", "seconds": 2}]),
    "screenshot": ({}, [{"action": "screenshot"}]),
    "zoom": ({"region": [0, 0, 100, 50]}, [{"action": "zoom", "region": [0, 0, 100, 50]}]),
}
OPENAI: dict[str, tuple[dict[str, Any], Actions]] = {
    "click": (
        {"button": "wheel", "x": 10, "y": 20, "keys": ["CTRL"]},
        [{"action": "click", "x": 10, "y": 20, "button": "middle", "modifiers": ["Control_L"]}],
    ),
    "double_click": ({"x": 0, "y": 0}, [{"action": "click", "x": 0, "y": 0, "count": 2}]),
    "drag": (
        {"path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}], "keys": ["SHIFT"]},
        [{"action": "drag", "path": [[1, 2], [3, 4], [5, 6]], "modifiers": ["Shift_L"]}],
    ),
    "keypress": ({"keys": ["CTRL", "+"]}, [key("CTRL+plus")]),
    "move": (
        {"x": 7, "y": 8, "keys": ["ALT"]},
        [
            {"action": "key_down", "keys": "ALT"},
            {"action": "move", "x": 7, "y": 8},
            {"action": "key_up", "keys": "ALT"},
        ],
    ),
    "screenshot": ({}, [{"action": "screenshot"}]),
    "scroll": (
        {"x": 1, "y": 2, "scroll_x": 0, "scroll_y": -250},
        [{"action": "scroll", "x": 1, "y": 2, "dx": 0, "dy": -250, "unit": "pixels"}],
    ),
    "type": ({"text": "a\nb"}, [{"action": "type", "text": "a\nb"}]),
    "wait": ({}, [{"action": "wait", "seconds": 2}]),
}
GEMINI: dict[str, tuple[dict[str, Any], Actions]] = {
    "click": ({"x": 0, "y": 999}, [click(0, 999)]),
    "double_click": ({"x": 1, "y": 2}, [click(1, 2, count=2)]),
    "triple_click": ({"x": 1, "y": 2}, [click(1, 2, count=3)]),
    "middle_click": ({"x": 1, "y": 2}, [click(1, 2, "middle")]),
    "right_click": ({"x": 1, "y": 2}, [click(1, 2, "right")]),
    "mouse_down": ({"x": 1, "y": 2}, [{"action": "mouse_down", "x": 1, "y": 2}]),
    "mouse_up": ({"x": 1, "y": 2}, [{"action": "mouse_up", "x": 1, "y": 2}]),
    "move": ({"x": 1, "y": 2}, [{"action": "move", "x": 1, "y": 2}]),
    "type": ({"text": "hi", "press_enter": True}, [{"action": "type", "text": "hi"}, ENTER]),
    "drag_and_drop": ({"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}, [drag(1, 2, 3, 4)]),
    "wait": ({"seconds": 3}, [{"action": "wait", "seconds": 3}]),
    "press_key": ({"key": "Enter"}, [key("Enter")]),
    "key_down": ({"key": "Control"}, [{"action": "key_down", "keys": "Control"}]),
    "key_up": ({"key": "Control"}, [{"action": "key_up", "keys": "Control"}]),
    "hotkey": ({"keys": ["Control", "A"]}, [key("Control+A")]),
    "take_screenshot": ({}, [{"action": "screenshot"}]),
    "scroll": (
        {"x": 1, "y": 2, "direction": "right"},
        [{"action": "scroll", "x": 1, "y": 2, "dx": 300, "unit": "pixels"}],
    ),
    "go_back": ({}, [key("alt+Left")]),
    "go_forward": ({}, [key("alt+Right")]),
    "navigate": ({"url": "https://e.org"}, [key("ctrl+l"), {"action": "type", "text": "https://e.org"}, ENTER]),
    "open_web_browser": ({}, [{"action": "launch", "app": "Firefox ESR"}]),
    "search": ({}, [key("ctrl+l"), {"action": "type", "text": "https://find.org"}, ENTER]),
    "wait_5_seconds": ({}, [{"action": "wait", "seconds": 5}]),
    "click_at": ({"x": 1, "y": 2}, [{"action": "click", "x": 1, "y": 2}]),
    "hover_at": ({"x": 1, "y": 2}, [{"action": "move", "x": 1, "y": 2}]),
    "type_text_at": (
        {"x": 1, "y": 2, "text": "q"},
        [
            {"action": "click", "x": 1, "y": 2},
            key("ctrl+a"),
            key("BackSpace"),
            {"action": "type", "text": "q"},
            ENTER,
        ],
    ),
    "key_combination": ({"keys": "Control+C"}, [key("Control+C")]),
    "scroll_document": ({"direction": "down"}, [key("Next")]),
    "scroll_at": (
        {"x": 1, "y": 2, "direction": "up", "magnitude": 500},
        [{"action": "scroll", "x": 1, "y": 2, "dy": -400.0, "unit": "pixels"}],
    ),
}
QWEN: dict[str, tuple[dict[str, Any], Actions]] = {
    "key": ({"keys": ["ctrl", "c"]}, [key("ctrl+c")]),
    "type": ({"text": "hi"}, [{"action": "type", "text": "hi"}]),
    "mouse_move": ({"coordinate": [1000, 0]}, [{"action": "move", "x": 1000, "y": 0}]),
    "left_click": ({"coordinate": [500, 500]}, [click(500, 500)]),
    "right_click": ({"coordinate": [1, 2]}, [click(1, 2, "right")]),
    "middle_click": ({"coordinate": [1, 2]}, [click(1, 2, "middle")]),
    "double_click": ({"coordinate": [1, 2]}, [click(1, 2, count=2)]),
    "triple_click": ({}, [click(count=3)]),
    "left_click_drag": ({"coordinate": [20, 30]}, from_pointer(20, 30)),
    "scroll": ({"pixels": 300}, [{"action": "scroll", "dy": -300, "unit": "pixels"}]),
    "hscroll": (
        {"pixels": -200, "coordinate": [1, 2]},
        [{"action": "scroll", "x": 1, "y": 2, "dx": -200, "unit": "pixels"}],
    ),
    "wait": ({"time": 1.5}, [{"action": "wait", "seconds": 1.5}]),
    "terminate": ({"status": "success"}, []),
    "answer": ({"text": "42"}, []),
}
POINT = "<point>100 200</point>"
UI_TARS: dict[str, tuple[dict[str, Any], Actions]] = {
    "click": ({"point": POINT}, [click(100, 200)]),
    "left_single": ({"start_box": "(100,200)"}, [click(100, 200)]),
    "left_double": ({"start_box": "<|box_start|>(100,200,110,210)<|box_end|>"}, [click(105, 205, count=2)]),
    "right_single": ({"point": "(100, 200)"}, [click(100, 200, "right")]),
    "hover": ({"point": POINT}, [{"action": "move", "x": 100, "y": 200}]),
    "drag": ({"start_point": POINT, "end_point": "<point>300 400</point>"}, [drag(100, 200, 300, 400)]),
    "select": ({"start_box": "(100,200)", "end_box": "(300,400)"}, [drag(100, 200, 300, 400)]),
    "hotkey": ({"key": "ctrl shift t"}, [key("ctrl+shift+t")]),
    "press": ({"key": "ctrl"}, [{"action": "key_down", "keys": "ctrl"}]),
    "keydown": ({"key": "ctrl"}, [{"action": "key_down", "keys": "ctrl"}]),
    "release": ({"key": "ctrl"}, [{"action": "key_up", "keys": "ctrl"}]),
    "keyup": ({"key": "ctrl"}, [{"action": "key_up", "keys": "ctrl"}]),
    "type": ({"content": "it's\n"}, [{"action": "type", "text": "it's\n"}]),
    "scroll": (
        {"point": POINT, "direction": "down"},
        [{"action": "scroll", "x": 100, "y": 200, "dy": 5}],
    ),
    "wait": ({}, [{"action": "wait", "seconds": 5}]),
    "finished": ({"content": "all done"}, []),
    "call_user": ({}, []),
}
OSWORLD: dict[str, tuple[dict[str, Any], Actions]] = {
    "MOVE_TO": ({"x": 1279, "y": 65.06}, [{"action": "move", "x": 1279, "y": 65}]),
    "CLICK": ({"button": "middle", "num_clicks": 3}, [click(button="middle", count=3)]),
    "RIGHT_CLICK": ({}, [click(button="right")]),
    "DOUBLE_CLICK": ({}, [click(count=2)]),
    "MOUSE_DOWN": ({"button": "right"}, [{"action": "mouse_down", "button": "right"}]),
    "MOUSE_UP": ({}, [{"action": "mouse_up", "button": "left"}]),
    "DRAG_TO": ({"x": 30, "y": 40}, from_pointer(30, 40)),
    "SCROLL": ({"dx": -2, "dy": 3}, [{"action": "scroll", "dx": -2}, {"action": "scroll", "dy": -3}]),
    "TYPING": ({"text": "it's\n"}, [{"action": "type", "text": "it's\n"}]),
    "PRESS": ({"key": "+"}, [key("plus")]),
    "KEY_DOWN": ({"key": "shiftleft"}, [{"action": "key_down", "keys": "shiftleft"}]),
    "KEY_UP": ({"key": "ctrl"}, [{"action": "key_up", "keys": "ctrl"}]),
    "HOTKEY": ({"keys": ["ctrl", "+"]}, [key("ctrl+plus")]),
    "WAIT": ({}, [{"action": "wait", "seconds": 2}]),
    "DONE": ({}, []),
    "FAIL": ({}, []),
}
PYAUTOGUI: dict[str, tuple[str, Actions]] = {
    "click": ("pyautogui.click(10, 20, clicks=2, interval=0.1, button='right')", [click(10, 20, "right", 2)]),
    "leftClick": ("pyautogui.leftClick(x=10, y=20)", [click(10, 20)]),
    "rightClick": ("pyautogui.rightClick((10, 20))", [click(10, 20, "right")]),
    "middleClick": ("pyautogui.middleClick()", [click(button="middle")]),
    "doubleClick": ("pyautogui.doubleClick(10.7, 20.2)", [click(10, 20, count=2)]),
    "tripleClick": ("pyautogui.tripleClick(0, 0)", [click(0, 0, count=3)]),
    "mouseDown": (
        "pyautogui.mouseDown(button=pyautogui.MIDDLE)",
        [{"action": "mouse_down", "button": "middle"}],
    ),
    "mouseUp": (
        "pyautogui.mouseUp(1, 2, 'secondary')",
        [{"action": "mouse_up", "x": 1, "y": 2, "button": "right"}],
    ),
    "moveTo": (
        "pyautogui.moveTo(100, 200, duration=1, tween=pyautogui.easeInQuad)",
        [{"action": "move", "x": 100, "y": 200}],
    ),
    "moveRel": (
        "pyautogui.moveTo(5, 5)\npyautogui.moveRel(10, -5)",
        [{"action": "move", "x": 5, "y": 5}, {"action": "move", "x": 15, "y": 0}],
    ),
    "move": (
        "pyautogui.moveTo(5, 5)\npyautogui.move(0, 5)",
        [{"action": "move", "x": 5, "y": 5}, {"action": "move", "x": 5, "y": 10}],
    ),
    "dragTo": ("pyautogui.dragTo(30, 40, 0.5, button='left')", from_pointer(30, 40)),
    "dragRel": (
        "pyautogui.moveTo(5, 5)\npyautogui.dragRel(10, 10)",
        [{"action": "move", "x": 5, "y": 5}, {**drag(5, 5, 15, 15), "button": "left"}],
    ),
    "drag": (
        "pyautogui.moveTo(5, 5)\npyautogui.drag(10, 0, button='right')",
        [{"action": "move", "x": 5, "y": 5}, {**drag(5, 5, 15, 5), "button": "right"}],
    ),
    "scroll": ("pyautogui.scroll(5)", [{"action": "scroll", "dy": -5}]),
    "vscroll": ("pyautogui.vscroll(-5, 1, 2)", [{"action": "scroll", "x": 1, "y": 2, "dy": 5}]),
    "hscroll": ("pyautogui.hscroll(-3, x=1, y=2)", [{"action": "scroll", "x": 1, "y": 2, "dx": -3}]),
    "write": ("pyautogui.write('Grüße', interval=0.05)", [{"action": "type", "text": "Grüße"}]),
    "typewrite": ("pyautogui.typewrite(['a', 'enter'])", [key("a"), key("enter")]),
    "press": ("pyautogui.press('down', presses=3)", [key("down", repeat=3)]),
    "hotkey": ("pyautogui.hotkey('ctrl', '+')", [key("ctrl+plus")]),
    "shortcut": ("pyautogui.shortcut(['ctrl', 'c'])", [key("ctrl+c")]),
    "keyDown": ("pyautogui.keyDown('shift')", [{"action": "key_down", "keys": "shift"}]),
    "keyUp": ("pyautogui.keyUp('shift')", [{"action": "key_up", "keys": "shift"}]),
    "sleep": ("time.sleep(0.5)", [{"action": "wait", "seconds": 0.5}]),
}


def tool_use(verb: str, given: dict[str, Any], number: int = 0) -> dict[str, Any]:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": verb, "input": given}
    return {**call, "toolset_name": "computer"}


def older_tool_use(verb: str, given: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "computer", "input": {"action": verb, **given}}


def computer_call(*actions: dict[str, Any], number: int = 0, **more: Any) -> dict[str, Any]:
    call = {"type": "computer_call", "id": f"cu_{number}", "call_id": f"call_{number}", "status": "completed"}
    return {**call, "actions": list(actions), "pending_safety_checks": [], **more}


def preview_call(action: dict[str, Any]) -> dict[str, Any]:
    call = computer_call()
    del call["actions"]
    return {**call, "action": action}


def function_call(verb: str, given: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return {"id": f"fc_{number}", "name": verb, "args": {"intent": "because", **given}}


def tool_call(verb: Any, given: dict[str, Any], number: int = 0) -> dict[str, Any]:
    arguments = json.dumps({"action": verb, **given})
    function = {"name": "computer_use", "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def action_text(verb: str, given: dict[str, Any]) -> str:
    return f"Thought: so.\nAction: {verb}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


@dataclass(frozen=True)
class Vendor:
    """An adapter, its examples, and how a reply with one call is made."""

    make: Callable[[], Adapter]
    examples: dict[str, tuple[dict[str, Any], Actions]]
    reply: Callable[[str, dict[str, Any]], Any]


def _browser() -> Adapter:
    return load("gemini")(SCREEN, environment="browser", browser="Firefox ESR", search="https://find.org")


VENDORS: dict[str, Vendor] = {
    "anthropic_toolset": Vendor(lambda: load("anthropic_toolset")(SCREEN), ANTHROPIC, lambda v, g: [tool_use(v, g)]),
    "anthropic_20251124": Vendor(lambda: load("anthropic")(SCREEN), ANTHROPIC, lambda v, g: [older_tool_use(v, g)]),
    "anthropic_20250124": Vendor(
        lambda: load("anthropic")(SCREEN, "20250124"),
        {verb: example for verb, example in ANTHROPIC.items() if verb != "zoom"},
        lambda v, g: [older_tool_use(v, g)],
    ),
    "openai": Vendor(lambda: load("openai")(SCREEN), OPENAI, lambda v, g: [computer_call({"type": v, **g})]),
    # 768 is the preview's short edge, so that the examples' positions are the screen's.
    "openai_preview": Vendor(
        lambda: load("openai_preview")((1280, 768)), OPENAI, lambda v, g: [preview_call({"type": v, **g})]
    ),
    "gemini_browser": Vendor(_browser, GEMINI, lambda v, g: [function_call(v, g)]),
    "qwen": Vendor(lambda: load("qwen")(SCREEN), QWEN, lambda v, g: [tool_call(v, g)]),
    "ui_tars": Vendor(lambda: load("ui_tars")(SCREEN), UI_TARS, action_text),
    "osworld": Vendor(lambda: load("osworld")(SCREEN), OSWORLD, lambda v, g: {"action_type": v.upper(), **g}),
}
