"""The action model: what an agent can do, defined once.

Each action is a dataclass whose fields are annotated for pydantic (``TypeAdapter`` makes schema and validators of the
union ``Action``) and checked without it by ``envelope.parse_actions``: unknown fields, types, ranges. What needs a
display (positions within the screen, applications that exist) is checked by ``preflight`` before anything is sent.
"""

# The defaults are dataclass fields with their check as metadata.
# ruff: noqa: RUF009

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, Literal, Optional, Tuple, Union

ButtonName = Literal["left", "middle", "right", "back", "forward"]
Modifier = str
Number = Union[int, float]

MAX_ACTIONS = 100
MAX_TEXT = 100_000
MAX_NOTCHES = 100
#: One notch of a wheel in ``unit: "pixels"``.
PIXELS_A_NOTCH = 100

# -- what a field may hold: a check gives the value to keep, or raises ValueError with what it should be ---------------


def _limited(check: Any, low: float, high: float) -> Any:
    """``check`` with its ``limits``, for whoever describes the fields: a number's, or a string's or list's length."""
    check.limits = (low, high)
    return check


def _number(low: float, high: float) -> Any:
    span = f"from {low:.12g} to {high:.12g}"

    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"must be a number {span}")
        # Compared before it is formatted: JSON has whole numbers that no float holds, and NaN is in no range.
        if not low <= value <= high:
            raise ValueError(f"must be {span}" + (f", not {value:.12g}" if abs(value) < 1e12 else ""))
        return value

    return _limited(check, low, high)


def _integer(low: int, high: int) -> Any:
    number = _number(low, high)

    def check(value: Any) -> int:
        if number(value) != int(value):
            raise ValueError(f"must be a whole number, not {value:g}")
        return int(value)

    return _limited(check, low, high)


def _string(low: int, high: int) -> Any:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")
        if not low <= len(value) <= high:
            raise ValueError(f"must have {low} to {high} characters, not {len(value)}")
        return value

    return _limited(check, low, high)


def _one_of(*names: str) -> Any:
    def check(value: Any) -> str:
        if value not in names or not isinstance(value, str):
            raise ValueError(f"must be one of {', '.join(names)}")
        return value

    return check


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _list_of(check_item: Any, low: int, high: int) -> Any:
    def check(value: Any) -> List[Any]:
        if not isinstance(value, (list, tuple)):
            raise ValueError("must be a list")
        if not low <= len(value) <= high:
            span = f"{low} to {high}" if low != high else str(low)
            raise ValueError(f"must have {span} items, not {len(value)}")
        return [check_item(item) for item in value]

    return _limited(check, low, high)


def _point(value: Any) -> Tuple[Number, Number]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError("must hold [x, y] pairs")
    return _POSITION(value[0]), _POSITION(value[1])


# Whether a position is inside its space is the batch's to say, with the range; here it only has to be a number.
_POSITION = _number(-(10**9), 10**9)
_BUTTON = _one_of("left", "middle", "right", "back", "forward")
_MODIFIERS = _list_of(_string(1, 32), 0, 8)
_WINDOW = _integer(1, 0xFFFFFFFF)
_APP = _string(1, 255)


def _required(check: Any) -> Any:
    return field(metadata={"check": check})


def _optional(check: Any, default: Any = None) -> Any:
    if isinstance(default, list):
        return field(default_factory=list, metadata={"check": check})
    return field(default=default, metadata={"check": check})


class _Action:
    """What all actions share. Written once, as dataclasses compile their methods anew for each class and start."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))


# -- the actions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class Click(_Action):
    """Press and release a button, at the pointer when no position is given."""

    x: Optional[Number] = _optional(_POSITION)
    y: Optional[Number] = _optional(_POSITION)
    button: ButtonName = _optional(_BUTTON, "left")
    count: int = _optional(_integer(1, 3), 1)
    modifiers: List[Modifier] = _optional(_MODIFIERS, [])
    action: Literal["click"] = "click"


@dataclass(frozen=True, repr=False, eq=False)
class Move(_Action):
    """Move the pointer."""

    x: Number = _required(_POSITION)
    y: Number = _required(_POSITION)
    action: Literal["move"] = "move"


@dataclass(frozen=True, repr=False, eq=False)
class MouseDown(_Action):
    """Press a button and keep it down for the session's next batches."""

    x: Optional[Number] = _optional(_POSITION)
    y: Optional[Number] = _optional(_POSITION)
    button: ButtonName = _optional(_BUTTON, "left")
    action: Literal["mouse_down"] = "mouse_down"


