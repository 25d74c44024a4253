"""Has the screen settled? A wait that is as long as the screen needs, and an answer that says how it ended.

The policy (its measurements are in the design notes of this project, "Waiting"):

1. Ping the window that got the input; until it has answered, it has not even read it. A window that answers no pings is
   given ``UNANSWERED`` seconds.
2. Nothing has changed ``FIRST_CHANGE`` seconds after that: settled. After a mere move ``HOVER``, until a popup maps.
3. Else the pixels must stay the same for ``QUIET`` seconds, or longer where clients answer slowly. Blinking carets are
   ignored; other small changes are not (a throbber says that a picture is still coming).
4. A window that mapped a moment ago and has painted nothing holds the answer back.
5. What keeps changing in one small place is an animation: named, and not waited for.
6. Bounded by the timeout.
"""

from __future__ import annotations

import functools
import time
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from .ping import Pings
from .screen_watch import ScreenWatch
from .x11 import Connection

UNANSWERED = 0.100
FIRST_CHANGE = 0.100
HOVER = 0.300
QUIET, QUIET_AT_MOST, QUIET_BY_PING = 0.150, 0.500, 1.5
STRICT_QUIET = 0.750
UNPAINTED = 0.400
#: An animation: this many changes in the last second, no pause longer than this, this part of the screen at most.
ANIMATION_CHANGES, ANIMATION_PAUSE, ANIMATION_AREA = 15, 0.150, 0.02


class Verdict(NamedTuple):
    """``outcome`` is ``settled``, ``timeout``, ``animating`` or ``none`` (nothing was waited for)."""

    outcome: str
    waited: float
    moving: List[List[int]]

    @property
    def settled(self) -> bool:
        return self.outcome in ("settled", "none")


NOT_WAITED = Verdict("none", 0.0, [])


class Input(NamedTuple):
    """What was done last: when (CLOCK_MONOTONIC), to which windows, and whether it was a mere move or a scroll."""

    time: float
    windows: Sequence[int]
    hover: bool = False
    scroll: bool = False


def wait_until_settled(
    conn: Connection, pings: Pings, watch: ScreenWatch, last: Input, timeout: float = 2.0, strict: bool = False
) -> Verdict:
    """Wait until the screen has stopped changing after ``last``, at most ``timeout`` seconds from now."""
    began = time.monotonic()
    deadline = began + timeout
    asked = [pings.send(target) for target in _targets(pings, last.windows)]
    handled: Optional[float] = None if asked else last.time + UNANSWERED
    while True:
        watch.look()
        now = time.monotonic()
        if handled is None and not _unanswered(pings, asked):
            handled = now
        wake = deadline
        if handled is not None:
            wake = _settled_at(pings, watch, last, handled, strict)
            if now >= wake:
                return Verdict("settled", now - began, [])
            if _is_animation(watch, now):
                return Verdict("animating", now - began, watch.moving(now - 1.0))
        if now >= deadline:
            for ping in asked:
                if pings.answered(ping) is None:
                    pings.give_up(ping)
            return Verdict("timeout", now - began, watch.moving(now - 0.5))
        answers = functools.partial(_answered_since, pings, asked, _unanswered(pings, asked))
        _until_something_happens(conn, watch, answers, min(wake, deadline))


def wait_fixed(conn: Connection, watch: ScreenWatch, seconds: float) -> Verdict:
    """Wait exactly that long, and say what moved at the end of it."""
    began = time.monotonic()
    while True:
        watch.look()
        now = time.monotonic()
        if now >= began + seconds:
            break
        _until_something_happens(conn, watch, lambda: False, began + seconds)
    moving = watch.moving(now - min(seconds, QUIET))
    return Verdict("timeout" if moving else "settled", now - began, moving)


def _targets(pings: Pings, windows: Sequence[int]) -> List[int]:
    found = [pings.target(window) for window in windows if window]
    return list(dict.fromkeys(target for target in found if target is not None))


def _settled_at(pings: Pings, watch: ScreenWatch, last: Input, handled: float, strict: bool) -> float:
    """The time from which on the screen counts as settled if nothing more happens."""
    popup = any(mapped.override_redirect and mapped.time >= last.time for mapped in watch.mapped)
    hovering = last.hover and not popup
    changed = watch.last_change(last.time)
    if changed is None:
        at = handled + (HOVER if hovering else FIRST_CHANGE)
    else:
        quiet = max(QUIET, min(QUIET_AT_MOST, QUIET_BY_PING * pings.slowest), HOVER if hovering else 0.0)
        at = changed + (STRICT_QUIET if strict and last.scroll else quiet)
    return max([at, *[mapped.time + UNPAINTED for mapped in watch.unpainted(UNPAINTED)]])


def _is_animation(watch: ScreenWatch, now: float) -> bool:
    recent = [change for change in watch.changes if change.time >= now - 1.0 and not change.caret]
    if len(recent) < ANIMATION_CHANGES or now - recent[-1].time > ANIMATION_PAUSE:
        return False
    times = [change.time for change in recent]
    pauses = [later - earlier for earlier, later in zip([now - 1.0, *times], times)]
    if max(pauses) > ANIMATION_PAUSE:
        return False
    area = sum(width * height for _x, _y, width, height in watch.moving(now - 1.0))
    return area <= ANIMATION_AREA * watch.area


def _unanswered(pings: Pings, asked: Sequence[Tuple[int, int]]) -> int:
    return sum(pings.answered(ping) is None for ping in asked)


def _answered_since(pings: Pings, asked: Sequence[Tuple[int, int]], before: int) -> bool:
    return _unanswered(pings, asked) < before


def _until_something_happens(conn: Connection, watch: ScreenWatch, news: Callable[[], bool], wake: float) -> None:
    """Wait until there is something new to look at, ``news()`` is true, or time alone decides."""
    if watch.pending:  # not again at once: a screen that changes all the time would keep this process busy
        wake = min(wake, watch.next_look)
        conn.wait(lambda: False, max(0.0, wake - time.monotonic()))
    else:
        conn.wait(lambda: watch.pending or news(), max(0.0, wake - time.monotonic()))
