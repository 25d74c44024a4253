"""What was launched, as ``state`` remembers it: whether it runs, which processes are its, and ending them."""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any, Dict, List, Optional, Set

from . import launched_process, state, windows
from .launcher import Launch
from .x11 import Connection

#: Seconds of ``timeout`` that a process told to end (SIGTERM) gets before it is killed.
_POLITE_SHARE = 0.5
#: Seconds killed processes are waited for: the kernel may take its time, but not for ever.
KILL_PATIENCE = 5.0


def remembered(conn: Connection, display: str) -> List["RecordedLaunch"]:
    """The launches on ``display`` of which a process or a window is left; the others are forgotten."""
    left = launched_process.marks() | {one.launch_mark for one in windows.read_all(conn)}
    found = []
    for record in state.launched(display):
        launch = RecordedLaunch(display, record)
        if not launch.keeper_alive and launch.mark not in left:
            launch.forget()
        else:
            found.append(launch)
    return found


class RecordedLaunch(Launch):
    """One launch as it was recorded (``state.record_launched``)."""

    def __init__(self, display: str, record: Dict[str, Any]) -> None:
        self._display = display
        self.record = record
        self.id = str(record.get("id") or "")
        self.name = str(record.get("name") or "")
        self.keeper = int(record["pid"])
        self.start_time = record.get("start_time")
        self.mark = str(record.get("mark") or "")

    @property
    def keeper_alive(self) -> bool:
        return state.is_alive(self.keeper, self.start_time)

    @property
    def alive(self) -> bool:
        return bool(launched_process.without_bus(self.processes()))

    def processes(self) -> Set[int]:
        # A keeper that is gone has no descendants; its number may be another's by now.
        return launched_process.descendants(self.keeper if self.keeper_alive else None, self.mark)

    def may_be_ended_by(self, session: Optional[str]) -> bool:
        return session is None or self.record.get("session") == session

    def wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            left = launched_process.without_bus(self.processes())
            if not left or time.monotonic() >= deadline:
                break
            wait_for_end(left, deadline - time.monotonic(), every=False)
        if self.keeper_alive and not self.processes():
            wait_for_end({self.keeper}, 1.0)

    def end(self, timeout: float) -> int:
        ended: Set[int] = set()
        for number, seconds in ((signal.SIGTERM, timeout * _POLITE_SHARE), (signal.SIGKILL, KILL_PATIENCE)):
            deadline = time.monotonic() + seconds
            told: Set[int] = set()
            while True:
                here = self.processes()
                if not here:
                    break
                for pid in here - told:
                    self._signal(pid, number)
                told |= here
                ended |= here
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                wait_for_end(here, left, every=False)
        self.wait(0.0)
        return len(ended)

    def forget(self) -> None:
        state.forget_launched(self._display, self.keeper, self.start_time)

    def _signal(self, pid: int, number: int) -> None:
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


def wait_for_end(pids: Set[int], timeout: float, every: bool = True) -> None:
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
