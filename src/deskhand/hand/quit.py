"""Quit an application: ask it politely, tell what came of it, and end by force only what this project launched."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional

from . import window_actions, windows
from .applications import Entry
from .errors import ActionFailed
from .launch_watch import names_of
from .launcher import Launch, Launcher
from .launches import wait_for_end
from .own_launcher import OwnLauncher
from .window_properties import Window
from .x11 import Connection

#: Seconds that what started an application gets to end after it.
_WRAPPER_PATIENCE = 0.3
#: Seconds a window manager gets to strike the windows of killed processes off its list.
_LIST_PATIENCE = 2.0


def quit_application(
    conn: Connection,
    *,
    app: Optional[str] = None,
    window: Optional[int] = None,
    force: bool = False,
    timeout: float = 5.0,
    display: str,
    session: Optional[str] = None,
    entry: Optional[Entry] = None,
    launcher: Optional[Launcher] = None,
) -> Dict[str, Any]:
    """Quit the application ``app`` (an id or a name; ``entry`` when it was found), or close one ``window``.

    Gives ``{"outcome": "closed"|"asked"|"not_running", ...}``: ``"closed"`` when its windows are gone, with
    ``"running": true`` when a process of it goes on all the same; ``"asked"`` when a dialog came up instead, which
    ``"dialog"`` tells: ``{"id", "title", "app_id", "rect"}``. With ``force`` the processes of the launch are ended
    (SIGTERM, then SIGKILL) and ``"ended"`` counts them.

    ``app`` means the windows of what this project launched by that id or name; when there are none, the windows that
    go by it. ``session`` limits ``force`` to what that session launched; without a name, to what this project did.
    ``launcher`` knows what was launched; when it is not given this process does.

    Raises:
        ActionFailed: it is still open after ``timeout`` seconds and asks nothing; or ``force`` was asked for something
            that this project did not launch on this display; or anything else, by a launcher that quits only its own.
    """
    if (app is None) == (window is None):
        raise ValueError("quit takes either app or window")
    launcher = launcher or OwnLauncher(conn, display)
    facts = windows.get_window(conn, window) if window is not None else None
    owned = _launches(launcher, app, facts, entry)
    wanted = [facts] if facts is not None else _windows(conn, owned, str(app), entry)
    label = f"window {window}" if app is None else (entry.name if entry is not None else app)
    if launcher.quits_only_its_own and wanted and not owned:
        raise ActionFailed(f"{label} was not launched here, and only what was is quit: close its window instead")
    alive = [launch for launch in owned if launch.alive]
    if force:
        return _by_force(conn, label, owned, wanted, timeout, session)
    if not wanted:
        if alive:
            raise ActionFailed(
                f"{label} runs but has no window to close (pid {alive[0].keeper}): quit it with force",
                pids=[launch.keeper for launch in alive],
            )
        _forget(owned)
        return {"outcome": "not_running"}
    deadline = time.monotonic() + timeout
    result = window_actions.close_windows(conn, [one.id for one in wanted], timeout)
    if result.dialog is not None:
        return {"outcome": "asked", "dialog": result.dialog, "windows": result.open}
    if result.open:
        raise ActionFailed(
            f"{label} is still open after {timeout:g} s and no dialog is: it may be asking inside its window;"
            " take a picture, or quit it with force if it was launched here",
            windows=result.open,
        )
    # An application that is opened again while it still ends often refuses to start. The windows' own processes are
    # waited for, and what is left (a crash reporter, a tray) for a moment.
    owners = {pid for one in wanted for pid in one.pids} & {pid for launch in alive for pid in launch.processes()}
    wait_for_end(owners, max(0.0, deadline - time.monotonic()))
    for launch in alive:
        launch.wait(min(_WRAPPER_PATIENCE, max(0.0, deadline - time.monotonic())))
    answer: Dict[str, Any] = {"outcome": "closed", "windows": [one.id for one in wanted]}
    if any(launch.alive for launch in alive):
        answer["running"] = True
    _forget(owned)
    return answer


def _launches(launcher: Launcher, app: Optional[str], window: Optional[Window], entry: Optional[Entry]) -> List[Launch]:
    """The launches that are meant."""
    left = launcher.launches()
    if window is not None:
        return [launch for launch in left if launch.owns(window)]
    assert app is not None
    asked = {app.casefold(), (entry.id if entry is not None else app).casefold()}
    return [launch for launch in left if {launch.id.casefold(), launch.name.casefold()} & asked]


def _windows(conn: Connection, owned: List[Launch], app: str, entry: Optional[Entry]) -> List[Window]:
    """The windows to close: those of the launches, or those that go by the name."""
    shown = [one for one in windows.read_all(conn) if one.type not in ("desktop", "dock", "notification")]
    mine = [one for one in shown if any(launch.owns(one) for launch in owned)]
    if mine:
        return _without_dialogs(mine)
    names = {app.casefold()} | (names_of(entry) if entry is not None else set())
    return _without_dialogs([one for one in shown if names & set(one.names)])


def _without_dialogs(found: List[Window]) -> List[Window]:
    """Leave out what belongs to another of the windows: closing a question is answering it."""
    ids = {one.id for one in found}
    return [one for one in found if one.transient_for not in ids]


def _forget(owned: List[Launch]) -> None:
    for launch in owned:
        if not launch.alive:
            launch.forget()


# ---- by force


def _by_force(
    conn: Connection, label: str, owned: List[Launch], wanted: List[Window], timeout: float, session: Optional[str]
) -> Dict[str, Any]:
    alive = [launch for launch in owned if launch.alive]
    mine = [launch for launch in alive if launch.may_be_ended_by(session)]
    if not mine:
        if alive:
            raise ActionFailed(f"{label} was launched by another session: quit it without force")
        if wanted and owned:
            raise ActionFailed(
                f"{label} runs in a process that the desktop started for the launch, or that ran before, so it is not"
                " ended by force: quit it without force and answer what it asks"
            )
        if wanted:
            raise ActionFailed(f"{label} was not launched here, so it is not ended by force: quit it without force")
        return {"outcome": "not_running"}
    theirs = {one.id for one in wanted if any(launch.owns(one) for launch in mine)}
    count = 0
    for launch in mine:
        count += launch.end(timeout)
    left = [launch for launch in mine if launch.alive]
    if left:
        raise ActionFailed(
            f"{label} could not be ended: process {left[0].keeper} or one below it does not die, or is another user's",
            pids=sorted(pid for launch in left for pid in launch.processes()),
        )
    _forget(mine)
    # Their windows have gone with them; a window manager may list those for a moment longer.
    if not windows.await_state(conn, lambda: not theirs.intersection(windows.window_ids(conn)), _LIST_PATIENCE):
        still = sorted(theirs.intersection(windows.window_ids(conn)))
        raise ActionFailed(
            f"{label}: {count} of its processes were ended, and window {still[0]}, which another process has, is still"
            " open: close it without force",
            windows=still,
            ended=count,
        )
    return {"outcome": "closed", "ended": count}
