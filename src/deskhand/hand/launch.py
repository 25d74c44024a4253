"""Open an application and wait for its window.

The answer is evidence and not hope: a window that was seen, or a failure that says what was seen instead. See
``opener`` for what is run, ``keeper`` for who runs it, ``launch_watch`` for which window counts.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from typing import Any, Dict, Optional

from . import launch_environment, launch_watch, launched_process, opener, state, window_actions, windows
from .applications import Entry
from .errors import ActionFailed, DeskhandError, SetupError
from .launch_environment import LaunchEnvironment
from .launch_watch import LaunchWatch, Sight
from .launched_process import LaunchedProcess
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
) -> Dict[str, Any]:
    """Open ``entry`` on ``display``, which ``conn`` is connected to, and wait until its window is seen.

    Gives ``{"outcome": "window"|"focus", "window": {"id", "title", "app_id", "rect"}, "matched", "focused",
    "elapsed_ms", "id", "name", "opener", "pid", "group"}``, and ``"note"`` when something was passed over. ``outcome``
    is ``"focus"`` when an application that ran already raised a window. ``matched`` false: a window came up after the
    opener had ended, and nothing tells that it is the application's. ``focused`` false: keys would go elsewhere.
    ``pid`` is the window's process when it is one of the launch, ``group`` the session and process group that the
    launch began in; None when nothing of the launch is left.

    ``pings`` is not used now; it shares the connection and its events. ``environment`` is found when it is not given.

    Raises:
        ActionFailed: no window within ``timeout`` seconds (60 at most), or an early death. The application may have
            been started: ``facts`` holds ``id``, ``pid``, ``running``, ``exit``, ``last_words`` and ``candidates``.
        Unsupported: this desktop has nothing to open it with. Nothing was started.
    """
    timeout = min(timeout, LONGEST_TIMEOUT)
    began = time.monotonic()
    core.select_input(conn, conn.root, ROOT_EVENTS)
    where = environment or launch_environment.find(conn, display, xauthority)
    startup_time = core.server_time(conn)
    mark = uuid.uuid4().hex
    startup_id = f"deskhand-{os.getpid()}-{socket.gethostname()}-{mark[:12]}_TIME{startup_time}"
    env = {**where.env, "DESKTOP_STARTUP_ID": startup_id}
    way: Optional[opener.Opener] = opener.choose(entry, env, where.window_manager, where.account)
    watch = LaunchWatch(conn, entry, startup_id, startup_time)
    while way is not None:
        process = launched_process.start(way.argv, env, way.directory, where.account, mark)
        record = _Record(display, entry, process, keep_open, session)
        try:
            sight = _wait(conn, watch, process, way, began + timeout)
            if sight is None and way.fallback is not None and _ended_badly(process, way):
                way = way.fallback
                continue
            if sight is None:
                raise _failure(entry, watch, process, way, timeout)
            mark_launched(conn, sight.window.id, mark)
            record.complete(sight)
            return _answer(conn, entry, sight, process, way, began)
        finally:
            record.note(process)
            process.stop_listening()
    raise AssertionError("a launch has at least one way")


def _wait(
    conn: Connection, watch: LaunchWatch, process: LaunchedProcess, way: opener.Opener, deadline: float
) -> Optional[Sight]:
    """The window that ends the wait; None when the launch has failed."""
    seen: Optional[Sight] = None
    named_by: Optional[float] = None

    def over() -> bool:
        nonlocal seen, named_by
        process.read()
        seen = watch.look(process)
        if seen is not None and not way.direct and watch.is_of_opener(seen.window, process):
            # Openers have no windows but the one that says what went wrong.
            return True
        if seen is not None and (seen.matched or process.over):
            if seen.matched and seen.sure:
                return True
            named_by = named_by or time.monotonic() + (_LATE_WINDOW if seen.matched else _LATE_NAME)
            return time.monotonic() >= named_by
        named_by = None
        return _ended_badly(process, way)

    ended = False
    while not ended and time.monotonic() < deadline:
        # The keeper's report ends with the keeper; from then on only X events are waited for.
        listening = process.listening
        fds = (process.fileno(),) if listening else ()
        until = deadline if named_by is None else min(deadline, named_by)

        def over_or_changed(listening: bool = listening, was_named_by: Optional[float] = named_by) -> bool:
            nonlocal ended
            ended = over()
            return ended or process.listening != listening or named_by != was_named_by

        windows.await_state(conn, over_or_changed, max(0.0, until - time.monotonic()), fds)
    if seen is None or not (seen.matched or process.over):
        return None
    if not way.direct and watch.is_of_opener(seen.window, process):
        watch.candidates.append((seen.window, f"is {way.name}'s own message"))
        return None
    return seen


def _ended_badly(process: LaunchedProcess, way: opener.Opener) -> bool:
    """Whether the launch is over: its opener failed, or all it started has ended and the last of it failed.

    An opener that ends with 0 and leaves nothing is no failure yet: an application that runs already may be on its way.
    """
    if process.error is not None or process.failure is not None:
        return True
    return not way.direct and process.opener_exit is not None and process.opener_exit.failed


def _failure(
    entry: Entry, watch: LaunchWatch, process: LaunchedProcess, way: opener.Opener, timeout: float
) -> ActionFailed:
    words = process.last_words()
    said = f"; its last words: {words}" if words else ""
    facts: Dict[str, Any] = {
        "id": entry.id,
        "opener": way.name,
        "pid": process.pid,
        "running": not process.over and process.error is None,
        "exit": str(process.failure or process.opener_exit) if process.opener_exit else None,
        "last_words": words,
        "candidates": launch_watch.brief(watch.candidates),
    }
    own = [window for window, _ in watch.candidates if watch.is_of_opener(window, process)]
    if process.error is not None:
        what = f"{entry.name} can not be started: {way.argv[0]}: {process.error}"
    elif own and not way.direct:
        what = f"{entry.name} was not opened: {way.name} shows {own[-1].title!r} in window {own[-1].id}; close it{said}"
    elif _ended_badly(process, way):
        bad = process.failure or process.opener_exit
        what = f"{entry.name} ended before it opened a window, with {bad}{said}"
    else:
        seen = launch_watch.describe(watch.candidates)
        if process.over:
            how = (
                f"{way.name if not way.direct else 'it'} has ended with {process.opener_exit}"
                if process.opener_exit
                else ""
            )
            still = how or "it has ended"
        else:
            still = f"it is still running (pid group {process.pid})"
        what = f"{entry.name} opened no window within {timeout:g} s; {still}{seen}{said}"
    return ActionFailed(f"{what}; {_NOT_RUN}", **facts)


def _answer(
    conn: Connection, entry: Entry, sight: Sight, process: LaunchedProcess, way: opener.Opener, began: float
) -> Dict[str, Any]:
    elapsed = round((time.monotonic() - began) * 1000)
    try:
        focused = bool(window_actions.activate(conn, sight.window.id, _FOCUS_PATIENCE)["focused"])
    except ActionFailed:
        focused = False
    process.read()
    over = process.over
    window_pids = [pid for pid in sight.window.pids if process.owns([pid])]
    pid = window_pids[0] if window_pids else None if process.opener_exit is not None else process.pid
    answer: Dict[str, Any] = {
        "outcome": sight.outcome,
        "window": sight.window.brief(),
        "matched": sight.matched,
        "focused": focused,
        "elapsed_ms": elapsed,
        "id": entry.id,
        "name": entry.name,
        "opener": way.name,
        "pid": pid,
        "group": None if over else process.pid,
    }
    # The title is often set after the window is mapped; what a caller reads should be what a person sees now.
    try:
        answer["window"] = windows.get_window(conn, sight.window.id).brief()
    except ActionFailed:
        pass
    if way.note:
        answer["note"] = way.note
    return answer


class _Record:
    """The launch as ``state`` remembers it: from the start, so that one that hangs can be quit too."""

    def __init__(
        self, display: str, entry: Entry, process: LaunchedProcess, keep_open: bool, session: Optional[str]
    ) -> None:
        self._display = display
        self._facts: Dict[str, Any] = {
            "id": entry.id,
            "name": entry.name,
            "pid": process.keeper,
            "start_time": process.keeper_start,
            "mark": process.mark,
            "keep_open": keep_open,
            "session": session,
            "window": None,
            "ran_before": False,
        }
        self._written = False
        self._write()

    def complete(self, sight: Sight) -> None:
        self._facts.update(window=sight.window.id, ran_before=sight.outcome == "focus")

    def note(self, process: LaunchedProcess) -> None:
        """Write what is known now, or forget a launch of which nothing is left."""
        process.read()
        try:
            state.forget_launched(self._display, process.keeper, process.keeper_start)
        except (SetupError, OSError):
            return
        if not process.over or self._facts["window"] is not None:
            self._write()

    def _write(self) -> None:
        try:
            state.record_launched(self._display, self._facts)
        except (DeskhandError, OSError):
            pass  # a launch that can not be remembered is still a launch; quitting it by its windows works
