"""Quit an application: ask it politely, tell what came of it, and end by force only what this project launched."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any, Dict, List, Optional, Set

from . import launched_process, state, window_actions, windows
from .applications import Entry
from .errors import ActionFailed
from .launch_watch import names_of
from .window_properties import Window
from .x11 import Connection

#: Seconds of ``timeout`` that a process told to end (SIGTERM) gets before it is killed.
_POLITE_SHARE = 0.5
#: Seconds that what started an application gets to end after it.
_WRAPPER_PATIENCE = 0.3
#: Seconds killed processes are waited for: the kernel may take its time, but not for ever.
_KILL_PATIENCE = 5.0


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
) -> Dict[str, Any]:
    """Quit the application ``app`` (an id or a name; ``entry`` when it was found), or close one ``window``.

    Gives ``{"outcome": "closed"|"asked"|"not_running", ...}``: ``"closed"`` when its windows are gone, with
    ``"running": true`` when a process of it goes on all the same; ``"asked"`` when a dialog came up instead, which
    ``"dialog"`` tells: ``{"id", "title", "app_id", "rect"}``. With ``force`` the processes of the launch are ended
    (SIGTERM, then SIGKILL) and ``"ended"`` counts them.

    ``app`` means the windows of what this project launched by that id or name; when there are none, the windows that
    go by it. ``session`` limits ``force`` to what that session launched; without a name, to what this project did.

    Raises:
        ActionFailed: it is still open after ``timeout`` seconds and asks nothing; or ``force`` was asked for something
            that this project did not launch on this display.
    """
    if (app is None) == (window is None):
        raise ValueError("quit takes either app or window")
    owned = _launches(conn, display, app, window, entry)
    wanted = _windows(conn, owned, app, window, entry)
    label = f"window {window}" if app is None else (entry.name if entry is not None else app)
    alive = [launch for launch in owned if launch.alive]
    if force:
        return _by_force(label, owned, wanted, timeout, display, session)
    if not wanted:
        if alive:
            raise ActionFailed(
                f"{label} runs but has no window to close (pid {alive[0].keeper}): quit it with force",
                pids=[launch.keeper for launch in alive],
            )
        _forget(display, owned)
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
    _wait_for_end(owners, max(0.0, deadline - time.monotonic()))
    for launch in alive:
        launch.wait(min(_WRAPPER_PATIENCE, max(0.0, deadline - time.monotonic())))
    answer: Dict[str, Any] = {"outcome": "closed", "windows": [one.id for one in wanted]}
    if any(launch.alive for launch in alive):
        answer["running"] = True
    _forget(display, owned)
    return answer


class _Launch:
    """One launch as it was recorded (``state.record_launched``)."""

    def __init__(self, record: Dict[str, Any]) -> None:
        self.record = record
        self.keeper = int(record["pid"])
        self.start_time = record.get("start_time")
        self.mark = str(record.get("mark") or "")

    @property
    def keeper_alive(self) -> bool:
        return state.is_alive(self.keeper, self.start_time)

    @property
    def alive(self) -> bool:
        """Whether the application runs. Its keeper may have been killed, or live on for a message bus."""
        return bool(launched_process.without_bus(self.processes()))

    def processes(self) -> Set[int]:
        """The living processes of the launch, without the keeper."""
        # A keeper that is gone has no descendants; its number may be another's by now.
        return launched_process.descendants(self.keeper if self.keeper_alive else None, self.mark)

    def owns(self, window: Window) -> bool:
        """Whether the window is the one the launch was answered with, or one of its processes'."""
        if self.mark and window.launch_mark == self.mark:
            return True
        return bool(self.processes() & set(window.pids))

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to process ``pid`` if it belongs to the launch."""
        descriptor = _pidfd_open(pid)
        try:
            # The descriptor holds on to one process, so that what is read now is of the one that gets the signal.
            below = self.keeper_alive and self.keeper in launched_process.ancestors(pid)
            if below or (self.mark and launched_process.launch_of(pid) == self.mark):
                for one in (number, signal.SIGCONT):  # a stopped process takes no SIGTERM
                    if descriptor is None:
                        os.kill(pid, one)
                    else:
                        signal.pidfd_send_signal(descriptor, one)
        except OSError:
            pass  # it has ended, or is another user's
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def wait(self, timeout: float) -> None:
        """Wait until nothing of it is left, at most ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            left = launched_process.without_bus(self.processes())
            if not left or time.monotonic() >= deadline:
                break
            _wait_for_end(left, deadline - time.monotonic(), every=False)
        if self.keeper_alive and not self.processes():
            _wait_for_end({self.keeper}, 1.0)


