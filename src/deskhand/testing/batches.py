"""What the conformance suite sends, and how it runs and waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: Several scripts, signs that are on no keyboard, and those that are on another level of most.
TEXT = "Grüße, naïve café; Привет, Ελλάδα! 你好 שלום 😀 €@\\|{}[]<>~^`'\"\n\tend"
LAYOUTS = ("us", "de", "fr", "us,ru", "ru,us", "us(dvorak)")

#: Batches that are wrong: the position of the wrong action (None: the envelope), and a part of the sentence.
WRONG: list[tuple[Any, int | None, str]] = [
    ({"actions": []}, None, "1 to 100 actions"),
    ({"actions": [{"action": "wait", "seconds": 0}] * 101}, None, "not 101"),
    ({"actions": [{"action": "dance"}]}, 0, "there is no action 'dance'"),
    ({"actions": [{"action": "click", "x": 5, "y": 5}, {"action": "key", "keys": "ctrl+nokey"}]}, 1, "nokey"),
    ({"actions": [{"action": "click", "x": 5, "y": 5}, {"action": "click", "x": 99999, "y": 5}]}, 1, "outside"),
    ({"actions": [{"action": "click", "x": -1, "y": 0}]}, 0, ""),
    ({"actions": [{"action": "click", "x": 5}]}, 0, "both x and y"),
    ({"actions": [{"action": "move", "x": 5, "y": 5, "speed": 2}]}, 0, "speed"),
    ({"actions": [{"action": "click", "x": 5, "y": 5}, {"action": "launch", "app": "no such thing"}]}, 1, "no such"),
    ({"actions": [{"action": "launch", "app": "../x"}]}, 0, "../x"),
    ({"actions": [{"action": "type", "text": ""}]}, 0, "text"),
    ({"actions": [{"action": "wait", "seconds": 0}], "space": "window"}, None, "space"),
    ({"actions": [{"action": "wait", "seconds": 0}], "expect": {"sequence": 123456}}, 0, "not the newest"),
]


def run(work: Awaitable[T]) -> T:
    """Run one piece of work on an event loop of its own, two minutes at most."""

    async def bounded() -> T:
        async with asyncio.timeout(120):
            return await work

    return asyncio.run(bounded())


def until(condition: Callable[[], Any], what: str, seconds: float = 20.0) -> None:
    """Wait for what no event tells: what another client has pressed."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)


def quick(*actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A batch that does not wait for the screen to settle."""
    return {"actions": list(actions), "settle": {"mode": "none"}, **more}
