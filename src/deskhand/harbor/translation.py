"""From Harbor's ``ComputerAction`` to the hand's actions, and from the picture's pixels to the screen's."""

from __future__ import annotations

from typing import Any

from harbor.agents.computer_1.runtime import (
    XDOTOOL_KEY_ALIASES,
    ComputerAction,
    CoordinateSpace,
)

from deskhand.hand.key_names import is_modifier, parse_chord

Action = dict[str, Any]
Size = tuple[int, int]

#: Actions that leave the screen as it is: nothing is waited for after them.
QUIET = frozenset({"wait", "sleep", "screenshot", "cursor_position", "done", "answer", "terminate", "zoom"})
#: They need a browser of Harbor's own, with its address bar.
BROWSER = frozenset({"navigate", "go_back", "go_forward"})
#: Harbor's own: pixels a scroll without an amount turns the wheel by, and the seconds a held key without a duration is.
_SCROLL, _HOLD = 500, 1.0
_COUNTS = {"click": 1, "double_click": 2, "triple_click": 3, "right_click": 1, "middle_click": 1}
_BUTTONS = {"right_click": "right", "middle_click": "middle"}


def hand_actions(action: ComputerAction, screen: Size) -> list[Action] | None:
    """The hand's actions for one of Harbor's, whose positions are the screen's pixels; None: it has none.

    An empty list is an action that does nothing (an empty text).
    """
    kind = action.type
    if kind in _COUNTS:
        button = _BUTTONS.get(kind) or {"right": "right", "middle": "middle"}.get(str(action.button), "left")
        held = _modifier(action.modifier)
        return [
            {"action": "click", **_at(action), "button": button, "count": _COUNTS[kind]}
            | ({"modifiers": [held]} if held else {})
        ]
    if kind in ("mouse_down", "mouse_up"):
        return [{"action": kind, **({} if _has_no_position(action) else _at(action))}]
    if kind == "mouse_move":
        return [{"action": "move", **_at(action)}]
    if kind == "drag":
        start = action.x or 0, action.y or 0
        end = (
            action.end_x if action.end_x is not None else start[0],
            action.end_y if action.end_y is not None else start[1],
        )
        return [{"action": "drag", "path": [list(start), list(end)]}]
    if kind == "scroll":
        return _scroll(action, screen)
    if kind == "type":
        return _typed(action.text or "", bool(action.press_enter))
    if kind == "type_text_at":
        before: list[Action] = [{"action": "click", **_at(action)}]
        if action.clear_before_typing is not False:
            before.append({"action": "key", "keys": "ctrl+a"})
        return before + _typed(action.text or "", action.press_enter is not False)
    if kind in ("key", "keypress"):
        return [{"action": "key", "keys": chord} for chord in chords(action.keys)]
    if kind in ("key_down", "key_up"):
        return [{"action": kind, "keys": chord} for chord in chords(action.keys)]
    if kind == "hold_key":
        seconds = action.duration if action.duration is not None else _HOLD
        return [{"action": "hold_key", "keys": chord, "seconds": seconds} for chord in chords(action.keys)]
    if kind in ("wait", "sleep"):
        seconds = 1.0 if kind == "wait" else action.duration_seconds or action.duration or 1.0
        return [{"action": "wait", "seconds": seconds}]
    return {"screenshot": [{"action": "screenshot"}], "cursor_position": [{"action": "cursor_position"}]}.get(kind)


def chords(keys: list[str] | None) -> list[str]:
    """The chords to press one after the other: keys of which all but the last are modifiers are one chord."""
    named = [_key(key) for key in keys or [] if key]
    if len(named) > 1 and all(_is_modifier(key) for key in named[:-1]):
        return ["+".join(named)]
    return named


def to_screen(action: ComputerAction, picture: Size, screen: Size) -> ComputerAction:
    """The action with its positions, which are pixels of a picture of that size, as the screen's pixels.

    Only those that are pixels as the model gave them; what the provider has scaled, or will, stays. As Harbor does, the
    action keeps what the model said in ``model_x`` and ``model_y``.
    """
    if picture == screen or action.source != CoordinateSpace.NATIVE_PRESCALED:
        return action

    def x(value: int) -> int:
        return _scaled(value, picture[0], screen[0])

    def y(value: int) -> int:
        return _scaled(value, picture[1], screen[1])

    if action.x is not None and action.y is not None:
        action.model_x, action.model_y = action.x, action.y
        action.x, action.y = x(action.x), y(action.y)
    if action.end_x is not None and action.end_y is not None:
        action.end_x, action.end_y = x(action.end_x), y(action.end_y)
    if action.zoom_region is not None and len(action.zoom_region) == 4:
        x0, y0, x1, y1 = action.zoom_region
        ratio_x, ratio_y = screen[0] / picture[0], screen[1] / picture[1]
        action.zoom_region = [int(x0 * ratio_x), int(y0 * ratio_y), round(x1 * ratio_x), round(y1 * ratio_y)]
    return action


def to_picture(x: int, y: int, picture: Size, screen: Size) -> tuple[int, int]:
    """The pixel of a picture of that size where the screen's pixel is seen."""
    return _scaled(x, screen[0], picture[0]), _scaled(y, screen[1], picture[1])


def _scaled(value: int, size: int, other: int) -> int:
    """The first and the last pixel of one are those of the other; what is outside stays outside."""
    return round(value * (other - 1) / max(1, size - 1))


def _at(action: ComputerAction) -> dict[str, int]:
    # Without a position Harbor acts at 0, 0; a click there is never what was meant, and the pointer's place is.
    return {} if action.x is None or action.y is None else {"x": action.x, "y": action.y}


def _has_no_position(action: ComputerAction) -> bool:
    """Anthropic's left_mouse_down and left_mouse_up have none, and Harbor makes 0, 0 of that."""
    return action.source == CoordinateSpace.ANTHROPIC_SCALED and (action.x or 0, action.y or 0) == (0, 0)


def _scroll(action: ComputerAction, screen: Size) -> list[Action]:
    place = {"x": screen[0] // 2, "y": screen[1] // 2} | _at(action)
    dx = action.scroll_x or 0
    dy = action.scroll_y if action.scroll_y is not None else _SCROLL
    if not dx and not dy:
        return [{"action": "move", **place}]
    held = _modifier(action.modifier)
    return [
        {"action": "scroll", **place, "dx": dx, "dy": dy, "unit": "pixels"} | ({"modifiers": [held]} if held else {})
    ]


def _typed(text: str, enter: bool) -> list[Action]:
    typed: list[Action] = [{"action": "type", "text": text}] if text else []
    return typed + ([{"action": "key", "keys": "Return"}] if enter else [])


def _modifier(name: str | None) -> str | None:
    """As Harbor has it: what is no modifier is not held."""
    if not name:
        return None
    held = _key(name.strip())
    return held if _is_modifier(held) else None


def _is_modifier(key: str) -> bool:
    try:
        return all(is_modifier(name) for name in parse_chord(key))
    except ValueError:
        return False


def _key(key: str) -> str:
    """A key or a chord, with the names that Harbor has for some keys."""
    parts = [part.strip() for part in key.split("+") if part.strip()]
    plus = ["plus"] if key.rstrip().endswith("++") or key.strip() == "+" else []
    return "+".join([*(XDOTOOL_KEY_ALIASES.get(part.lower(), part) for part in parts), *plus]) or key
