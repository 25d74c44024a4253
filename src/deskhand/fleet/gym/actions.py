"""Our action dicts as a Gymnasium space."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np

from deskhand.errors import BatchRefused
from deskhand.hand.actions import MAX_ACTIONS
from deskhand.hand.envelope import parse_actions
from deskhand.hand.key_names import parse_chord

#: What is sampled: actions that need nothing but a screen.
SAMPLED = ("move", "click", "drag", "scroll", "type", "key", "wait")
#: Chords that are sampled.
KEYS = (
    *("Return", "Escape", "Tab", "shift+Tab", "BackSpace", "Delete", "space", "Left", "Right", "Up", "Down", "Home"),
    *("End", "Page_Up", "Page_Down", "ctrl+a", "ctrl+c", "ctrl+v", "ctrl+x", "ctrl+z", "ctrl+s", "alt+Tab", "F1"),
)
_LETTERS = string.ascii_letters + string.digits + " .,"
_LONGEST, _MOST_NOTCHES = 12, 5


class ActionSpace(gymnasium.Space[dict[str, Any]]):
    """An action such as ``{"action": "click", "x": 5, "y": 5}``, or a list of up to 100, on a picture of ``size``.

    ``sample`` draws one action of ``names``; what is contained is everything that the hand would take: all kinds, and
    lists of them, with positions inside the picture. Positions are whole pixels of the picture, as the agent sees it.

    Args:
        size: Width and height of the picture.
        names: What is sampled.
        seed: Of what is sampled.
    """

    def __init__(self, size: tuple[int, int], names: Sequence[str] = SAMPLED, seed: int | None = None) -> None:
        unknown = set(names) - set(SAMPLED)
        if unknown or not names:
            raise ValueError(
                f"what can be sampled is {', '.join(SAMPLED)}, not {', '.join(sorted(unknown)) or 'nothing'}"
            )
        self.size = size
        self.names = tuple(names)
        super().__init__(None, None, seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> dict[str, Any]:
        """One action; ``mask`` (ones and zeros) or ``probability`` are over ``names``."""
        weights = probability if mask is None else np.asarray(mask, float) / max(1.0, float(np.sum(mask)))
        name = self.names[int(self.np_random.choice(len(self.names), p=weights))]
        return {"action": name, **_FIELDS[name](self)}

    def contains(self, x: Any) -> bool:
        actions = x if isinstance(x, list) else [x]
        try:
            parsed = parse_actions(actions)
            for action in parsed:
                if action.action in ("key", "hold_key", "key_down", "key_up"):
                    parse_chord(action.keys)
        except (BatchRefused, ValueError):
            return False
        return len(actions) <= MAX_ACTIONS and all(self._inside(action) for action in parsed)

    def __repr__(self) -> str:
        return f"ActionSpace({self.size}, {self.names})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionSpace) and (self.size, self.names) == (other.size, other.names)

    __hash__ = None  # type: ignore[assignment]

    def _inside(self, action: Any) -> bool:
        points = list(getattr(action, "path", None) or [])
        if action.action not in ("resize",) and getattr(action, "x", None) is not None:
            points.append((action.x, action.y))
        return all(0 <= x < self.size[0] and 0 <= y < self.size[1] for x, y in points)

    # -- what is sampled ----------------------------------------------------------------------------------------------

    def _whole(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return int(self.np_random.integers(low, high + 1))

    def _point(self) -> dict[str, Any]:
        return {"x": self._whole(0, self.size[0] - 1), "y": self._whole(0, self.size[1] - 1)}

    def _click(self) -> dict[str, Any]:
        return {**self._point(), "button": ("left", "middle", "right")[self._whole(0, 2)], "count": self._whole(1, 2)}

    def _drag(self) -> dict[str, Any]:
        return {"path": [list(self._point().values()) for _ in range(self._whole(2, 3))]}

    def _scroll(self) -> dict[str, Any]:
        return {**self._point(), "dy": self._whole(1, _MOST_NOTCHES) * (1 if self._whole(0, 1) else -1)}

    def _type(self) -> dict[str, Any]:
        letters = (_LETTERS[self._whole(0, len(_LETTERS) - 1)] for _ in range(self._whole(1, _LONGEST)))
        return {"text": "".join(letters)}

    def _key(self) -> dict[str, Any]:
        return {"keys": KEYS[self._whole(0, len(KEYS) - 1)]}

    def _wait(self) -> dict[str, Any]:
        return {"seconds": self._whole(0, 50) / 100}


_FIELDS: dict[str, Callable[[ActionSpace], dict[str, Any]]] = {
    "move": ActionSpace._point,
    "click": ActionSpace._click,
    "drag": ActionSpace._drag,
    "scroll": ActionSpace._scroll,
    "type": ActionSpace._type,
    "key": ActionSpace._key,
    "wait": ActionSpace._wait,
}
