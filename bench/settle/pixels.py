"""What differs between looks at a screen: pixels, their bounding box, and the tiles with their contents."""

from __future__ import annotations

from collections.abc import Iterable
from operator import ne
from typing import Protocol

from deskhand.hand.screen import Capture

from .traces import TILE, TILES_A_ROW, Frame


class Look(Protocol):
    @property
    def time(self) -> float: ...

    @property
    def data(self) -> bytes: ...


class Differences:
    """Turns looks at one screen into the frames of a trace; gives contents that are the same the same number.

    ``zero`` is the time (CLOCK_MONOTONIC) that the frames count from. Four bytes a pixel.
    """

    def __init__(self, first: Capture, zero: float) -> None:
        self._zero = zero
        self._stride = first.layout.stride(first.width)
        self._height = first.height
        self._seen = first.data
        self._contents: dict[bytes, int] = {}

    def frames(self, looks: Iterable[Look]) -> list[Frame]:
        """One for each look that differs from the last."""
        rows: list[Frame] = []
        for look in looks:
            row = self._frame(look)
            if row is not None:
                rows.append(row)
            self._seen = look.data
        return rows

    def numbers(self, data: bytes, tiles: Iterable[int]) -> list[int]:
        """The contents' numbers of these tiles in one look."""
        return [self._number(self._tile(data, *divmod(tile, TILES_A_ROW))) for tile in tiles]

    def _frame(self, look: Look) -> Frame | None:
        stride, old, new = self._stride, self._seen, look.data
        pixels, left, right = 0, stride // 4, 0
        changed: list[int] = []
        for y in range(self._height):
            at = y * stride
            before, after = old[at : at + stride], new[at : at + stride]
            if before == after:
                continue
            differ = list(map(ne, memoryview(before).cast("I"), memoryview(after).cast("I")))
            pixels += sum(differ)
            left = min(left, differ.index(True))
            right = max(right, len(differ) - differ[::-1].index(True))
            changed.append(y)
        if not changed:
            return None
        tiles, contents = self._tiles(old, new, changed, left, right)
        box = (left, changed[0], right - left, changed[-1] + 1 - changed[0])
        return Frame(round(look.time - self._zero, 4), pixels, box, tuple(tiles), tuple(contents))

    def _tiles(self, old: bytes, new: bytes, changed: list[int], left: int, right: int) -> tuple[list[int], list[int]]:
        tiles, contents = [], []
        for row in dict.fromkeys(y // TILE for y in changed):
            for column in range(left // TILE, -(-right // TILE)):
                after = self._tile(new, row, column)
                if after != self._tile(old, row, column):
                    tiles.append(row * TILES_A_ROW + column)
                    contents.append(self._number(after))
        return tiles, contents

    def _tile(self, data: bytes, row: int, column: int) -> bytes:
        x, width = 4 * TILE * column, 4 * TILE
        starts = range(row * TILE * self._stride + x, min(self._height, (row + 1) * TILE) * self._stride, self._stride)
        return b"".join([data[start : start + width] for start in starts])

    def _number(self, content: bytes) -> int:
        return self._contents.setdefault(content, len(self._contents))
