"""Open an application and wait for its window.

The answer is evidence and not hope: a window that was seen, or a failure that says what was seen instead. See
``launcher`` for who starts it, ``opener`` for what is run, ``launch_watch`` for which window counts.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Optional

from . import launch_watch, window_actions, windows
from .applications import Entry
from .errors import ActionFailed
from .launch_environment import LaunchEnvironment
from .launch_watch import LaunchWatch, Sight
from .launcher import Launcher, Launching
from .own_launcher import OwnLauncher
from .ping import ROOT_EVENTS, Pings
from .window_properties import mark_launched
from .x11 import Connection, core

LONGEST_TIMEOUT = 60.0
#: Seconds a window manager is given to move the focus to a new window, once it is asked to.
_FOCUS_PATIENCE = 2.0
#: Seconds a new window is given to take its name when nothing else tells whose it is: LibreOffice maps a window of
#: an application that runs already under another class.
_LATE_NAME = 0.5
#: Seconds a new window is given to come, once only the title of one that was there tells of the launch.
_LATE_WINDOW = 2.0
_NOT_RUN = "the rest of the batch was not run"


def launch(
    conn: Connection,
    pings: Optional[Pings],
    entry: Entry,
    *,
    display: str,
    xauthority: Optional[str] = None,
    timeout: float = 10.0,
    keep_open: bool = False,
    session: Optional[str] = None,
    environment: Optional[LaunchEnvironment] = None,
    launcher: Optional[Launcher] = None,
) -> Dict[str, Any]:
    """Open ``entry`` on ``display``, which ``conn`` is connected to, and wait until its window is seen.

    Gives ``{"outcome": "window"|"focus", "window": {"id", "title", "app_id", "rect"}, "matched", "focused",
    "elapsed_ms", "id", "name", "opener", "pid", "group"}``, and ``"note"`` when something was passed over. ``outcome``
    is ``"focus"`` when an application that ran already raised a window. ``matched`` false: a window came up after the
    opener had ended, and nothing tells that it is the application's. ``focused`` false: keys would go elsewhere.
    ``pid`` is the window's process when it is one of the launch, ``group`` the session and process group that the
    launch began in; None when nothing of the launch is left.

    ``pings`` is not used now; it shares the connection and its events. ``launcher`` starts it; when it is not given
    this process does, with ``environment``, which is found when that is not given either.

    Raises:
        ActionFailed: no window within ``timeout`` seconds (60 at most), or an early death. The application may have
            been started: ``facts`` holds ``id``, ``pid``, ``running``, ``exit``, ``last_words`` and ``candidates``.
        Unsupported: this desktop has nothing to open it with. Nothing was started.
    """
    timeout = min(timeout, LONGEST_TIMEOUT)
    began = time.monotonic()
    core.select_input(conn, conn.root, ROOT_EVENTS)
    launcher = launcher or OwnLauncher(conn, display, xauthority, environment)
    watch = LaunchWatch(conn, entry)
    launching = launcher.start(entry, keep_open, session)
    watch.expect(launching.startup_id, launching.startup_time)
    try:
        sight = _wait(conn, watch, launching, began + timeout)
        if sight is None:
            raise _failure(entry, watch, launching, timeout)
        mark_launched(conn, sight.window.id, launching.mark)
        conn.sync()  # the launcher may look for the mark as soon as it is told
        launching.complete(sight.window.id)
        return _answer(conn, entry, sight, launching, began)
    finally:
        launching.close()


def _wait(conn: Connection, watch: LaunchWatch, launching: Launching, deadline: float) -> Optional[Sight]:
    """The window that ends the wait; None when the launch has failed."""
    seen: Optional[Sight] = None
    named_by: Optional[float] = None

    def over() -> bool:
        nonlocal seen, named_by
        launching.read()
        seen = watch.look(launching)
        if seen is not None and not launching.direct and watch.is_of_opener(seen.window, launching):
            # Openers have no windows but the one that says what went wrong.
            return True
        if seen is not None and (seen.matched or launching.over):
            if seen.matched and seen.sure:
                return True
            named_by = named_by or time.monotonic() + (_LATE_WINDOW if seen.matched else _LATE_NAME)
            return time.monotonic() >= named_by
        named_by = None
        return launching.ended_badly

    ended = False
    while not ended and time.monotonic() < deadline:
        # The news ends with the keeper, or goes on elsewhere; without any, only X events are waited for.
        source = launching.fileno()
        fds = (source,) if source >= 0 else ()
        until = deadline if named_by is None else min(deadline, named_by)

        def over_or_changed(source: int = source, was_named_by: Optional[float] = named_by) -> bool:
            nonlocal ended
            ended = over()
            return ended or launching.fileno() != source or named_by != was_named_by

        windows.await_state(conn, over_or_changed, max(0.0, until - time.monotonic()), fds)
    if seen is None or not (seen.matched or launching.over):
        return None
    if not launching.direct and watch.is_of_opener(seen.window, launching):
        watch.candidates.append((seen.window, f"is {launching.opener}'s own message"))
        return None
    return seen


def _failure(entry: Entry, watch: LaunchWatch, launching: Launching, timeout: float) -> ActionFailed:
    words = launching.last_words()
    said = f"; its last words: {words}" if words else ""
    facts: Dict[str, Any] = {
        "id": entry.id,
        "opener": launching.opener,
        "pid": launching.pid,
        "running": not launching.over and launching.error is None,
        "exit": str(launching.failure or launching.opener_exit) if launching.opener_exit else None,
        "last_words": words,
        "candidates": launch_watch.brief(watch.candidates),
    }
    own = [window for window, _ in watch.candidates if watch.is_of_opener(window, launching)]
    if launching.error is not None:
        what = f"{entry.name} can not be started: {launching.program}: {launching.error}"
    elif own and not launching.direct:
        shows = f"{launching.opener} shows {own[-1].title!r} in window {own[-1].id}"
        what = f"{entry.name} was not opened: {shows}; close it{said}"
    elif launching.ended_badly:
        bad = launching.failure or launching.opener_exit
        what = f"{entry.name} ended before it opened a window, with {bad}{said}"
    else:
        seen = launch_watch.describe(watch.candidates)
        if launching.over:
            how = (
                f"{launching.opener if not launching.direct else 'it'} has ended with {launching.opener_exit}"
                if launching.opener_exit
                else ""
            )
            still = how or "it has ended"
        else:
            still = f"it is still running (pid group {launching.pid})"
        what = f"{entry.name} opened no window within {timeout:g} s; {still}{seen}{said}"
    return ActionFailed(f"{what}; {_NOT_RUN}", **facts)


def _answer(conn: Connection, entry: Entry, sight: Sight, launching: Launching, began: float) -> Dict[str, Any]:
    elapsed = round((time.monotonic() - began) * 1000)
    try:
        focused = bool(window_actions.activate(conn, sight.window.id, _FOCUS_PATIENCE)["focused"])
    except ActionFailed:
        focused = False
    launching.read()
    over = launching.over
    window_pids = [pid for pid in sight.window.pids if launching.owns([pid])]
    pid = window_pids[0] if window_pids else None if launching.opener_exit is not None else launching.pid
    answer: Dict[str, Any] = {
        "outcome": sight.outcome,
        "window": sight.window.brief(),
        "matched": sight.matched,
        "focused": focused,
        "elapsed_ms": elapsed,
        "id": entry.id,
        "name": entry.name,
        "opener": launching.opener,
        "pid": pid,
        "group": None if over else launching.pid,
    }
    # The title is often set after the window is mapped; what a caller reads should be what a person sees now.
    try:
        answer["window"] = windows.get_window(conn, sight.window.id).brief()
    except ActionFailed:
        pass
    if launching.note:
        answer["note"] = launching.note
    return answer
