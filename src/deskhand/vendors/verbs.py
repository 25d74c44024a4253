"""A vendor's verbs: what its model can ask for, and the function that makes actions of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from deskhand.errors import BatchRefused
from deskhand.hand.key_names import parse_chord

Action = dict[str, Any]
Reader = TypeVar("Reader", bound=Callable[..., list[Action]])


@dataclass(frozen=True)
class Verb:
    """One thing a vendor's model can ask for.

    ``gives`` names the actions it may become, ``takes`` its fields as the vendor calls them (``?`` may be left out).
    """

    name: str
    read: Callable[..., list[Action]]
    gives: tuple[str, ...]
    takes: str
    note: str


class Verbs(dict[str, Verb]):
    """A vendor's verbs by name."""

    def add(self, *names: str, gives: str, takes: str = "") -> Callable[[Reader], Reader]:
        """Decorate the function that reads the fields of these verbs; its docstring is the note in the table."""

        def add(read: Reader) -> Reader:
            note = " ".join((read.__doc__ or "").split())
            for name in names:
                self[name] = Verb(name, read, tuple(gives.split()), takes, note)
            return read

        return add

    def named(self, name: Any, tool: str) -> Verb:
        """Raises BatchRefused with the nearest names when there is no such verb."""
        import difflib  # 5 ms, wanted only here

        if isinstance(name, str) and name in self:
            return self[name]
        if not isinstance(name, str):
            raise BatchRefused(f"the call of {tool} names no action: use one of {', '.join(self)}")
        near = difflib.get_close_matches(name[:60], list(self), 1, 0.6)
        which = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(self)}"
        raise BatchRefused(f"{tool} has no action {name[:60]!r}: {which}")


def modifiers(verb: str, chord: str | None) -> dict[str, Any]:
    """The ``modifiers`` of an action from a chord to hold, such as ``"ctrl+shift"``; nothing when there is none.

    Raises:
        BatchRefused: A key is not known.
    """
    if not chord:
        return {}
    try:
        return {"modifiers": parse_chord(chord)}
    except ValueError as error:
        raise BatchRefused(f"{verb}: {error}") from None


def joined(keys: Sequence[str]) -> str:
    """A list of keys as one chord; the plus key is spelt out, as ``+`` joins."""
    return "+".join("plus" if key == "+" else key for key in keys)


def scroll_by(direction: str, amount: float) -> dict[str, Any]:
    """``dx`` or ``dy`` of a scroll towards ``up``, ``down``, ``left`` or ``right``."""
    axis = "dy" if direction in ("up", "down") else "dx"
    return {axis: amount if direction in ("down", "right") else -amount}


def turn(direction: str, notches: int, at: Mapping[str, Any] | None = None) -> list[Action]:
    """Scrolls of ``notches`` together, at most 100 each, at the position ``at`` or where the pointer is."""
    amounts = [100] * (notches // 100) + ([notches % 100] if notches % 100 else [])
    return [{"action": "scroll", **(at or {}), **scroll_by(direction, amount)} for amount in amounts]


def drag_from_pointer(x: float, y: float, button: str = "left") -> list[Action]:
    """Press where the pointer is, and release at a position.

    Two moves, the last one short: what is dragged onto must see the pointer come in before the release.
    """
    near = x - 1 if x >= 1 else x + 1
    return [
        {"action": "mouse_down", "button": button},
        {"action": "move", "x": near, "y": y},
        {"action": "move", "x": x, "y": y},
        {"action": "mouse_up", "button": button},
    ]
