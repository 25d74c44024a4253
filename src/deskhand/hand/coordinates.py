"""Positions: from the space a batch names to root-window pixels, in one place.

A space is ``"screen"`` (root-window pixels), ``{"picture": [w, h]}`` (pixels of a picture of that size) or
``{"grid": n}`` (0 to n on both axes). The first and last position of a space are the screen's first and last pixel:
``pixel = v * (size - 1) / last``, rounded to the nearest.
"""

from __future__ import annotations

from typing import Any, List, Tuple, Union

Number = Union[int, float]


class Space:
    """A coordinate space over a screen of ``size`` pixels.

    Raises:
        ValueError: ``space`` is none of the three forms.
    """

    def __init__(self, space: Any, size: Tuple[int, int]) -> None:
        self.size = size
        self.name, self.last = _parse(space, size)

    def point(self, x: Number, y: Number) -> Tuple[int, int]:
        """The root-window pixel of a position.

        Raises:
            ValueError: the position is outside the space; the message names the range.
        """
        if not (0 <= x <= self.last[0] and 0 <= y <= self.last[1]):
            raise ValueError(
                f"({_plain(x)}, {_plain(y)}) is outside the {self.name}:"
                f" use x 0-{self.last[0]}, y 0-{self.last[1]}, or take a new screenshot"
            )
        width, height = self.size
        return _scale(x, self.last[0], width), _scale(y, self.last[1], height)

    def back(self, x: int, y: int) -> Tuple[int, int]:
        """The position of a root-window pixel in this space, rounded to the nearest."""
        width, height = self.size
        return (
            round(x * self.last[0] / max(1, width - 1)),
            round(y * self.last[1] / max(1, height - 1)),
        )

    def region(self, corners: List[Number]) -> Tuple[int, int, int, int]:
        """Root-window pixels of ``[x0, y0, x1, y1]``, whose right and lower edge may be the space's own end.

        Raises:
            ValueError: it is outside the space, or holds no pixel.
        """
        x0, y0, x1, y1 = corners
        ends = (self.last[0] + 1, self.last[1] + 1) if not self.is_grid else self.last
        if not (0 <= x0 < x1 <= ends[0] and 0 <= y0 < y1 <= ends[1]):
            raise ValueError(
                f"the region [{', '.join(_plain(v) for v in corners)}] is not inside the {self.name}:"
                f" use 0 <= x0 < x1 <= {ends[0]} and 0 <= y0 < y1 <= {ends[1]}"
            )
        width, height = self.size
        left, top = min(width - 1, int(x0 * width / ends[0])), min(height - 1, int(y0 * height / ends[1]))
        right, bottom = -int(-x1 * width // ends[0]), -int(-y1 * height // ends[1])
        return left, top, max(left + 1, min(width, right)), max(top + 1, min(height, bottom))

    @property
    def is_grid(self) -> bool:
        return self.name.endswith("grid")


def check_space(space: Any) -> None:
    """Raises ValueError unless ``space`` is one of the three forms."""
    _parse(space, (1, 1))


def _parse(space: Any, size: Tuple[int, int]) -> Tuple[str, Tuple[int, int]]:
    if space == "screen":
        return f"{size[0]}x{size[1]} screen", (size[0] - 1, size[1] - 1)
    if isinstance(space, dict) and list(space) == ["picture"]:
        value = space["picture"]
        if isinstance(value, list) and len(value) == 2 and all(_is_size(v) for v in value):
            width, height = (int(v) for v in value)
            return f"{width}x{height} picture", (width - 1, height - 1)
    if isinstance(space, dict) and list(space) == ["grid"] and _is_size(space["grid"]) and space["grid"] > 1:
        last = int(space["grid"])
        return f"0-{last} grid", (last, last)
    raise ValueError('space must be "screen", {"picture": [width, height]} or {"grid": 999}')


def _is_size(value: Any) -> bool:
    """Whether it is a whole number of pixels: JSON has one kind of number, and 800.0 is as whole as 800."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 1 <= value <= 65535 and value == int(value)


def _scale(value: Number, last: int, pixels: int) -> int:
    return int(value * (pixels - 1) / last + 0.5) if last else 0


def _plain(value: Number) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)
