"""Where on a picture an action acted: positions of the agent's space to pixels of the picture it looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Point = tuple[float, float]

_ON_A_POINT = frozenset({"click", "move", "mouse_down", "mouse_up", "scroll"})


@dataclass(frozen=True)
class View:
    """The part of the screen that a picture shows.

    ``left`` and ``top`` are screen pixels; ``scale`` is picture pixels for one screen pixel.
    """

    left: float = 0.0
    top: float = 0.0
    scale: float = 1.0

    def centre(self, x: float, y: float) -> Point:
        """The middle of screen pixel (x, y), in picture pixels."""
        return ((x + 0.5 - self.left) * self.scale, (y + 0.5 - self.top) * self.scale)

    def rect(self, x: float, y: float, width: float, height: float) -> list[float]:
        """A rectangle of screen pixels as ``[x, y, width, height]`` in picture pixels."""
        scale = self.scale
        return [(x - self.left) * scale, (y - self.top) * scale, width * scale, height * scale]


@dataclass(frozen=True)
class Space:
    """The coordinate space of one batch (Actions, batches, sessions: One action model), and the screen's size."""

    space: Any
    screen: tuple[int, int] | None

    def to_screen(self, x: float, y: float) -> Point | None:
        """A position of the space in screen pixels; None when the screen's size would be needed and is not known."""
        if self.space in (None, "screen"):
            return (x, y)
        if self.screen is None or not isinstance(self.space, Mapping):
            return None
        width, height = self.screen
        size = numbers(self.space.get("picture"), 2)
        if size is not None and min(size) > 0:
            return (x * width / size[0], y * height / size[1])
        grid = self.space.get("grid")
        if isinstance(grid, (int, float)) and grid > 0:
            return (x * (width - 1) / grid, y * (height - 1) / grid)
        return None


def numbers(value: Any, count: int) -> list[float] | None:
    """``value`` when it is a sequence of ``count`` numbers, else None."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != count:
        return None
    if any(isinstance(item, bool) or not isinstance(item, (int, float)) for item in value):
        return None
    return [float(item) for item in value]


def zoomed_region(envelope: Mapping[str, Any], answer: Mapping[str, Any], space: Space) -> list[float] | None:
    """The region of the screen that the answer's picture shows, ``[x0, y0, x1, y1]`` in screen pixels; None: all."""
    facts = answer.get("picture")
    if isinstance(facts, Mapping) and "region" in facts:
        return numbers(facts["region"], 4)
    asked = envelope.get("picture")
    region = numbers(asked.get("region"), 4) if isinstance(asked, Mapping) else None
    # The last of a batch's zooms is what the picture shows (Actions, batches, sessions: `zoom`).
    for action, result in zip(_list(envelope.get("actions")), _list(answer.get("results")), strict=False):
        if isinstance(action, Mapping) and action.get("action") == "zoom" and _status(result) == "ok":
            region = numbers(action.get("region"), 4)
    if region is None:
        return None
    ends = (space.to_screen(*region[:2]), space.to_screen(*region[2:]))
    return [*ends[0], *ends[1]] if ends[0] and ends[1] else None


def marks_of(envelope: Mapping[str, Any], answer: Mapping[str, Any], space: Space, view: View) -> list[dict[str, Any]]:
    """What to draw on the picture of ``view`` for each action that has a place.

    A mark is ``{"n", "kind", "status", "points": [[x, y], ...], ...}`` in picture pixels, ``n`` the action's number
    from 1. The place an answer reports wins over the one that was asked for, because it is where it happened.
    """
    results = _list(answer.get("results"))
    marks: list[dict[str, Any]] = []
    for index, action in enumerate(_list(envelope.get("actions"))):
        if not isinstance(action, Mapping):
            continue
        kind = action.get("action")
        result = results[index] if index < len(results) else None
        mark: dict[str, Any] = {"n": index + 1, "kind": kind, "status": _status(result)}
        if kind == "zoom":
            region = numbers(action.get("region"), 4)
            ends = region and (space.to_screen(*region[:2]), space.to_screen(*region[2:]))
            if not ends or not ends[0] or not ends[1]:
                continue
            (x0, y0), (x1, y1) = ends[0], ends[1]
            mark["rect"] = view.rect(x0, y0, x1 - x0, y1 - y0)
        elif kind == "drag":
            path = _path(result) or [space.to_screen(*p) for p in map(_pair, _list(action.get("path"))) if p]
            known = [p for p in path if p is not None]
            if len(known) < 2:
                continue
            mark["points"] = [view.centre(*p) for p in known]
        elif kind in _ON_A_POINT:
            point = _point(result) or _asked(action, space)
            if point is None:
                continue
            mark["points"] = [view.centre(*point)]
            if kind == "scroll":
                mark["way"] = [_sign(action.get("dx")), _sign(action.get("dy"))]
            elif kind == "click" and isinstance(action.get("count"), int):
                mark["count"] = action["count"]
        else:
            continue
        marks.append(mark)
    return marks


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _status(result: Any) -> str:
    return str(result.get("status", "none")) if isinstance(result, Mapping) else "none"


def _pair(value: Any) -> Point | None:
    pair = numbers(value, 2)
    return (pair[0], pair[1]) if pair else None


def _point(result: Any) -> Point | None:
    return _pair(result.get("point")) if isinstance(result, Mapping) else None


def _path(result: Any) -> list[Point | None]:
    return [_pair(p) for p in _list(result.get("path"))] if isinstance(result, Mapping) else []


def _asked(action: Mapping[str, Any], space: Space) -> Point | None:
    pair = _pair([action.get("x"), action.get("y")])
    return space.to_screen(*pair) if pair else None


def _sign(value: Any) -> int:
    return (value > 0) - (value < 0) if isinstance(value, (int, float)) else 0
