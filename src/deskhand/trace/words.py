"""An action in the words of the trace page: ``double click (640, 412)``, ``type "hello"``, ``launch Mousepad``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_LONGEST = 90

_TIMES = {2: "double ", 3: "triple "}


def action_in_words(action: Any) -> str:
    """``action`` (one of an envelope's ``actions``) as one short line.

    Never fails: what no action should look like is given as the JSON it is, because a trace records what was refused
    too.
    """
    if isinstance(action, Mapping):
        words = _WORDS.get(str(action.get("action")))
        if words is not None:
            return shortened(words(action))
    return shortened(as_json(action))


def shortened(text: str, longest: int = _LONGEST) -> str:
    """``text`` on one line, cut in its middle when it has more than ``longest`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest * 2 // 3]} … {line[-(longest // 3 - 3) :]}"


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _quoted(value: Any) -> str:
    text = value if isinstance(value, str) else as_json(value)
    return json.dumps(shortened(text) if len(text) > _LONGEST else text, ensure_ascii=False)


def _position(x: Any, y: Any) -> str:
    return f"({x}, {y})"


def _at(action: Mapping[str, Any]) -> str:
    if action.get("x") is None and action.get("y") is None:
        return "at the pointer"
    return _position(action.get("x"), action.get("y"))


def _with_modifiers(action: Mapping[str, Any]) -> str:
    modifiers = action.get("modifiers")
    return f" with {'+'.join(map(str, modifiers))}" if isinstance(modifiers, Sequence) and modifiers else ""


def _button(action: Mapping[str, Any]) -> str:
    button = action.get("button", "left")
    return "" if button == "left" else f"{button} "


def _click(action: Mapping[str, Any]) -> str:
    count = action.get("count", 1)
    times = "" if count == 1 else _TIMES.get(count, f"{count}× ") if isinstance(count, int) else f"{count}× "
    return f"{times}{_button(action)}click {_at(action)}{_with_modifiers(action)}"


def _drag(action: Mapping[str, Any]) -> str:
    path = action.get("path")
    if not isinstance(path, Sequence) or not path or not all(isinstance(p, Sequence) and len(p) == 2 for p in path):
        return f"drag {as_json(path)}"
    ends = f"{_position(*path[0])} → {_position(*path[-1])}"
    way = f" over {len(path) - 2} more" if len(path) > 2 else ""
    return f"{_button(action)}drag {ends}{way}{_with_modifiers(action)}"


def _scroll(action: Mapping[str, Any]) -> str:
    unit = " px" if action.get("unit") == "pixels" else ""
    ways = []
    for name, forward, backward in (("dy", "down", "up"), ("dx", "right", "left")):
        amount = action.get(name, 0)
        if isinstance(amount, (int, float)) and amount:
            ways.append(f"{forward if amount > 0 else backward} {abs(amount)}{unit}")
        elif not isinstance(amount, (int, float)):
            ways.append(f"{name} {amount}")
    return f"scroll {' and '.join(ways) or '0'} {_at(action)}{_with_modifiers(action)}"


def _type(action: Mapping[str, Any]) -> str:
    how = " by pasting" if action.get("method") == "paste" else ""
    if action.get("secret") not in (None, False):
        return f"type a secret{how}"
    return f"type {_quoted(action.get('text'))}{how}"


def _key(action: Mapping[str, Any]) -> str:
    repeat = action.get("repeat", 1)
    return f"press {action.get('keys')}{'' if repeat == 1 else f' ×{repeat}'}"


def _wait_window(action: Mapping[str, Any]) -> str:
    what = [f"{name} {_quoted(action[name])}" for name in ("title", "app") if action.get(name) is not None]
    return f"wait for a window {' '.join(what)}{', focused' if action.get('focused') else ''}".rstrip()


def _window(action: Mapping[str, Any]) -> str:
    window = action.get("window")
    return f"0x{window:x}" if isinstance(window, int) else str(window)


def _quit(action: Mapping[str, Any]) -> str:
    what = action["app"] if action.get("app") is not None else f"window {_window(action)}"
    return f"quit {what}{' by force' if action.get('force') else ''}"


def _resize(action: Mapping[str, Any]) -> str:
    size = [str(action[name]) for name in ("width", "height") if action.get(name) is not None]
    return f"resize window {_window(action)}{' to ' + '×'.join(size) if size else ''}"


def _zoom(action: Mapping[str, Any]) -> str:
    region = action.get("region")
    if isinstance(region, Sequence) and len(region) == 4:
        return f"zoom {_position(*region[:2])} – {_position(*region[2:])}"
    return f"zoom {as_json(region)}"


_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "click": _click,
    "move": lambda action: f"move to {_at(action)}",
    "mouse_down": lambda action: f"press {action.get('button', 'left')} button {_at(action)}",
    "mouse_up": lambda action: f"release {action.get('button', 'left')} button {_at(action)}",
    "drag": _drag,
    "scroll": _scroll,
    "type": _type,
    "key": _key,
    "hold_key": lambda action: f"hold {action.get('keys')} for {action.get('seconds')} s",
    "key_down": lambda action: f"key down {action.get('keys')}",
    "key_up": lambda action: f"key up {action.get('keys')}",
    "wait": lambda action: f"wait {action.get('seconds')} s",
    "wait_window": _wait_window,
    "launch": lambda action: f"launch {action.get('app')}",
    "quit": _quit,
    "focus": lambda action: f"focus window {_window(action)}",
    "close": lambda action: f"close window {_window(action)}",
    "resize": _resize,
    "clipboard_set": lambda action: f"put {_quoted(action.get('text'))} on the clipboard",
    "clipboard_get": lambda action: "read the clipboard",
    "zoom": _zoom,
    "cursor_position": lambda action: "ask where the pointer is",
    "screenshot": lambda action: "take a picture",
}
