"""What a wait was worth: is the picture taken then the one that is there three seconds later?

*near*: at most three regions differ, each of at most 16x40 pixels. *cosmetic*: besides those, at most three vertical
strips of at most 16 pixels' width (a scroll bar that fades). Regions are connected tiles of 8x8 pixels, so that the
sizes are 2x5 tiles and two columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from .traces import TILES_A_ROW, Trace

LATER = 3.0
#: What a step costs beside the wait: input, picture, encoding. Seconds.
STEP = 0.020
#: The fixed wait that the others are compared with, and the bound of all of them. Seconds.
FIXED = 2.0
SMALL_REGIONS, SMALL_WIDTH, SMALL_HEIGHT = 3, 2, 5
STRIPS, STRIP_WIDTH = 3, 2


class Size(NamedTuple):
    """Of a region, in tiles."""

    width: int
    height: int


def regions(tiles: Sequence[int]) -> list[Size]:
    """Sizes of the connected regions (corners connect) that ``tiles`` form."""
    left = set(tiles)
    found = []
    while left:
        first = left.pop()
        edge, region = [first], [first]
        while edge:
            row, column = divmod(edge.pop(), TILES_A_ROW)
            for y in (row - 1, row, row + 1):
                for x in (column - 1, column, column + 1):
                    tile = y * TILES_A_ROW + x
                    if 0 <= x < TILES_A_ROW and tile in left:
                        left.remove(tile)
                        edge.append(tile)
                        region.append(tile)
        columns = [tile % TILES_A_ROW for tile in region]
        rows = [tile // TILES_A_ROW for tile in region]
        found.append(Size(max(columns) - min(columns) + 1, max(rows) - min(rows) + 1))
    return found


def differing(trace: Trace, at: float, later: float = LATER) -> list[int]:
    """Tiles whose content at ``at`` is not the one ``later`` seconds after that."""
    differ = []
    for tile, (times, contents) in _timelines(trace).items():
        if contents[bisect_right(times, at)] != contents[bisect_right(times, at + later)]:
            differ.append(tile)
    return differ


def near(trace: Trace, at: float) -> bool:
    """Is the picture at ``at`` near the one three seconds later?"""
    return is_near(differing(trace, at))


def cosmetic(trace: Trace, at: float) -> bool:
    """Is it, a fading scroll bar forgiven too?"""
    return is_cosmetic(differing(trace, at))


def is_near(tiles: Sequence[int]) -> bool:
    """Are two pictures near that differ in these tiles?"""
    small, larger = _small_and_larger(tiles)
    return small <= SMALL_REGIONS and not larger


def is_cosmetic(tiles: Sequence[int]) -> bool:
    """Is what differs between two pictures, in these tiles, cosmetic?"""
    small, larger = _small_and_larger(tiles)
    return small <= SMALL_REGIONS and len(larger) <= STRIPS and all(size.width <= STRIP_WIDTH for size in larger)


def clairvoyant(trace: Trace, measure: str = "cosmetic", bound: float = FIXED) -> float:
    """The first time at which the picture is right; ``bound`` where it is at none. Nothing can wait less."""
    right = near if measure == "near" else cosmetic
    for at in (0.0, *(frame.time for frame in trace.frames)):
        if at <= bound and right(trace, at):
            return at
    return bound


def steady(trace: Trace, measure: str = "cosmetic", bound: float = FIXED) -> float:
    """The first time from which the picture stays right; what the best policy without luck would wait.

    ``clairvoyant`` also stops before a change that comes and goes again, which nobody can know.
    """
    right = near if measure == "near" else cosmetic
    since: float | None = None
    for at in (0.0, *(frame.time for frame in trace.frames if frame.time <= bound)):
        if not right(trace, at):
            since = None
        elif since is None:
            since = at
    return bound if since is None else since


def against_fixed(waits: Sequence[float], fixed: float = FIXED + STEP) -> float:
    """How many times the steps an hour of a fixed way whose whole step takes ``fixed`` seconds."""
    return fixed * len(waits) / sum(wait + STEP for wait in waits)


def _small_and_larger(tiles: Sequence[int]) -> tuple[int, list[Size]]:
    sizes = regions(tiles)
    larger = [size for size in sizes if size.width > SMALL_WIDTH or size.height > SMALL_HEIGHT]
    return len(sizes) - len(larger), larger


def _timelines(trace: Trace) -> dict[int, tuple[list[float], list[int | None]]]:
    return _timelines_of(_Same(trace))


class _Same:
    """A trace as a key: the object itself, as comparing its contents would cost more than the look-up saves."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __hash__(self) -> int:
        return id(self.trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.trace is self.trace


@lru_cache(maxsize=1024)
def _timelines_of(key: _Same) -> dict[int, tuple[list[float], list[int | None]]]:
    """For each tile that ever changes: when, and its contents, one more than the times."""
    lines: dict[int, tuple[list[float], list[int | None]]] = {}
    for frame in key.trace.frames:
        for tile, content in zip(frame.tiles, frame.contents, strict=True):
            times, contents = lines.setdefault(tile, ([], [key.trace.base.get(tile)]))
            times.append(frame.time)
            contents.append(content)
    return lines
