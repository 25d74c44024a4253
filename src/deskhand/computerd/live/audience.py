"""Those who watch, and what they are shown beside the screen: outcomes, marks, budget, lease, who has taken over."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deskhand.computerd.live.control import Control
from deskhand.computerd.live.frames import ScreenFrames
from deskhand.computerd.live.updates import Encoder
from deskhand.computerd.served import ServedDesktop, Told
from deskhand.trace.marks import Space, View, marks_of
from deskhand.trace.words import action_in_words, shortened

#: Outcomes that who comes later is still shown; and that are kept for who is slow.
KEPT, _KEPT_FOR_SLOW = 30, 300
#: Those who may watch at once.
MOST_VIEWERS = 16
#: Actions and characters of an outcome that are shown.
_ACTIONS, _TEXT = 12, 600
#: Seconds in which a session's own words for an outcome count as the ones that were shown already.
_SAME = 10.0


class Audience:
    """Watches the desktop while somebody is there. ``control`` is who may act there; None: nobody may.

    Everything but ``frames`` belongs to the event loop.
    """

    def __init__(self, served: ServedDesktop, control: Control | None) -> None:
        self.control = control
        self.encoder = Encoder()
        #: Encodes for all, one after the other: the event loop must not wait for it.
        self.encoding = ThreadPoolExecutor(1, thread_name_prefix="deskhand-live-encoder")
        self.frames = ScreenFrames(*served.place, self._frame_changed)
        self.display = served.place[0] or os.environ.get("DISPLAY", "")
        self._wakes: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._outcomes: deque[dict[str, Any]] = deque(maxlen=_KEPT_FOR_SLOW)
        self._numbers = itertools.count(1)
        self._budget: dict[str, Any] | None = None
        served.subscribe(self._take)
        if control is not None:
            control.changed = self.wake

    @property
    def full(self) -> bool:
        """Whether no more can watch."""
        return len(self._wakes) >= MOST_VIEWERS

    def join(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have ``wake`` called whenever there may be something new; gives the function that ends it."""
        self._loop = asyncio.get_running_loop()
        self._wakes.append(wake)
        self.frames.start()
        self.wake()

        def leave() -> None:
            self._wakes.remove(wake)
            if not self._wakes:
                self.frames.stop()
            self.wake()

        return leave

    def wake(self) -> None:
        """Something has changed."""
        for wake in list(self._wakes):
            wake()

    def first_outcome(self) -> int:
        """The number after which somebody who comes now is told of outcomes: those of the last ``KEPT``."""
        return max(0, self._outcomes[-1]["n"] - KEPT) if self._outcomes else 0

    def outcomes_since(self, number: int) -> list[dict[str, Any]]:
        """The outcomes with a larger number, the oldest first."""
        if not self._outcomes or self._outcomes[-1]["n"] == number:
            return []
        return [outcome for outcome in self._outcomes if outcome["n"] > number]

    def state(self) -> dict[str, Any]:
        """What is so now, beside the screen itself."""
        seen = self.frames.seen
        lease = seen.lease
        return {
            "screen": list(seen.frame.size) if seen.frame is not None else None,
            "pointer": list(seen.pointer) if seen.pointer is not None else None,
            "trouble": seen.trouble,
            "lease": {"holder": lease[0], "until": lease[1]} if lease is not None else None,
            "viewers": len(self._wakes),
            "budget": self._budget,
        }

    def _frame_changed(self) -> None:
        """In the watching thread."""
        loop = self._loop
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self.wake)
        except RuntimeError:
            pass  # the loop has ended, and everybody with it

    def _take(self, told: Told) -> None:
        if told.used is not None or told.limit is not None:
            self._budget = {"used": told.used, "limit": told.limit, "session": told.session}
        if not self._is_known(told):
            self._outcomes.append({"n": next(self._numbers), **self._shown(told)})
        self.wake()

    def _is_known(self, told: Told) -> bool:
        """Whether it only repeats, in its session's words, what a batch of that session was seen to come to."""
        if told.batch is not None or told.used is None:
            return False
        if told.ok:
            return True
        same = (o for o in self._outcomes if o["session"] == told.session and told.time - o["time"] < _SAME)
        return any(not o["ok"] and o["text"] == shortened(told.text, _TEXT) for o in same)

    def _shown(self, told: Told) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "time": told.time,
            "session": told.session,
            "person": self.control is not None and told.session == self.control.session,
            "ok": told.ok,
            "sent": told.sent,
            "text": shortened(_error(told) or told.text, _TEXT),
            "actions": [],
            "marks": [],
        }
        batch, actions = told.batch, told.batch.get("actions") if told.batch is not None else None
        if batch is None or not isinstance(actions, list):
            return shown
        results = told.answer.get("results", []) if told.answer is not None else []
        for action, result in itertools.zip_longest(actions[:_ACTIONS], results[:_ACTIONS]):
            status = result.get("status") if result is not None else "none"
            shown["actions"].append({"words": action_in_words(action), "status": status})
        shown["more"] = max(0, len(actions) - _ACTIONS)
        if told.answer is not None and told.sent != "none":
            frame = self.frames.seen.frame
            space = Space(batch.get("space"), frame.size if frame is not None else None)
            shown["marks"] = marks_of({"actions": actions[:_ACTIONS]}, told.answer, space, View())
            shown["settle"] = told.answer.get("settle")
            shown["settle_ms"] = told.answer.get("settle_ms")
        return shown


def _error(told: Told) -> str | None:
    """Why a batch did not come to its end, in the words of what stopped it."""
    if told.ok or told.answer is None:
        return None
    failed = [result.get("error") for result in told.answer.get("results", []) if result.get("status") == "failed"]
    error = failed[0] if failed else told.answer.get("error")
    return str(error) if error else None


def now() -> float:
    """Seconds since the epoch, as the page is told them."""
    return round(time.time(), 3)
