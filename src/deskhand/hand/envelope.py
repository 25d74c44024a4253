"""The envelope of a batch: from JSON to checked values, with no display needed.

``{"actions": [1 to 100], "space", "expect"?, "settle": {"mode", "timeout", "strict"}, "picture": false | true |
{"format", "max_edge"?, "region"?}}``: one form everywhere. Anything unknown or out of range is refused whole.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Dict, Iterable, List, Optional

from .actions import KINDS, MAX_ACTIONS, Action, Resize, WaitWindow, _boolean, _integer, _number
from .coordinates import check_space
from .errors import BatchRefused
from .picture import FORMATS

SETTLE_MODES = ("quiet", "fixed", "none")


@dataclass(frozen=True)
class SettleWish:
    """``quiet``: until the screen stops changing; ``fixed``: exactly ``timeout`` seconds; ``none``: not at all."""

    mode: str = "quiet"
    timeout: float = 2.0
    strict: bool = False


@dataclass(frozen=True)
class PictureWish:
    """What picture the answer carries. ``region`` is in the batch's space."""

    format: str = "png"
    max_edge: Optional[int] = None
    region: Optional[List[float]] = None
    cursor: bool = False


@dataclass(frozen=True)
class Expect:
    """Guards: the newest picture given out, and the window that must be active or under the pointer."""

    sequence: Optional[int] = None
    window: Optional[int] = None


@dataclass(frozen=True)
class Batch:
    """A checked batch. ``picture`` None means that none is wanted."""

    actions: List[Action]
    space: Any = "screen"
    expect: Expect = field(default_factory=Expect)
    settle: SettleWish = field(default_factory=SettleWish)
    picture: Optional[PictureWish] = None


def parse_batch(request: Any) -> Batch:
    """The batch an envelope asks for.

    Raises:
        BatchRefused: names the action (``index``) or the field that is wrong, and what it should be.
    """
    if not isinstance(request, dict):
        raise BatchRefused('a batch is an object: {"actions": [...], "space": "screen", "picture": false}')
    _known(request, ("actions", "space", "expect", "settle", "picture"), "the batch")
    space = request.get("space", "screen")
    try:
        check_space(space)
    except ValueError as error:
        raise BatchRefused(str(error)) from None
    return Batch(
        parse_actions(request.get("actions")),
        space,
        _parse_expect(request.get("expect")),
        _parse_settle(request.get("settle")),
        _parse_picture(request.get("picture", False)),
    )


def parse_actions(value: Any) -> List[Action]:
    """A list of 1 to 100 actions as JSON objects.

    Raises:
        BatchRefused: with ``index``, when one of them is not as it should be.
    """
    if not isinstance(value, list):
        raise BatchRefused("a batch needs a list of actions")
    if not 1 <= len(value) <= MAX_ACTIONS:
        raise BatchRefused(f"a batch has 1 to {MAX_ACTIONS} actions, not {len(value)}: send it in parts")
    return [parse_action(item, index) for index, item in enumerate(value)]


def parse_action(value: Any, index: int = 0) -> Action:
    """One action from its JSON object; ``index`` is its place in the batch, for the error."""
    where = f"action {index}"
    if not isinstance(value, dict) or not isinstance(value.get("action"), str):
        raise BatchRefused(f'{where} must be an object with an "action", such as {{"action": "screenshot"}}', index)
    name = value["action"]
    kind = KINDS.get(name)
    if kind is None:
        raise BatchRefused(f"{where}: there is no action {_short(name)}{_nearest(name, KINDS)}", index)
    where += f" ({name})"
    specs = {spec.name: spec for spec in fields(kind) if spec.name != "action"}
    given: Dict[str, Any] = {}
    for key, item in value.items():
        if key == "action":
            continue
        if key not in specs:
            raise BatchRefused(f"{where} has no field {_short(key)}{_nearest(key, specs)}", index)
        optional = specs[key].default is None
        if item is None and optional:
            continue
        try:
            given[key] = specs[key].metadata["check"](item)
        except ValueError as error:
            raise BatchRefused(f"{where}: {key} {error}", index) from None
    for key, spec in specs.items():
        if key not in given and spec.default is MISSING and spec.default_factory is MISSING:
            raise BatchRefused(f"{where} needs {key}", index)
    action: Action = kind(**given)
    _check_together(action, where, index)
    return action