def _launches(
    conn: Connection, display: str, app: Optional[str], window: Optional[int], entry: Optional[Entry]
) -> List[_Launch]:
    """The launches that are meant, of those of which a process or a window is left; the others are forgotten."""
    facts = windows.get_window(conn, window) if window is not None else None
    left = launched_process.marks() | {one.launch_mark for one in windows.read_all(conn)}
    found = []
    for record in state.launched(display):
        launch = _Launch(record)
        if not launch.keeper_alive and launch.mark not in left:
            state.forget_launched(display, launch.keeper, launch.start_time)
        elif facts is not None:
            if launch.owns(facts):
                found.append(launch)
        else:
            assert app is not None
            asked = {app.casefold(), (entry.id if entry is not None else app).casefold()}
            if {str(record.get(key)).casefold() for key in ("id", "name")} & asked:
                found.append(launch)
    return found


def _windows(
    conn: Connection, owned: List[_Launch], app: Optional[str], window: Optional[int], entry: Optional[Entry]
) -> List[Window]:
    """The windows to close: one, those of the launches, or those that go by the name."""
    if window is not None:
        return [windows.get_window(conn, window)]
    assert app is not None
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


def _forget(display: str, owned: List[_Launch]) -> None:
    for launch in owned:
        if not launch.alive:
            state.forget_launched(display, launch.keeper, launch.start_time)


# ---- by force


def _by_force(
    label: str,
    owned: List[_Launch],
    wanted: List[Window],
    timeout: float,
    display: str,
    session: Optional[str],
) -> Dict[str, Any]:
    alive = [launch for launch in owned if launch.alive]
    mine = [launch for launch in alive if session is None or launch.record.get("session") == session]
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
    count = 0
    for launch in mine:
        count += _end(launch, timeout)
    left = [launch for launch in mine if launch.alive]
    if left:
        raise ActionFailed(
            f"{label} could not be ended: process {left[0].keeper} or one below it does not die, or is another user's",
            pids=sorted(pid for launch in left for pid in launch.processes()),
        )
    _forget(display, mine)
    return {"outcome": "closed", "ended": count}


def _end(launch: _Launch, timeout: float) -> int:
    """End what belongs to ``launch``, what it starts meanwhile too; the keeper ends by itself. Gives how many."""
    ended: Set[int] = set()
    for number, seconds in ((signal.SIGTERM, timeout * _POLITE_SHARE), (signal.SIGKILL, _KILL_PATIENCE)):
        deadline = time.monotonic() + seconds
        told: Set[int] = set()
        while True:
            here = launch.processes()
            if not here:
                break
            for pid in here - told:
                launch.signal(pid, number)
            told |= here
            ended |= here
            left = deadline - time.monotonic()
            if left <= 0:
                break
            _wait_for_end(here, left, every=False)
    launch.wait(0.0)
    return len(ended)


def _wait_for_end(pids: Set[int], timeout: float, every: bool = True) -> None:
    """Wait until every process (or one of them) has ended, at most ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    descriptors = {}
    try:
        for pid in pids:
            start = state.process_start_time(pid)
            descriptor = _pidfd_open(pid)
            if descriptor is not None:
                descriptors[descriptor] = pid
            elif start is None and not every:
                return
            while descriptor is None and state.is_alive(pid, start) and time.monotonic() < deadline:
                time.sleep(0.02)  # a kernel without pidfd tells nobody but the parent
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        waiting = len(descriptors)
        while waiting:
            ready = poll.poll(max(0, int((deadline - time.monotonic()) * 1000)))
            if not ready or not every:
                return
            for descriptor, _ in ready:
                poll.unregister(descriptor)
            waiting -= len(ready)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _pidfd_open(pid: int) -> Optional[int]:
    """pidfd_open(2): readable when the process has ended. None when it has, or the kernel has no such call."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
