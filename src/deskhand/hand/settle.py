"""Has the screen settled? A wait that is as long as the screen needs, and an answer that says how it ended.

The policy (found and measured in ``bench/settle``, "adapted"):

1. Ping the window that got the input; until it has answered, it has not even read it. A window that answers no pings is
   given ``UNANSWERED`` seconds.
2. Nothing has changed ``FIRST_CHANGE`` seconds after that: settled. After a mere move ``HOVER``, until a popup maps.
3. Else the pixels must stay the same for a quiet that follows how fast this client answers now: ``QUIET`` and
   ``QUIET_BY_PING`` times its slowest answer to this action, between ``QUIET_AT_LEAST`` and ``QUIET_AT_MOST``. Longer
   for a client whose content other processes draw (a browser), after what may load something; longer while something
   tiny turns (a throbber). Carets, scroll bars that fade, specks, and places that moved before the action do not count.
4. More is to come, and is waited for, while a window that has mapped has painted nothing, or what is behind one that
   has gone; while a window covers a panel which will hide; while a command runs in a terminal, or its shell has work;
   while a program that a click or a key has started has no window yet; while the pointer says "busy"; and while a
   button that a key may have pressed has not acted.
5. What keeps changing in one small place is an animation: named, and not waited for. A throbber is waited for. What
   moved before the action (``ambient``) and does so still is named too.
6. Bounded by the timeout.
"""

from __future__ import annotations

import functools
import time
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from . import client_processes, docks, windows
from .errors import ActionFailed, RequestFailed
from .ping import Pings
from .screen_watch import Change, Mapped, Rect, ScreenWatch
from .window_properties import Window
from .x11 import Connection, core

UNANSWERED = 0.100
FIRST_CHANGE = 0.100
HOVER = 0.300
QUIET, QUIET_BY_PING, QUIET_AT_LEAST, QUIET_AT_MOST = 0.060, 1.5, 0.070, 0.300
#: A browser's content, after a key or a click.
CONTENT = 0.120
#: The same while it starts: it fills its window piece by piece.
CONTENT_STARTS = 0.500
#: While a throbber turns, as a loaded machine lets it skip frames.
THROBBER, THROBBER_MEMORY = 0.150, 0.5
#: Where no ping tells how fast the client is.
UNKNOWN = 0.150
#: A terminal paints the last output after its command has ended.
TERMINAL = 0.060
STRICT_QUIET = 0.750
UNPAINTED = 0.400
#: A panel that hides when a window covers it begins to do so half a second after the window has mapped (xfce4-panel).
DOCK = 0.650
#: Upright and at most this wide: a scroll bar, after a scroll. Pixels.
SCROLL_BAR = 16
#: An animation: this many changes in the last second, no pause longer than this, this part of the screen at most.
ANIMATION_CHANGES, ANIMATION_PAUSE, ANIMATION_AREA = 15, 0.150, 0.02
#: A button that a key has pressed is shown pressed before it acts: in GTK for 250 ms (gtkbutton.c, ACTIVATE_TIMEOUT),
#: in Qt for 100 ms; timers may be late. In GTK's file dialog one passes the key on to another, which does the same.
BUTTON, BUTTONS_OF_A_DIALOG = 0.280, 2
#: Nothing tells when a terminal's foreground process group changes: it is asked again after this many seconds.
ASK_AGAIN = 0.020


class Verdict(NamedTuple):
    """``outcome`` is ``settled``, ``timeout``, ``animating`` or ``none`` (nothing was waited for)."""

    outcome: str
    waited: float
    moving: List[List[int]]

    @property
    def settled(self) -> bool:
        return self.outcome in ("settled", "none")

    def beside(self, moving: List[List[int]]) -> "Verdict":
        """The same, where something was known to move and does so still."""
        if not moving:
            return self
        return Verdict("animating" if self.settled else self.outcome, self.waited, [*self.moving, *moving])


NOT_WAITED = Verdict("none", 0.0, [])


class Input(NamedTuple):
    """What was done last: when it was done (CLOCK_MONOTONIC), to which windows, and whether it was a move or a scroll.

    ``loads``: it was a key or a click, which may load something; ``starts``: which may start a program; ``presses``: a
    key that presses a button where one has the focus; ``launched``: it has opened an application. It began at ``began``
    (0: when it was done): what it opens may have come before a key of it is released.
    """

    time: float
    windows: Sequence[int]
    hover: bool = False
    scroll: bool = False
    loads: bool = True
    starts: bool = False
    presses: bool = False
    launched: bool = False
    began: float = 0.0


