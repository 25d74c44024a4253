"""Old pictures are left out of what a model is sent, in steps.

A vendor's server caches the beginning of a conversation that it has seen before, up to the first byte that differs.
Leaving out one old picture each turn would change that beginning each turn. So nothing is left out until there are
twice as many pictures as are to be kept, and then all at once: the beginning changes once in ``keep`` pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Pictures that are kept; up to one less than twice as many are sent.
KEEP = 5
LEFT_OUT = "(an older picture of the screen was left out)"

StandIn = Callable[[dict[str, Any]], dict[str, Any] | None]
"""What takes the place of an old picture; None takes it away."""


def prune(history: list[Any], is_picture: Callable[[dict[str, Any]], bool], stand_in: StandIn, keep: int = KEEP) -> int:
    """Leave out the oldest pictures of ``history`` when there are twice ``keep``; how many are left in it.

    Messages that are no plain JSON (a vendor's own objects) are left as they are.
    """
    places = [place for message in history for place in _places(message, is_picture)]
    if len(places) < 2 * keep:
        return len(places)
    for holder, key in reversed(places[: len(places) - keep]):
        replacement = stand_in(holder[key])
        if replacement is not None:
            holder[key] = replacement
        else:
            del holder[key]
    return keep


def without_pictures(value: Any, is_picture: Callable[[dict[str, Any]], bool]) -> Any:
    """A copy of ``value`` with a word in the place of each picture: for a record that holds the pictures elsewhere."""
    if isinstance(value, dict):
        if is_picture(value):
            return "(picture)"
        return {key: without_pictures(item, is_picture) for key, item in value.items()}
    return [without_pictures(item, is_picture) for item in value] if isinstance(value, list) else value


def _places(value: Any, is_picture: Callable[[dict[str, Any]], bool]) -> list[tuple[Any, Any]]:
    """Where the pictures of a message stand: what holds each, and the key or index there."""
    if isinstance(value, dict):
        entries: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    else:
        return []
    found: list[tuple[Any, Any]] = []
    for key, item in entries:
        if isinstance(item, dict) and is_picture(item):
            found.append((value, key))
        else:
            found += _places(item, is_picture)
    return found
