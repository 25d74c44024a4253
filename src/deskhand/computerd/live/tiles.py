"""A picture of the screen in squares that never change: which of them differ is told by comparing two pictures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deskhand.hand import pixels
from deskhand.hand.screen import Capture

#: The edge of a tile, in pixels. Those at the right and bottom edge of the screen may be smaller.
TILE = 64

#: x, y, width, height in pixels.
Rect = tuple[int, int, int, int]


@dataclass(frozen=True)
class Frame:
    """The whole screen of ``width`` times ``height`` pixels.

    ``tiles`` are the server's own pixels, row by row of tiles from the top left; ``layout`` says how one pixel lies in
    them. A tile has no padding between its rows.
    """

    width: int
    height: int
    layout: pixels.Layout
    tiles: tuple[bytes, ...]

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.height

    @property
    def columns(self) -> int:
        return -(-self.width // TILE)

    def changed(self, taken: Capture) -> Frame:
        """This frame with the pixels of ``taken``, whose region begins and ends at edges of tiles; itself when equal.

        Raises:
            ValueError: It was taken of a screen of another size, or begins elsewhere.
        """
        x0, y0, x1, y1 = taken.region
        ends = x1 in (self.width, x1 - x1 % TILE) and y1 in (self.height, y1 - y1 % TILE)
        if taken.screen != self.size or x0 % TILE or y0 % TILE or not ends:
            raise ValueError(f"region {taken.region} of a {taken.screen} screen is none of tiles of {self.size}")
        tiles = list(self.tiles)
        at_left, at_top, columns = x0 // TILE, y0 // TILE, self.columns
        differs = False
        for index, tile in enumerate(_cut(taken)):
            row, column = divmod(index, -(-(x1 - x0) // TILE))
            place = (at_top + row) * columns + at_left + column
            if tiles[place] != tile:
                tiles[place] = tile
                differs = True
        return Frame(self.width, self.height, self.layout, tuple(tiles)) if differs else self

    def rect(self, tiles: Rect) -> Rect:
        """A rectangle of tiles in pixels."""
        column, row, columns, rows = tiles
        x, y = column * TILE, row * TILE
        return x, y, min(columns * TILE, self.width - x), min(rows * TILE, self.height - y)

    def within(self, tiles: Rect) -> list[int]:
        """The numbers of the tiles of a rectangle, row by row."""
        column, row, columns, rows = tiles
        return [y * self.columns + x for y in range(row, row + rows) for x in range(column, column + columns)]

    def rgb(self, tiles: Rect) -> bytes:
        """RGB of a rectangle of tiles, 8 bits a channel, rows from the top, no padding."""
        column, row, columns, rows = tiles
        size = self.layout.bytes_per_pixel
        _x, _y, width, height = self.rect(tiles)
        parts: list[bytes] = []
        for y in range(rows):
            line = [self.tiles[(row + y) * self.columns + column + x] for x in range(columns)]
            strides = [min(TILE, width - x * TILE) * size for x in range(columns)]
            for at in range(min(TILE, height - y * TILE)):
                parts += [tile[at * s : (at + 1) * s] for tile, s in zip(line, strides, strict=True)]
        packed = self.layout._replace(scanline_pad=8)
        return pixels.to_rgb(b"".join(parts), width, height, packed)


def frame_of(taken: Capture) -> Frame:
    """The frame of a capture of the whole screen."""
    return Frame(taken.width, taken.height, taken.layout, tuple(_cut(taken)))


def touched(rect: Rect, size: tuple[int, int]) -> set[int]:
    """The numbers of the tiles that a rectangle of pixels touches, on a screen of that size."""
    width, height = size
    x0, y0 = max(0, rect[0]), max(0, rect[1])
    x1, y1 = min(width, rect[0] + rect[2]), min(height, rect[1] + rect[3])
    if x0 >= x1 or y0 >= y1:
        return set()
    columns = -(-width // TILE)
    across = range(x0 // TILE, (x1 - 1) // TILE + 1)
    return {row * columns + column for row in range(y0 // TILE, (y1 - 1) // TILE + 1) for column in across}


def rectangles(tiles: Iterable[int], columns: int) -> list[Rect]:
    """Tiles as few rectangles of tiles: neighbours in a row are one, and equal rows one below the other too."""
    open_above: dict[tuple[int, int], int] = {}  # first column and width of a run that ended in the row above
    found: list[list[int]] = []
    row, runs = -1, list[tuple[int, int]]()

    def close_row() -> None:
        nonlocal open_above
        below: dict[tuple[int, int], int] = {}
        for run in runs:
            if run in open_above:
                found[open_above[run]][3] += 1
                below[run] = open_above[run]
            else:
                below[run] = len(found)
                found.append([run[0], row, run[1], 1])
        open_above = below

    for tile in sorted(tiles):
        y, x = divmod(tile, columns)
        if y != row:
            close_row()
            if y != row + 1:
                open_above = {}
            row, runs = y, []
        if runs and sum(runs[-1]) == x:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((x, 1))
    close_row()
    return [(x, y, width, height) for x, y, width, height in found]


def _cut(taken: Capture) -> Iterable[bytes]:
    """A capture's tiles, row by row."""
    size = taken.layout.bytes_per_pixel
    stride, data = taken.layout.stride(taken.width), taken.data
    for top in range(0, taken.height, TILE):
        starts = range(top * stride, min(top + TILE, taken.height) * stride, stride)
        for left in range(0, taken.width, TILE):
            first, end = left * size, min(left + TILE, taken.width) * size
            yield b"".join([data[at + first : at + end] for at in starts])
