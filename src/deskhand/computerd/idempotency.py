"""Answers kept in memory by their ``Idempotency-Key``: a request that comes again is answered, and never done again.

Source: The Idempotency-Key HTTP Header Field (IETF draft). Answers are kept for ten minutes, in a bounded number of
bytes; of one that was dropped it is still known that its request was carried out, and that is then the answer. What was
refused before anything was sent is not kept: it may come again, when it is its turn or the display is back.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response

from deskhand.computerd.problems import Problem

#: Seconds an answer is kept after it was made; how many, and how many bytes of them, at most.
KEPT, MOST, MOST_BYTES = 600.0, 512, 64 << 20
#: Keys that are remembered without their answer.
_MOST_KEYS = 65_536


@dataclass(eq=False)
class Run:
    """A request that is carried out; ``gone`` is set when none of the clients that wait for its answer is left."""

    answer: asyncio.Task[Response]
    gone: asyncio.Event
    waiting: int = 0


@dataclass
class _Kept:
    digest: bytes
    answer: Run | None
    done: float | None = None
    size: int = 0


class Answers:
    """What was answered, by key."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        #: Requests that were answered from here.
        self.repeated = 0

    def once(self, key: str, body: bytes, work: Callable[[], Run]) -> Run:
        """What makes, or made, the answer to the request with that key; ``work`` starts it, once.

        Raises:
            Problem: The key belongs to a request with another body, or too many requests wait.
        """
        self._drop_old()
        digest = hashlib.sha256(body).digest()
        known = self._kept.get(key)
        if known is not None:
            if known.digest != digest:
                raise Problem("key_reused", "this Idempotency-Key was used for another request: make a new key")
            if known.answer is None:
                raise Problem(
                    "answered",
                    "the request with this Idempotency-Key was carried out, and its answer is no longer kept: look"
                    " before anything is sent again",
                    sent="unknown",
                )
            self.repeated += 1
            return known.answer
        if sum(kept.answer is not None for kept in self._kept.values()) >= MOST and not self._drop_one():
            raise Problem("busy", "too many requests wait for their answer: try again later", {"Retry-After": "1"})
        run = work()
        kept = self._kept[key] = _Kept(digest, run)
        run.answer.add_done_callback(lambda task: self._is_done(key, kept, task))
        return run

    def forget(self, key: str) -> None:
        """The request with that key came to nothing at all, and may be made again."""
        self._kept.pop(key, None)

    def _is_done(self, key: str, kept: _Kept, task: asyncio.Task[Response]) -> None:
        if task.cancelled() or task.exception() is not None or _came_to_nothing(task.result()):
            self.forget(key)
            return
        kept.done, kept.size = time.monotonic(), len(task.result().body)
        while sum(one.size for one in self._kept.values()) > MOST_BYTES and self._drop_one():
            pass

    def _drop_old(self) -> None:
        now = time.monotonic()
        for kept in self._kept.values():
            if kept.answer is not None and kept.done is not None and now - kept.done > KEPT:
                kept.answer, kept.size = None, 0
        while len(self._kept) > _MOST_KEYS and (oldest := next(iter(self._kept))):
            if self._kept[oldest].done is None:
                return
            del self._kept[oldest]

    def _drop_one(self) -> bool:
        """Drop the oldest answer; false when all requests still run."""
        for kept in self._kept.values():
            if kept.answer is not None and kept.done is not None:
                kept.answer, kept.size = None, 0
                return True
        return False


def _came_to_nothing(response: Response) -> bool:
    """Whether it is a problem that says so."""
    return response.status_code >= 400 and json.loads(bytes(response.body)).get("sent") == "none"
