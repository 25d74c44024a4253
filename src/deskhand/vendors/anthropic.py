"""Anthropic's computer use: the tools ``computer_20250124`` and ``computer_20251124``, and the toolset
``computer_toolset_20260801``, whose verbs are tool calls of their own, several a turn.

Read in the ``anthropic`` SDK 2.14.0: ``types/beta/beta_computer_*_input.py`` (the fields of each verb),
``types/beta/beta_tool_computer_use_*_param.py``, ``lib/tools/_toolsets`` (what the model reads after each verb, the
text for calls that were not run, which verbs want a person's yes). The older tools' verbs have no types there: Claude
API documentation, Computer use tool, Available actions.

Positions are pixels of the last picture of the whole screen; a ``zoom`` does not change that. ``scroll_amount`` counts
notches.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from deskhand.backends.base import Outcome
from deskhand.errors import BatchRefused
from deskhand.hand.coordinates import Space
from deskhand.pictures import ANTHROPIC, ANTHROPIC_HIGH_RESOLUTION, Limits, Size
from deskhand.vendors.base import Adapter, Ask, Turn
from deskhand.vendors.chat import media_type
from deskhand.vendors.fields import Fields, plain
from deskhand.vendors.results import CallResult
from deskhand.vendors.verbs import Action, Verb, Verbs, drag_from_pointer, modifiers, scroll_by

#: What the API documents for a call that was not run, word for word (SDK, lib/tools/_toolsets/_runnable.py, HALT_TEXT).
HALTED = "Not executed: an earlier computer action in this turn failed."
NOT_SENT = "Not executed: another computer action in this turn was refused, so nothing was sent. Send it again."
#: The verbs for which the SDK's own toolset wants a ``confirm`` (_computer_registry.py, CONFIRM_REQUIRED).
CONFIRM_REQUIRED = frozenset({"type", "key", "hold_key"})
DIRECTIONS = ("up", "down", "left", "right")
MAX_SECONDS = 60

#: What the model reads after a verb that was carried out (_computer_registry.py, ROWS).
_DONE = {
    "key": "Pressed {text}.",
    "hold_key": "Held {text} for {duration}s.",
    "type": "Typed.",
    "mouse_move": "Moved the mouse.",
    "left_mouse_down": "Left mouse button pressed.",
    "left_mouse_up": "Left mouse button released.",
    "left_click": "Clicked.",
    "left_click_drag": "Dragged.",
    "right_click": "Right-clicked.",
    "middle_click": "Middle-clicked.",
    "double_click": "Double-clicked.",
    "triple_click": "Triple-clicked.",
    "scroll": "Scrolled {scroll_direction}.",
    "wait": "Waited {duration}s.",
}

VERBS = Verbs()


@VERBS.add("key", gives="key", takes="text repeat?")
def _key(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "key", "keys": fields.string("text"), "repeat": fields.integer("repeat", 1, 1, 100)}]


@VERBS.add("hold_key", gives="hold_key", takes="text duration")
def _hold_key(adapter: Adapter, fields: Fields) -> list[Action]:
    """at most 60 s a call"""
    return [{"action": "hold_key", "keys": fields.string("text"), "seconds": fields.number("duration", low=0, high=60)}]


@VERBS.add("type", gives="type", takes="text")
def _type(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "type", "text": fields.string("text")}]


@VERBS.add("cursor_position", gives="cursor_position")
def _cursor_position(adapter: Adapter, fields: Fields) -> list[Action]:
    """answered in pixels of the picture"""
    return [{"action": "cursor_position"}]


@VERBS.add("mouse_move", gives="move", takes="coordinate")
def _mouse_move(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "move", **fields.pair("coordinate")}]


@VERBS.add("left_mouse_down", gives="mouse_down")
def _left_mouse_down(adapter: Adapter, fields: Fields) -> list[Action]:
    """where the pointer is"""
    return [{"action": "mouse_down"}]


@VERBS.add("left_mouse_up", gives="mouse_up")
def _left_mouse_up(adapter: Adapter, fields: Fields) -> list[Action]:
    """where the pointer is"""
    return [{"action": "mouse_up"}]


_CLICKS = {"left_click": ("left", 1), "right_click": ("right", 1), "middle_click": ("middle", 1)} | {
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}


@VERBS.add(*_CLICKS, gives="click", takes="coordinate? text?")
def _click(adapter: Adapter, fields: Fields) -> list[Action]:
    """`text`: keys held"""
    button, count = _CLICKS[fields.verb]
    at = fields.pair("coordinate", None)
    return [{"action": "click", **at, "button": button, "count": count, **_held(adapter, fields)}]


@VERBS.add("left_click_drag", gives="drag", takes="start_coordinate coordinate text?")
def _left_click_drag(adapter: Adapter, fields: Fields) -> list[Action]:
    """`text`: keys held"""
    start, end = fields.pair("start_coordinate"), fields.pair("coordinate")
    path = [[start["x"], start["y"]], [end["x"], end["y"]]]
    return [{"action": "drag", "path": path, **modifiers(fields.verb, fields.string("text", None))}]


@VERBS.add("scroll", gives="scroll", takes="scroll_direction scroll_amount coordinate? text?")
def _scroll(adapter: Adapter, fields: Fields) -> list[Action]:
    """notches, at most 100; `text`: keys held"""
    direction = fields.one_of("scroll_direction", DIRECTIONS)
    by = scroll_by(direction, fields.integer("scroll_amount", low=1, high=100))
    return [{"action": "scroll", **fields.pair("coordinate", None), **by, **_held(adapter, fields)}]


@VERBS.add("wait", gives="wait", takes="duration")
def _wait(adapter: Adapter, fields: Fields) -> list[Action]:
    """at most 60 s a call"""
    return [{"action": "wait", "seconds": fields.number("duration", low=0, high=MAX_SECONDS)}]


@VERBS.add("screenshot", gives="screenshot")
def _screenshot(adapter: Adapter, fields: Fields) -> list[Action]:
    return [{"action": "screenshot"}]


@VERBS.add("zoom", gives="zoom", takes="region")
def _zoom(adapter: Adapter, fields: Fields) -> list[Action]:
    """full detail; positions stay those of the whole picture"""
    return [{"action": "zoom", "region": fields.integers("region", 4)}]


def _held(adapter: Adapter, fields: Fields) -> dict[str, Any]:
    chord = fields.string("text", None)
    if isinstance(adapter, Tool):  # Anthropic's reference loop for the older tools calls it "key" in a click
        key = fields.string("key", None)
        if key is not None and chord is not None:
            raise fields.refusal("text and key both name keys to hold: use text")
        chord = chord if key is None else key
    return modifiers(fields.verb, chord)


def _older_drag(adapter: Adapter, fields: Fields) -> list[Action]:
    """without `start_coordinate`: from the pointer; `text`: keys held"""
    if fields.has("start_coordinate"):
        return _left_click_drag(adapter, fields)
    fields.take("start_coordinate", None)
    if fields.has("text"):
        raise fields.refusal("text needs start_coordinate: say where the drag starts")
    return drag_from_pointer(**fields.pair("coordinate"))


_OLDER = Verbs({name: verb for name, verb in VERBS.items() if name != "zoom"})
_OLDER["left_click_drag"] = Verb(
    "left_click_drag", _older_drag, ("drag", "mouse_down", "move", "mouse_up"),
    "start_coordinate? coordinate text?", " ".join(str(_older_drag.__doc__).split()),
)  # fmt: skip


class _Anthropic(Adapter):
    """What the tools and the toolset share.

    Args:
        screen: The root window's width and height in pixels.
        limits: What pictures the model takes, when it is not the tool's default.
        confirm: The verbs that a person has to allow, each call; none by default.
    """

    vendor = "Anthropic"
    tool = "computer"

    def __init__(self, screen: Size, limits: Limits | None = None, confirm: Collection[str] = ()) -> None:
        super().__init__(screen, limits)
        self.confirm = frozenset(confirm)

    def _is_call(self, block: dict[str, Any]) -> bool:
        raise NotImplementedError

    def _verb(self, block: dict[str, Any]) -> tuple[Any, Any]:
        raise NotImplementedError

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        return [block for block in _blocks(reply) if block.get("type") == "tool_use" and self._is_call(block)]

    def read(self, reply: Any) -> Turn:
        calls = self.calls(reply)
        steps = [self._step(number, *self._verb(block)) for number, block in enumerate(calls)]
        turn = Turn(calls, [step.verb for step in steps], self._parts(steps))
        turn.say = "\n".join(str(block.get("text", "")) for block in _blocks(reply) if block.get("type") == "text")
        turn.asks = [
            Ask(step.call, step.verb, "anthropic confirm", f"the model wants to use {step.verb}", calls[step.call])
            for step in steps
            if step.verb in self.confirm
        ]
        return turn

    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """Blocks for one user message: a ``tool_result`` for every call, then the picture of a failure, which may not
        stand in a result that is an error.
        """
        blocks: list[dict[str, Any]] = []
        beside: list[dict[str, Any]] = []
        failed = False
        for call, result in zip(turn.calls, results, strict=False):
            block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.get("id")}
            if call.get("toolset_name"):
                block["toolset_name"] = call["toolset_name"]
            pictures = [image(result.picture)] if result.picture is not None else []
            if result.ok:
                text = self._done(call, result)
                block["content"] = [{"type": "text", "text": line} for line in (text, result.text) if line] + pictures
            else:
                failed = failed or result.status == "failed"
                skipped = HALTED if result.status == "skipped" or (failed and result.status == "not sent") else NOT_SENT
                text = (result.text or "It did not work.") if result.status == "failed" else skipped
                block.update(content=[{"type": "text", "text": text}], is_error=True)
                beside += pictures
            blocks.append(block)
        return blocks + beside

    def _done(self, call: dict[str, Any], result: CallResult) -> str:
        if result.verb == "cursor_position" and result.actions:
            x, y = Space(self.space, self.screen).back(*result.actions[0]["point"])
            return f"X={x},Y={y}"
        if result.verb in ("screenshot", "zoom"):
            return ""
        given = {"text": "", "duration": "", "scroll_direction": "", **(call.get("input") or {})}
        return " ".join(_DONE.get(result.verb, "Done.").format(**given).split())


class Tool(_Anthropic):
    """One tool whose ``action`` field names the verb: ``version`` is ``20250124`` or ``20251124`` (which adds zoom)."""

    source = "anthropic 2.14.0 (tool parameters), Claude API documentation (verbs)"
    verbs = _OLDER
    default_limits = ANTHROPIC

    def __init__(
        self, screen: Size, version: str = "20251124", limits: Limits | None = None, confirm: Collection[str] = ()
    ) -> None:
        if version not in ("20250124", "20251124"):
            raise ValueError("version must be 20250124 or 20251124; the toolset 20260801 has a class of its own")
        super().__init__(screen, limits, confirm)
        self.version = version
        #: What the request's ``betas`` must hold (SDK, types/anthropic_beta_param.py).
        self.betas = [f"computer-use-{version[:4]}-{version[4:6]}-{version[6:]}"]

    def tools(self) -> list[dict[str, Any]]:
        width, height = self.picture
        tool = {"type": f"computer_{self.version}", "name": "computer"}
        zoom = {"enable_zoom": True} if self.version == "20251124" else {}
        return [{**tool, "display_width_px": width, "display_height_px": height, **zoom}]

    def _is_call(self, block: dict[str, Any]) -> bool:
        return block.get("name") == "computer" and not block.get("toolset_name")

    def _verb(self, block: dict[str, Any]) -> tuple[Any, Any]:
        given = block.get("input")
        if not isinstance(given, dict):
            raise BatchRefused("computer: its input must be an object with an action")
        return given.get("action"), {key: value for key, value in given.items() if key != "action"}

    def _step(self, number: int, name: Any, given: Any, verbs: Verbs | None = None) -> Any:
        return super()._step(number, name, given, _OLDER_ZOOM if self.version == "20251124" else _OLDER)


_OLDER_ZOOM = Verbs({**_OLDER, "zoom": VERBS["zoom"]})


class Toolset(_Anthropic):
    """The toolset ``computer_toolset_20260801``: each verb is a tool call with ``toolset_name`` ``computer``.

    ``disabled`` names verbs that the model is not offered, and that are refused when it calls them anyway.
    """

    source = "anthropic 2.14.0"
    verbs: ClassVar[Verbs] = VERBS
    default_limits = ANTHROPIC_HIGH_RESOLUTION

    def __init__(
        self,
        screen: Size,
        limits: Limits | None = None,
        confirm: Collection[str] = (),
        disabled: Collection[str] = (),
    ) -> None:
        super().__init__(screen, limits, confirm)
        unknown = sorted(set(disabled) - set(VERBS))
        if unknown:
            raise ValueError(f"there is no verb {unknown[0]!r}: use some of {', '.join(VERBS)}")
        self.disabled = frozenset(disabled)

    def tools(self) -> list[dict[str, Any]]:
        tool: dict[str, Any] = {"type": "computer_toolset_20260801"}
        if self.disabled:
            tool["configs"] = {name: {"enabled": False} for name in sorted(self.disabled)}
        return [tool]

    def _is_call(self, block: dict[str, Any]) -> bool:
        return block.get("toolset_name") == "computer"

    def _verb(self, block: dict[str, Any]) -> tuple[Any, Any]:
        return block.get("name"), block.get("input")

    def _step(self, number: int, name: Any, given: Any, verbs: Verbs | None = None) -> Any:
        if isinstance(name, str) and name in self.disabled:
            raise BatchRefused(
                f"The '{name}' action is not permitted by this application's permissions and cannot be used in this"
                " session.",
                number,
            )
        return super()._step(number, name, given, verbs)


def _blocks(reply: Any) -> list[dict[str, Any]]:
    """The content blocks of a message, or of a list of them."""
    value = plain(reply)
    if isinstance(value, dict):
        value = value.get("content", [value])
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [block for block in value if isinstance(block, dict)] if isinstance(value, list) else []


def image(picture: bytes) -> dict[str, Any]:
    """A picture as a content block."""
    data = base64.b64encode(picture).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media_type(picture), "data": data}}