@dataclass(frozen=True, repr=False, eq=False)
class MouseUp(_Action):
    """Release a button."""

    x: Optional[Number] = _optional(_POSITION)
    y: Optional[Number] = _optional(_POSITION)
    button: ButtonName = _optional(_BUTTON, "left")
    action: Literal["mouse_up"] = "mouse_up"


@dataclass(frozen=True, repr=False, eq=False)
class Drag(_Action):
    """Press at the first point of the path, move through the others, release at the last."""

    path: List[Tuple[Number, Number]] = _required(_list_of(_point, 2, 1000))
    button: ButtonName = _optional(_BUTTON, "left")
    modifiers: List[Modifier] = _optional(_MODIFIERS, [])
    action: Literal["drag"] = "drag"


@dataclass(frozen=True, repr=False, eq=False)
class Scroll(_Action):
    """Turn the wheel: positive ``dy`` is down, positive ``dx`` is right, in notches or (``unit``) in pixels."""

    x: Optional[Number] = _optional(_POSITION)
    y: Optional[Number] = _optional(_POSITION)
    dx: Number = _optional(_number(-MAX_NOTCHES * PIXELS_A_NOTCH, MAX_NOTCHES * PIXELS_A_NOTCH), 0)
    dy: Number = _optional(_number(-MAX_NOTCHES * PIXELS_A_NOTCH, MAX_NOTCHES * PIXELS_A_NOTCH), 0)
    unit: Literal["notches", "pixels"] = _optional(_one_of("notches", "pixels"), "notches")
    modifiers: List[Modifier] = _optional(_MODIFIERS, [])
    action: Literal["scroll"] = "scroll"

    def notches(self) -> Tuple[int, int]:
        """``dx`` and ``dy`` in notches: pixels count 100 a notch, and at least one."""
        if self.unit == "notches":
            return int(self.dx), int(self.dy)
        return _to_notches(self.dx), _to_notches(self.dy)


def _to_notches(value: Number) -> int:
    return int(math.copysign(max(1, round(abs(value) / PIXELS_A_NOTCH)), value)) if value else 0


@dataclass(frozen=True, repr=False, eq=False)
class Type(_Action):
    """Type text exactly. ``secret`` text never reaches a trace, a log or an error."""

    text: str = _required(_string(1, MAX_TEXT))
    secret: bool = _optional(_boolean, False)
    method: Literal["keys", "paste"] = _optional(_one_of("keys", "paste"), "keys")
    action: Literal["type"] = "type"

    def __repr__(self) -> str:
        shown = "•••" if self.secret else self.text
        return f"Type(text={shown!r}, secret={self.secret}, method={self.method!r})"


@dataclass(frozen=True, repr=False, eq=False)
class Key(_Action):
    """Press and release a chord such as ``ctrl+shift+t``, ``repeat`` times."""

    keys: str = _required(_string(1, 200))
    repeat: int = _optional(_integer(1, 100), 1)
    action: Literal["key"] = "key"


@dataclass(frozen=True, repr=False, eq=False)
class HoldKey(_Action):
    """Hold a chord for some seconds. A held key repeats, as on a keyboard."""

    keys: str = _required(_string(1, 200))
    seconds: Number = _required(_number(0, 60))
    action: Literal["hold_key"] = "hold_key"


@dataclass(frozen=True, repr=False, eq=False)
class KeyDown(_Action):
    """Press a chord and keep it down for the session's next batches."""

    keys: str = _required(_string(1, 200))
    action: Literal["key_down"] = "key_down"


