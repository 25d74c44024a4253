"""Every process of a desktop: found by its mark in the environment and by descent, ended politely and then not.

The mark (``DESKHAND_DESKTOP=<id>``) is inherited by all that a desktop starts, and outlives a killed supervisor.
Descent finds those whose environment is cleared or can not be read (setuid programs).
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..hand.state import process_mark, process_start_time


@dataclass(frozen=True)
class Process:
    """One line of the process table (proc(5), /proc/pid/stat); ``start_time`` in clock ticks since boot."""

    pid: int
    parent: int
    session: int
    zombie: bool
    start_time: int
    name: str


@dataclass
class Ended:
    """What ``end_processes`` met: ``pids`` of all it asked to end, ``left`` of those it could not."""

    pids: set[int] = field(default_factory=set)
    left: set[int] = field(default_factory=set)


def processes_of(mark: str, roots: Iterable[tuple[int, int]] = ()) -> dict[int, Process]:
    """Every process, by pid, that carries ``mark``, and of the descendants of ``roots`` and of those.

    ``roots`` are (pid, start time) pairs. Zombies are left out: they hold nothing and are their parent's to reap.
    """
    table = _table()
    sessions = set()
    found = set()
    for pid, start_time in roots:
        if pid in table and table[pid].start_time == start_time:
            found.add(pid)
            if table[pid].session == pid:
                sessions.add(pid)
    found.update(pid for pid, process in table.items() if process.session in sessions or process_mark(pid) == mark)
    grown = True
    while grown:
        children = {pid for pid, process in table.items() if process.parent in found and pid not in found}
        found |= children
        grown = bool(children)
    found.discard(os.getpid())
    return {pid: table[pid] for pid in found if not table[pid].zombie}


def end_processes(
    mark: str,
    roots: Iterable[tuple[int, int]] = (),
    spare: Iterable[int] = (),
    polite: float = 3.0,
    forced: float = 5.0,
    reaping: bool = False,
) -> Ended:
    """Ask every process of the desktop ``mark`` to end (SIGTERM), wait ``polite`` seconds, then kill the rest.

    Looks again after each round, because what is asked to end may start something. Processes in ``spare`` are left
    alone. With ``reaping`` every child of this process is reaped: for the supervisor only, as others have children
    of their own whose exit status somebody waits for.
    """
    roots = list(roots)
    spared = set(spare)
    ended = Ended()
    asked: set[int] = set()
    for number, seconds in ((signal.SIGTERM, polite), (signal.SIGKILL, forced)):
        deadline = time.monotonic() + seconds
        asked.clear()
        while True:
            if reaping:
                reap()
            here = {pid: process for pid, process in processes_of(mark, roots).items() if pid not in spared}
            ended.pids |= set(here)
            ended.left = set(here)
            if not here:
                if reaping:
                    reap()  # their parents are gone, so whatever is a zombie now is ours
                return ended
            if time.monotonic() >= deadline:
                break
            for pid in set(here) - asked:
                _signal(here[pid], number)
                if number == signal.SIGTERM:
                    _signal(here[pid], signal.SIGCONT)  # a stopped process takes no SIGTERM until it goes on
            asked |= set(here)
            _wait_for_one(set(here), deadline)
    return ended


def reap() -> dict[int, int]:
    """Take the exit status of every child of this process that has ended; gives pid to wait status."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def wait_for_end(pid: int, start_time: int, timeout: float) -> bool:
    """Wait until the process is gone (or a zombie); false when ``timeout`` seconds pass first."""
    deadline = time.monotonic() + timeout
    while process_start_time(pid) == start_time:
        if time.monotonic() >= deadline:
            return False
        _wait_for_one({pid}, deadline)
    return True


def remove_shared_memory(pids: set[int], whole_account: int | None = None) -> None:
    """Remove System V segments that nobody has attached and that ``pids`` made (or any dead process of an account)."""
    try:
        with open("/proc/sysvipc/shm") as file:
            names, *lines = [line.split() for line in file]
    except (OSError, ValueError):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for values in lines:
        segment = {name: int(value) for name, value in zip(names, values)}  # noqa: B905 - the hand's tests run on 3.9
        ours = segment["cpid"] in pids or segment["cuid"] == whole_account
        if ours and segment["nattch"] == 0 and process_start_time(segment["cpid"]) is None:
            libc.shmctl(segment["shmid"], 0, None)  # 0 is IPC_RMID


def _table() -> dict[int, Process]:
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                head, _, tail = file.read().rpartition(b")")
        except OSError:
            continue
        fields = tail.split()
        command = os.fsdecode(head.partition(b"(")[2])
        zombie = fields[0] in (b"Z", b"X")
        table[int(name)] = Process(int(name), int(fields[1]), int(fields[3]), zombie, int(fields[19]), command)
    return table


def _signal(process: Process, number: int) -> None:
    """Send a signal, unless the process's number went to another one meanwhile."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        # The descriptor holds on to one process, so the start time read now is of the one that gets the signal.
        if process_start_time(process.pid) == process.start_time:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _wait_for_one(pids: set[int], deadline: float) -> None:
    """Wait until one of ``pids`` ends, at most until ``deadline``."""
    poll = select.poll()
    descriptors = []
    for pid in pids:
        try:
            descriptors.append(os.pidfd_open(pid))
        except OSError:
            continue
    try:
        if len(descriptors) < len(pids):
            return  # one has gone already
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        poll.poll(max(1.0, (deadline - time.monotonic()) * 1000))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