def _check_together(action: Any, where: str, index: int) -> None:
    """What holds between the fields of one action."""
    if hasattr(action, "x") and not isinstance(action, Resize) and (action.x is None) != (action.y is None):
        raise BatchRefused(f"{where} needs both x and y, or neither", index)
    if isinstance(action, WaitWindow) and action.title is None and action.app is None:
        raise BatchRefused(f"{where} needs title or app", index)
    if isinstance(action, Resize) and {action.x, action.y, action.width, action.height} == {None}:
        raise BatchRefused(f"{where} needs one of x, y, width, height", index)
    if action.action == "quit" and (action.app is None) == (action.window is None):
        raise BatchRefused(f"{where} needs app or window, one of them", index)
    if action.action == "scroll":
        limit = 100 if action.unit == "notches" else 10_000
        if action.unit == "notches" and not all(float(v).is_integer() for v in (action.dx, action.dy)):
            raise BatchRefused(f"{where}: dx and dy are whole notches", index)
        if max(abs(action.dx), abs(action.dy)) > limit:
            raise BatchRefused(f"{where}: dx and dy must be from {-limit} to {limit} {action.unit}", index)
        if action.dx == action.dy == 0:
            raise BatchRefused(f"{where} needs dx or dy (positive dy is down)", index)


def _parse_settle(value: Any) -> SettleWish:
    if value is None:
        return SettleWish()
    if not isinstance(value, dict):
        raise BatchRefused('settle must be an object: {"mode": "quiet", "timeout": 2.0}')
    _known(value, ("mode", "timeout", "strict"), "settle")
    mode = value.get("mode", "quiet")
    if mode not in SETTLE_MODES:
        raise BatchRefused(f"settle: mode must be one of {', '.join(SETTLE_MODES)}")
    timeout = _checked("settle: timeout", _number(0, 60), value.get("timeout", 2.0))
    return SettleWish(mode, float(timeout), _checked("settle: strict", _boolean, value.get("strict", False)))


def _parse_picture(value: Any) -> Optional[PictureWish]:
    if value is False or value is None:
        return None
    if value is True:
        return PictureWish()
    if not isinstance(value, dict):
        raise BatchRefused('picture must be true, false or an object: {"format": "png", "max_edge": 1280}')
    _known(value, ("format", "max_edge", "region", "cursor"), "picture")
    form = value.get("format", "png")
    if form not in FORMATS:
        raise BatchRefused(f"picture: format must be one of {', '.join(FORMATS)}")
    edge, region = value.get("max_edge"), value.get("region")
    if edge is not None:
        edge = _checked("picture: max_edge", _integer(16, 16384), edge)
    if region is not None:
        if not isinstance(region, list) or len(region) != 4:
            raise BatchRefused("picture: region must be [x0, y0, x1, y1]")
        region = [_checked("picture: region", _number(0, 1e6), corner) for corner in region]
    return PictureWish(form, edge, region, _checked("picture: cursor", _boolean, value.get("cursor", False)))


def _parse_expect(value: Any) -> Expect:
    if value is None:
        return Expect()
    if not isinstance(value, dict):
        raise BatchRefused('expect must be an object: {"sequence": 7} or {"window": 12345}')
    _known(value, ("sequence", "window"), "expect")
    sequence, window = value.get("sequence"), value.get("window")
    if sequence is not None:
        sequence = _checked("expect: sequence", _integer(0, 1 << 53), sequence)
    if window is not None:
        window = _checked("expect: window", _integer(1, 0xFFFFFFFF), window)
    return Expect(sequence, window)


def _checked(name: str, check: Any, value: Any) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise BatchRefused(f"{name} {error}") from None


def _known(value: Dict[Any, Any], names: Iterable[str], where: str) -> None:
    for key in value:
        if key not in names:
            raise BatchRefused(f"{where} has no field {_short(key)}{_nearest(key, names)}")


def _nearest(name: Any, names: Iterable[str]) -> str:
    import difflib

    names = list(names)
    if not names:
        return ": it takes none"
    near = difflib.get_close_matches(str(name)[:100], names, 1, 0.5)
    return f": did you mean {near[0]!r}?" if near else f": use one of {', '.join(names)}"


def _short(name: Any) -> str:
    text = repr(str(name))
    return text if len(text) <= 60 else text[:60] + "...'"