@dataclass(frozen=True, repr=False, eq=False)
class KeyUp(_Action):
    """Release a chord."""

    keys: str = _required(_string(1, 200))
    action: Literal["key_up"] = "key_up"


@dataclass(frozen=True, repr=False, eq=False)
class Wait(_Action):
    """Wait some seconds."""

    seconds: Number = _required(_number(0, 60))
    action: Literal["wait"] = "wait"


@dataclass(frozen=True, repr=False, eq=False)
class WaitWindow(_Action):
    """Wait for a window: mapped, viewable and painted; and focused when asked."""

    title: Optional[str] = _optional(_string(1, 1000))
    app: Optional[str] = _optional(_APP)
    focused: bool = _optional(_boolean, False)
    timeout: Number = _optional(_number(0, 60), 10)
    action: Literal["wait_window"] = "wait_window"


@dataclass(frozen=True, repr=False, eq=False)
class Launch(_Action):
    """Open an application by the name or id of its desktop entry, and wait for its window."""

    app: str = _required(_APP)
    keep_open: bool = _optional(_boolean, False)
    timeout: Number = _optional(_number(0.1, 60), 10)
    action: Literal["launch"] = "launch"


@dataclass(frozen=True, repr=False, eq=False)
class Quit(_Action):
    """Ask an application, or one window, to close. ``force`` ends what this project launched."""

    app: Optional[str] = _optional(_APP)
    window: Optional[int] = _optional(_WINDOW)
    force: bool = _optional(_boolean, False)
    timeout: Number = _optional(_number(0, 60), 5)
    action: Literal["quit"] = "quit"


@dataclass(frozen=True, repr=False, eq=False)
class Focus(_Action):
    """Activate a window."""

    window: int = _required(_WINDOW)
    action: Literal["focus"] = "focus"


@dataclass(frozen=True, repr=False, eq=False)
class Close(_Action):
    """Ask a window to close."""

    window: int = _required(_WINDOW)
    action: Literal["close"] = "close"


@dataclass(frozen=True, repr=False, eq=False)
class Resize(_Action):
    """Move and resize a window; what is not given stays."""

    window: int = _required(_WINDOW)
    x: Optional[int] = _optional(_integer(-32768, 32767))
    y: Optional[int] = _optional(_integer(-32768, 32767))
    width: Optional[int] = _optional(_integer(1, 32767))
    height: Optional[int] = _optional(_integer(1, 32767))
    action: Literal["resize"] = "resize"


@dataclass(frozen=True, repr=False, eq=False)
class ClipboardSet(_Action):
    """Put text on the clipboard."""

    text: str = _required(_string(0, 10 * MAX_TEXT))
    action: Literal["clipboard_set"] = "clipboard_set"


@dataclass(frozen=True, repr=False, eq=False)
class ClipboardGet(_Action):
    """Read the clipboard's text."""

    action: Literal["clipboard_get"] = "clipboard_get"


@dataclass(frozen=True, repr=False, eq=False)
class Zoom(_Action):
    """The answer's picture is this region, at full detail. The coordinate space does not change."""

    region: List[Number] = _required(_list_of(_POSITION, 4, 4))
    action: Literal["zoom"] = "zoom"


@dataclass(frozen=True, repr=False, eq=False)
class CursorPosition(_Action):
    """Where the pointer is."""

    action: Literal["cursor_position"] = "cursor_position"


@dataclass(frozen=True, repr=False, eq=False)
class Screenshot(_Action):
    """The answer's picture is the whole screen."""

    action: Literal["screenshot"] = "screenshot"


Action = Union[
    Click, Move, MouseDown, MouseUp, Drag, Scroll, Type, Key, HoldKey, KeyDown, KeyUp, Wait, WaitWindow, Launch, Quit,
    Focus, Close, Resize, ClipboardSet, ClipboardGet, Zoom, CursorPosition, Screenshot,
]  # fmt: skip
KINDS: Dict[str, Any] = {kind.__dataclass_fields__["action"].default: kind for kind in Action.__args__}  # type: ignore[attr-defined]