def wait_until_settled(
    conn: Connection,
    pings: Pings,
    watch: ScreenWatch,
    last: Input,
    timeout: float = 2.0,
    strict: bool = False,
    newcomers: Optional[client_processes.Newcomers] = None,
) -> Verdict:
    """Wait until the screen has stopped changing after ``last``, at most ``timeout`` seconds from now.

    ``newcomers`` knows the programs that started since before the action.
    """
    began = time.monotonic()
    deadline = began + timeout
    waiting = _Waiting(conn, pings, watch, last, strict, newcomers if last.starts else None)
    while True:
        watch.look()
        now = time.monotonic()
        wake = waiting.settled_at(now)
        if wake is not None and now >= wake:
            if not waiting.is_blocked(now):
                return Verdict("settled", now - began, [])
            wake = now + ASK_AGAIN
        if waiting.is_animation(now):
            return Verdict("animating", now - began, watch.moving(now - 1.0))
        if now >= deadline:
            waiting.give_up()
            return Verdict("timeout", now - began, watch.moving(now - 0.5))
        until = deadline if wake is None else min(wake, deadline)
        _until_something_happens(conn, watch, waiting.news(), until)


def wait_fixed(conn: Connection, watch: ScreenWatch, seconds: float) -> Verdict:
    """Wait exactly that long, and say what moved at the end of it."""
    began = time.monotonic()
    while True:
        watch.look()
        now = time.monotonic()
        if now >= began + seconds:
            break
        _until_something_happens(conn, watch, lambda: False, began + seconds)
    moving = watch.moving(now - min(seconds, CONTENT))
    return Verdict("timeout" if moving else "settled", now - began, moving)


