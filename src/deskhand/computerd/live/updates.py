"""What one viewer is sent: the tiles that differ from those it got last, encoded as few bytes.

Small areas are PNG, large ones JPEG where that is much smaller; what was sent with loss is sent again, exactly, once it
has been still for a moment.
"""

from __future__ import annotations

import io
import time
from collections import OrderedDict
from typing import NamedTuple

from deskhand.computerd.live.tiles import Frame, Rect, rectangles
from deskhand.hand import accelerators, png

#: Seconds for which a tile that was sent with loss must be still, before it is sent exactly.
STILL = 0.4
#: Pixels from which JPEG is tried, and the part of the PNG's bytes it must stay below to be worth sending it twice.
LARGE, WORTH = 128 * 128, 0.6
#: Tiles sent again exactly in one update: a slow line must not be filled with what nobody waits for.
MOST_AGAIN = 64
#: Tiles of one image, across and down, and the bytes of images from which an update holds no more: who has a slow line
#: must come to the end of one.
_ACROSS, _DOWN, MOST_BYTES = 16, 8, 300_000
#: Encoded rectangles that are kept for the other viewers: how many, and bytes.
_KEPT, _KEPT_BYTES = 64, 8_000_000
_QUALITY = 80


class Piece(NamedTuple):
    """A rectangle of pixels, encoded. ``format`` is "png" or "jpeg"."""

    rect: Rect
    format: str
    content: bytes


class Encoder:
    """Encodes rectangles of frames; viewers that are sent the same share the work. For one thread at a time."""

    def __init__(self) -> None:
        # The tiles are kept beside what was made of them: their ids are taken for them.
        self._kept: OrderedDict[tuple[object, ...], tuple[tuple[bytes, ...], Piece]] = OrderedDict()
        self._bytes = 0

    def piece(self, frame: Frame, tiles: Rect, exact: bool) -> Piece:
        """The rectangle ``tiles`` of ``frame``, as few bytes as may be; ``exact`` without loss."""
        content = tuple(frame.tiles[number] for number in frame.within(tiles))
        key = (tiles, exact, frame.size, *map(id, content))
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][1]
        piece = _encode(frame, tiles, exact)
        self._kept[key] = content, piece
        self._bytes += len(piece.content)
        while len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1][1].content)
        return piece


class View:
    """What one viewer has on its screen. For one thread at a time."""

    def __init__(self) -> None:
        self._size = (0, 0)
        self._got: list[bytes | None] = []
        self._lossy: dict[int, float] = {}  # tile to when it was sent, CLOCK_MONOTONIC

    def due(self, frame: Frame) -> float | None:
        """When there will be something to send, CLOCK_MONOTONIC, when the screen stays as ``frame`` is; None: never."""
        if self._differing(frame):
            return 0.0
        return min(self._lossy.values()) + STILL if self._lossy else None

    def update(self, frame: Frame, encoder: Encoder) -> list[Piece]:
        """What brings the viewer from what it has towards ``frame``; it is taken for sent.

        It is all that differs, unless that is so much that the rest comes with the next update.
        """
        now = time.monotonic()
        pieces: list[Piece] = []
        for rect in _split(rectangles(self._differing(frame), frame.columns)):
            if sum(len(piece.content) for piece in pieces) >= MOST_BYTES:
                return pieces  # the rest differs still, and comes next
            piece = encoder.piece(frame, rect, exact=False)
            pieces.append(piece)
            for number in frame.within(rect):
                self._got[number] = frame.tiles[number]
                self._lossy.pop(number, None)
                if piece.format != "png":
                    self._lossy[number] = now
        again = [number for number, sent in self._lossy.items() if sent + STILL <= now][:MOST_AGAIN]
        for rect in _split(rectangles(again, frame.columns)):
            if sum(len(piece.content) for piece in pieces) >= MOST_BYTES:
                break
            pieces.append(encoder.piece(frame, rect, exact=True))
            for number in frame.within(rect):
                del self._lossy[number]
        return pieces

    def _differing(self, frame: Frame) -> list[int]:
        if frame.size != self._size:
            self._size = frame.size
            self._got = [None] * len(frame.tiles)
            self._lossy = {}
        differing = []
        for number, (tile, got) in enumerate(zip(frame.tiles, self._got, strict=True)):
            if tile is got:
                continue
            if tile == got:
                self._got[number] = tile  # it has changed and changed back: one copy of it is enough
            else:
                differing.append(number)
        return differing


def _split(rects: list[Rect]) -> list[Rect]:
    return [
        (x, y, min(_ACROSS, column + columns - x), min(_DOWN, row + rows - y))
        for column, row, columns, rows in rects
        for y in range(row, row + rows, _DOWN)
        for x in range(column, column + columns, _ACROSS)
    ]


def _encode(frame: Frame, tiles: Rect, exact: bool) -> Piece:
    rect = frame.rect(tiles)
    _x, _y, width, height = rect
    rgb = frame.rgb(tiles)
    content = png.encode(rgb, width, height)
    if not exact and width * height >= LARGE and len(content) > width * height // 4:
        small = _jpeg(rgb, width, height)
        if len(small) < WORTH * len(content):
            return Piece(rect, "jpeg", small)
    return Piece(rect, "png", content)


def _jpeg(rgb: bytes, width: int, height: int) -> bytes:
    fast = accelerators.jpeg(rgb, width, height)
    if fast is not None:
        return fast
    from PIL import Image

    out = io.BytesIO()
    Image.frombuffer("RGB", (width, height), rgb, "raw", "RGB", 0, 1).save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()
