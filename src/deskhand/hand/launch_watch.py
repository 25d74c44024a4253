"""Which window shows that a launch has worked: the rules, looked at after every X event.

Sources: EWMH, _NET_CLIENT_LIST, _NET_WM_WINDOW_TYPE, _NET_ACTIVE_WINDOW; ICCCM 4.1.3.1, WM_STATE; Startup Notification.
"""

from __future__ import annotations

import os
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import exec_line
from .applications import Entry
from .launcher import Launching
from .window_properties import Window, read_windows, watch
from .windows import (
    WINDOW_EVENTS,
    active_window,
    current_desktop,
    is_shown,
    managed,
    read_all,
    window_ids,
)
from .x11 import Connection

#: Windows that an application shows beside its own, or before it.
NO_WINDOW_OF_ITS_OWN = ("splash", "notification", "tooltip", "dock", "desktop")
#: Programs whose name says nothing about the application they run.
_INTERPRETERS = ("sh", "bash", "dash", "env", "python", "python3", "perl", "ruby", "java", "node", "flatpak", "snap")


class Sight(NamedTuple):
    """A window that counts. ``outcome`` is ``"window"`` (new) or ``"focus"`` (an old one was raised).

    ``sure`` false: one that had the focus already and only took another title. A better one may be on its way.
    """

    outcome: str
    window: Window
    matched: bool
    sure: bool = True


class LaunchWatch:
    """What is on the screen before the launch, and what is different now."""

    def __init__(self, conn: Connection, entry: Entry) -> None:
        self._conn = conn
        self._names = names_of(entry)
        self._startup_id = ""
        self._startup_time: Optional[int] = None
        self._old: Dict[int, Window] = {window.id: window for window in read_all(conn)}
        there = window_ids(conn)
        if managed(conn):
            # A client list names windows that are not shown too: minimised, or on other desktops.
            self._old.update((window.id, window) for window in read_windows(conn, there))
        #: Without a client list these are also what an application keeps and never shows, such as menus.
        self._there: Set[int] = set(there)
        self._active = active_window(conn)
        watch(conn, list(self._old), WINDOW_EVENTS)
        #: Why the windows seen so far do not count, the last look's: ``(window, reason)``.
        self.candidates: List[Tuple[Window, str]] = []
        self._owned: Dict[int, bool] = {}

    def expect(self, startup_id: str, startup_time: int) -> None:
        """What the application was told, and may show on its window. To be said before the first look."""
        self._startup_id = startup_id
        self._startup_time = startup_time

    def look(self, launching: Launching) -> Optional[Sight]:
        """The window that counts now and is the application's, else one that counts (``matched`` false), or None."""
        conn = self._conn
        self.candidates = []
        ids = window_ids(conn)
        new = [window for window in ids if window not in self._old]
        # Events first, the state after them: what changes in between is not missed.
        watch(conn, new, WINDOW_EVENTS)
        active = active_window(conn)
        desktop = current_desktop(conn)
        sights: List[Sight] = []
        for window in read_windows(conn, new):
            reason = self._does_not_count(window, desktop)
            if reason:
                if window.id not in self._there:
                    self.candidates.append((window, reason))
            else:
                sights.append(Sight("window", window, self._is_its_own(window, launching)))
        for window in read_windows(conn, [one for one in ids if one in self._old]):
            if self._was_raised(window, active) and is_shown(conn, window, desktop):
                matched = self._is_its_own(window, launching)
                if matched:
                    sights.append(Sight("focus", window, True))
                elif window.id == active and active != self._active:
                    self.candidates.append((window, "took the focus and is not known to be the application's"))
            elif self._was_told(window, active, launching):
                sights.append(Sight("focus", window, True, sure=False))
        sights.sort(key=lambda sight: (sight.matched, sight.sure, sight.window.id == active, sight.outcome == "window"))
        self.candidates += [(one.window, "is not known to be the application's") for one in sights if not one.matched]
        return sights[-1] if sights else None

    def _does_not_count(self, window: Window, desktop: Optional[int]) -> str:
        if window.override_redirect:
            return "is a popup"
        if window.type in NO_WINDOW_OF_ITS_OWN:
            return f"is a {window.type}"
        if not is_shown(self._conn, window, desktop):
            elsewhere = desktop is not None and window.desktop not in (None, -1, desktop)
            return f"is on desktop {window.desktop}" if elsewhere else "is not shown"
        if not managed(self._conn) and min(window.rect[2:]) <= 1:
            return "is one pixel"
        return ""

    def _was_raised(self, window: Window, active: Optional[int]) -> bool:
        old = self._old[window.id]
        return (
            (window.id == active and active != self._active)
            or (window.startup_id == self._startup_id != "" and old.startup_id != window.startup_id)
            # An application that is told the startup id and has the focus already only notes its time.
            or (window.user_time == self._startup_time and old.user_time != window.user_time)
            or ("demands_attention" in window.states and "demands_attention" not in old.states)
            or (window.viewable and not old.viewable)
        )

    def _was_told(self, window: Window, active: Optional[int], launching: Launching) -> bool:
        """Whether an application that ran, in the window that had the focus all along, seems to have taken the work.

        An editor opens a new tab there, and raises nothing, as it is raised: the title is all that changes.
        """
        if window.id != active or active != self._active or not launching.over:
            return False
        return window.title != self._old[window.id].title and self._is_its_own(window, launching)

    def _is_its_own(self, window: Window, launching: Launching) -> bool:
        if window.startup_id and window.startup_id == self._startup_id:
            return True
        if window.user_time == self._startup_time and window.id in self._old:
            return True
        if not self._owned.get(window.id):
            self._owned[window.id] = launching.owns(window.pids)
        if self._owned[window.id]:
            return True
        if not self._names & set(window.names):
            return False
        # A window of another launch of the same program is its own, unless this launch has passed the work on to it.
        return not launching.is_of_another(window.pids) or launching.over

    def is_of_opener(self, window: Window, launching: Launching) -> bool:
        """Whether a window is the opener's own: it shows a dialog when it can not start the application."""
        return launching.pid is not None and launching.pid in window.pids


def names_of(entry: Entry) -> Set[str]:
    """The names, case-folded, by which a window's WM_CLASS or application id tells that it is the entry's.

    ``StartupWMClass``, the id, the last part of an id like ``org.xfce.mousepad``, and the program.
    """
    names = [entry.startup_wm_class or "", entry.id, entry.id.rpartition(".")[2]]
    try:
        program = os.path.basename(exec_line.entry_arguments(entry)[0])
        if program not in _INTERPRETERS:
            names.append(program)
    except exec_line.ExecLineError:
        pass
    return {name.casefold() for name in names if name}


def describe(candidates: Sequence[Tuple[Window, str]]) -> str:
    """What else was seen, for the sentence of a failure; ``""`` when nothing was."""
    if not candidates:
        return ""
    window, reason = candidates[-1]
    return f"; window {window.id} {window.title!r} appeared but {reason}"


def brief(candidates: Iterable[Tuple[Window, str]]) -> List[Dict[str, object]]:
    return [{**window.brief(), "reason": reason} for window, reason in candidates]