class _Waiting:
    """What is known while one action's effects are waited for."""

    def __init__(
        self,
        conn: Connection,
        pings: Pings,
        watch: ScreenWatch,
        last: Input,
        strict: bool,
        newcomers: Optional[client_processes.Newcomers],
    ) -> None:
        self._conn = conn
        self._pings = pings
        self._watch = watch
        self._last = last
        self._strict = strict
        self._newcomers = newcomers
        targets = [(window, pings.target(window)) for window in last.windows if window]
        self._asked = [pings.send(target) for target in dict.fromkeys(t for _window, t in targets if t is not None)]
        self._handled: Optional[float] = None if self._asked else last.time + UNANSWERED
        pids = dict.fromkeys(client_processes.pid_of(conn, target or window) for window, target in targets)
        self._clients = [pid for pid in pids if pid]
        self._terminals = [pid for pid in self._clients if client_processes.is_terminal(pid)]
        self._content = last.loads and any(map(client_processes.has_content_processes, self._clients))
        self._slowest = 0.0
        self._docks: Optional[List[Rect]] = None
        self._was_running = False
        self._freed = 0.0
        presses = last.presses and not self._terminals and not self._content
        self._pressed = self._windows_of(targets) if presses else []
        self._went = 0.0

    def settled_at(self, now: float) -> Optional[float]:
        """The time from which on the screen counts as settled if nothing more happens; None while a ping is open."""
        if self._handled is None:
            answers = [self._pings.answered(ping) for ping in self._asked]
            if None in answers:
                return None
            self._handled = now
            self._slowest = max(answer for answer in answers if answer is not None)
        watch = self._watch
        hovering = self._last.hover and not any(mapped.override_redirect for mapped in self._come())
        counting = self._counting()
        if not counting:
            at = self._handled + (HOVER if hovering else FIRST_CHANGE)
        else:
            at = counting[-1].time + max(self._quiet(counting), HOVER if hovering else 0.0)
        patience = UNPAINTED + QUIET_BY_PING * self._slowest
        unpainted = [mapped.time + patience for mapped in watch.unpainted(patience)]
        uncovered = [place.time + patience for place in watch.uncovered(patience)]
        covering = [mapped.time + DOCK for mapped in watch.shown if self._covers_a_dock(mapped)]
        return max([at, self._freed + TERMINAL, self._went + QUIET_AT_LEAST, *unpainted, *uncovered, *covering])

    def _come(self) -> List[Mapped]:
        """The windows that have come since the action began, and can be seen."""
        began = self._last.began or self._last.time
        return [mapped for mapped in self._watch.shown if mapped.time >= began]

    def _covers_a_dock(self, mapped: Mapped) -> bool:
        """Whether it is a window over a panel that hides then. A launch maps its window before it has ended."""
        if mapped.override_redirect or mapped.time + DOCK < self._last.time:
            return False
        if self._docks is None:
            self._docks = docks.hiding_docks(self._conn)
        x, y, width, height = mapped.rect
        return any(
            x < left + wide and left < x + width and y < top + high and top < y + height
            for left, top, wide, high in self._docks
        )

    def is_blocked(self, now: float) -> bool:
        """Whether something says that more is to come although nothing changes. Asked only when all is quiet."""
        if self._watch.busy or self._program_starts() or self._button_acts_later(now):
            return True
        if self._last.launched and not self._content:
            # Those are started when the first window is there already.
            self._content = any(map(client_processes.has_content_processes, self._clients))
            if self._content:
                return True
        running = any(
            client_processes.command_running(pid, self._watch.began) or client_processes.has_work(pid)
            for pid in self._terminals
        )
        if running != self._was_running:
            self._was_running = running
            self._freed = 0.0 if running else now
            return True
        return running

    def _windows_of(self, targets: Sequence[Tuple[int, Optional[int]]]) -> List[Window]:
        """The windows that got the key, as they were when they had read it."""
        found = []
        for window in dict.fromkeys(target or window for window, target in targets):
            try:
                found.append(windows.get_window(self._conn, window))
            except ActionFailed:
                continue  # it has gone, which is what was to be waited for
        return found

    def _button_acts_later(self, now: float) -> bool:
        """Whether a key may have pressed a button that has not acted yet: no window has come, and its own is there."""
        assert self._handled is not None
        if not self._pressed or self._come():
            return False
        dialog = any(window.type == "dialog" for window in self._pressed)
        patience = BUTTON * (BUTTONS_OF_A_DIALOG if dialog else 1) + self._quiet(self._counting())
        if self._went or now >= self._handled + patience:
            return False
        if not all(map(self._is_shown, self._pressed)):
            self._went = now  # its frame goes a moment later, when the window manager has heard of it
        return True

    def _is_shown(self, window: Window) -> bool:
        try:
            return core.get_window_attributes(self._conn, window.id).map_state == core.MAP_STATE_VIEWABLE
        except RequestFailed:
            return False

    def _program_starts(self) -> bool:
        """Whether a program has been started, and no window has come yet."""
        if self._newcomers is None or any(not mapped.override_redirect for mapped in self._watch.shown):
            return False
        return self._newcomers.starting()

    def is_animation(self, now: float) -> bool:
        """Whether what still changes is small, never pauses, and is or was no throbber: more comes when one ends."""
        if self._handled is None:
            return False
        recent = [change for change in self._counting() if change.time >= now - 1.0]
        if len(recent) < ANIMATION_CHANGES or 2 * sum(change.tiny for change in recent) >= len(recent):
            return False
        times = [now - 1.0, *[change.time for change in recent], now]
        pauses = [later - earlier for earlier, later in zip(times, times[1:])]  # noqa: RUF007 (Python 3.9)
        if max(pauses) > ANIMATION_PAUSE:
            return False
        area = sum(width * height for _x, _y, width, height in self._watch.moving(now - 1.0))
        return area <= ANIMATION_AREA * self._watch.area

    def give_up(self) -> None:
        """The time is over: who has not answered by now is not asked again."""
        for ping in self._asked:
            if self._pings.answered(ping) is None:
                self._pings.give_up(ping)

    def news(self) -> Callable[[], bool]:
        """Whether a ping has been answered since now."""
        return functools.partial(self._fewer_unanswered, self._unanswered())

    def _unanswered(self) -> int:
        return sum(self._pings.answered(ping) is None for ping in self._asked) if self._handled is None else 0

    def _fewer_unanswered(self, before: int) -> bool:
        return self._unanswered() < before

    def _counting(self) -> List[Change]:
        """The changes since the action that mean something."""
        bars = self._last.scroll and not self._strict
        return [
            change
            for change in self._watch.changes
            if change.time >= self._last.time and not change.caret and not (bars and _is_scroll_bar(change))
        ]

    def _quiet(self, counting: Sequence[Change]) -> float:
        if self._strict and self._last.scroll:
            return STRICT_QUIET
        if not self._asked:
            return TERMINAL if self._terminals else UNKNOWN
        quiet = max(QUIET_AT_LEAST, min(QUIET_AT_MOST, QUIET + QUIET_BY_PING * self._slowest))
        if self._content:
            quiet = max(quiet, CONTENT_STARTS if self._last.launched else CONTENT)
        return max(quiet, THROBBER) if counting and _is_throbber(counting) else quiet


def _is_throbber(counting: Sequence[Change]) -> bool:
    """Was the last change tiny, and not the first tiny one of the last half second?"""
    last = counting[-1]
    return last.tiny and sum(change.tiny for change in counting if change.time >= last.time - THROBBER_MEMORY) >= 2


def _is_scroll_bar(change: Change) -> bool:
    return all(width <= SCROLL_BAR and height >= 2 * width for _x, _y, width, height in change.rects)


def _until_something_happens(conn: Connection, watch: ScreenWatch, news: Callable[[], bool], wake: float) -> None:
    """Wait until there is something new to look at, ``news()`` is true, or time alone decides."""
    if watch.pending:  # not again at once: a screen that changes all the time would keep this process busy
        wake = min(wake, watch.next_look)
        conn.wait(lambda: False, max(0.0, wake - time.monotonic()))
    else:
        conn.wait(lambda: watch.pending or news(), max(0.0, wake - time.monotonic()))
