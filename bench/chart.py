"""A picture of the ratios: one bar for each peer in each case, on a logarithmic scale; green is right, red is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont

from bench.sides import Answer, Row

WIDTH, LEFT, RIGHT, TOP = 1400, 560, 190, 66
ROW, GAP, HEAD = 22, 10, 40
#: The scale goes from this ratio to that one.
LEAST, MOST = 0.05, 50.0
OURS, GOOD, BAD, PLAIN, INK, GRID = "#1f5fa8", "#4c9a5b", "#c4483c", "#8a94a3", "#222222", "#dddddd"
#: A pool, where a question has one, stands for its kinds, which fill a table.
POOLS = (
    "all kinds",
    "the kinds of the recorded traces",
    "without loads, scrolling, slow commands",
    "all fields, ASCII",
    "all fields, mixed",
)


def draw(answers: Sequence[Answer], path: Path) -> None:
    """Write the chart as PNG."""
    blocks = [(answer, _rows(answer)) for answer in answers]
    blocks = [(answer, rows) for answer, rows in blocks if rows]
    height = TOP + sum(HEAD + len(rows) * ROW + len({row.case for row in rows}) * GAP for _, rows in blocks) + 20
    image = Image.new("RGB", (WIDTH, height), "white")
    pen = ImageDraw.Draw(image)
    font, bold = ImageFont.load_default(14), ImageFont.load_default(18)
    pen.text((20, 14), "How many times as long as ours (blue line: ours, 1.0; logarithmic)", INK, bold)
    for mark in (0.1, 0.5, 1, 2, 5, 10, 20, 50):
        x = _x(mark)
        pen.line((x, TOP - 8, x, height - 10), OURS if mark == 1 else GRID, 2 if mark == 1 else 1)
        pen.text((x, TOP - 24), f"{mark:g}", INK, font, anchor="ma")
    y = TOP
    for answer, rows in blocks:
        pen.text((20, y + 10), f"{answer.question}: {answer.words}", INK, bold)
        y += HEAD
        for index, row in enumerate(rows):
            if index == 0 or rows[index - 1].case != row.case:
                y += GAP
            _bar(pen, font, row, y, named=index == 0 or rows[index - 1].case != row.case)
            y += ROW
    image.save(path, "PNG", optimize=True)


def _rows(answer: Answer) -> list[Row]:
    """The pools where there are some, else everything."""
    pools = [row for row in answer.rows if row.case in POOLS]
    return pools or answer.rows


def _bar(pen: ImageDraw.ImageDraw, font: FreeTypeFont | ImageFont.ImageFont, row: Row, y: int, named: bool) -> None:
    if named:
        pen.text((20, y + 2), row.case, INK, font)
    pen.text((LEFT - 8, y + 2), row.side, OURS if row.ratio == 1.0 else INK, font, anchor="ra")
    one, end = sorted((_x(1.0), _x(row.ratio)))
    pen.rectangle((one, y + 3, max(end, one + 2), y + ROW - 5), _colour(row))
    words = f"{row.ratio:.2f}" + (f"   {row.right} of {row.tries} right" if row.right is not None else "")
    pen.text((max(end, one) + 8, y + 2), words, INK, font)


def _colour(row: Row) -> str:
    if row.right is None:
        return OURS if row.ratio == 1.0 else PLAIN
    return GOOD if row.right >= 0.95 * row.tries else BAD


def _x(ratio: float) -> float:
    """Where a ratio stands."""
    ratio = min(MOST, max(LEAST, ratio))
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio / LEAST) / math.log(MOST / LEAST)
