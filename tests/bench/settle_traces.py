"""Traces made by hand, and the recorded ones among the test data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.settle.traces import TILE, TILES_A_ROW, Event, Frame, Ping, Trace, read

DATA = Path(__file__).parents[1] / "data" / "settle"
Box = tuple[int, int, int, int]


def recorded(kind: str) -> Trace:
    """The trace of that kind among the test data."""
    (trace,) = read(DATA / f"{kind}.json.xz")
    return trace


def tiles(box: Box) -> tuple[int, ...]:
    x, y, width, height = box
    rows = range(y // TILE, (y + height - 1) // TILE + 1)
    columns = range(x // TILE, (x + width - 1) // TILE + 1)
    return tuple(row * TILES_A_ROW + column for row in rows for column in columns)


def frame(time: float, box: Box, content: int | None = None, pixels: int | None = None) -> Frame:
    """All of ``box`` changes; its content is the frame's own unless one is given."""
    places = tiles(box)
    number = round(time * 10_000) + 1_000_000 if content is None else content
    return Frame(time, box[2] * box[3] if pixels is None else pixels, box, places, (number,) * len(places))


def trace(
    frames: Sequence[Frame] = (),
    action: str = "click",
    pings: Sequence[tuple[float, float]] = ((0.0, 0.01),),
    events: Sequence[Event] = (),
    kind: str = "made",
    **other: Any,
) -> Trace:
    """A trace in which every tile is 0 before it changes; ``pings`` are [sent, answered]."""
    return Trace(
        kind=kind,
        action=action,
        repeat=0,
        loaded=False,
        frames=tuple(frames),
        pings=tuple(Ping(sent, answered, 1, "A") for sent, answered in pings),
        events=tuple(events),
        damage=tuple((change.time, *change.box) for change in frames),
        base={tile: 0 for change in frames for tile in change.tiles},
        **{"tty": None, **other},
    )


def mapped(time: float, box: Box, window: int = 7, override_redirect: bool = False) -> Event:
    return Event(time, "Map", (window, list(box), override_redirect))
