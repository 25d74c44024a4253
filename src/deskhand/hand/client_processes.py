"""What the processes behind a window say about what is still to come (proc(5), tty_ioctl(4)).

Only of clients on this host. What can not be read counts as "nothing known": the pixels decide alone then.
"""

from __future__ import annotations

import os
import termios
import time
from typing import FrozenSet, List, Optional

from .errors import RequestFailed
from .x11 import Connection, core, xres

#: The number of read(2), by machine (Linux, syscalls(2)).
_READ = {"x86_64": b"0", "aarch64": b"63", "riscv64": b"63"}

#: Seconds that a program may take from its start to its connection to the display.
CONNECTING = 0.700


def pid_of(conn: Connection, window: int) -> int:
    """The client's process as the X server sees it; 0 when that is unknown, or the client itself says another one."""
    try:
        pid = xres.client_pid(conn, window) or 0
        told = core.get_property(conn, window, conn.atom("_NET_WM_PID")).cardinals()
    except RequestFailed:
        return 0
    # They differ when the server and we count processes differently (another pid namespace), or a proxy is between.
    return 0 if told and told[0] != pid else pid


def has_content_processes(pid: int) -> bool:
    """Whether the client lets processes of its own program draw its content, as browsers do.

    Such a client answers a ping while its content is still to come.
    """
    program = _program(pid)
    return bool(program) and any(_program(child) == program for child in _children(pid))


def is_terminal(pid: int) -> bool:
    """Whether the client is a terminal: a child of it leads a session with a terminal of its own."""
    for child in _children(pid):
        fields = _stat(child)
        if len(fields) >= 20 and int(fields[3]) == child and int(fields[4]) != 0:
            return True
    return False


def command_running(pid: int, since: float) -> bool:
    """Whether a terminal runs a command that started after ``since`` (CLOCK_MONOTONIC) and has not yet ended.

    That is a foreground process group other than the shell's, whose terminal is in line mode: an editor or a pager,
    which takes single keys, waits for us, and so does one that reads a line just now. A command that ran before the
    input does not count: it may run for ever.
    """
    for shell in _children(pid):
        fields = _stat(shell)
        if len(fields) < 20:
            continue
        group, session, tty, foreground = int(fields[2]), int(fields[3]), int(fields[4]), int(fields[5])
        if session != shell or foreground <= 0 or foreground == group:
            continue
        leader = _stat(foreground)
        if len(leader) < 20 or _started(leader) < since or not _takes_lines(tty):
            continue
        if not any(_reads(process, _pts(tty)) for process in _descendants(shell)):
            return True
    return False


def has_work(pid: int) -> bool:
    """Whether a terminal or a shell of it runs now, or waits for a processor or a disk (proc(5), states R and D).

    On a busy machine the shell may not have read yet what was typed when the screen has been quiet for long.
    """
    return any(_stat(process)[:1] in ([b"R"], [b"D"]) for process in (pid, *_children(pid)))


class Newcomers:
    """Programs that were started on one display since this was made: by a click on an icon, an entry of a menu."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._before = _processes()

    def starting(self) -> bool:
        """Whether one of them may be about to show its first window: it is a client of the display, or very young.

        Not what runs in a terminal, nor a further process of the same program.
        """
        if self._conn.name.host:
            return False  # those are processes of another machine
        found = [pid for pid in _processes() - self._before if self._is_program(pid)]
        if not found:
            return False
        if any(_started(_stat(pid)) + CONNECTING >= time.monotonic() for pid in found):
            return True
        return not xres.local_pids(self._conn).isdisjoint(found)

    def _is_program(self, pid: int) -> bool:
        fields = _stat(pid)
        if len(fields) < 20 or fields[0] in (b"Z", b"X") or int(fields[4]) != 0:
            return False
        parent = int(fields[1])
        if parent == os.getpid() or _program(pid) in (b"", _program(parent)):
            return False
        try:
            with open("/proc/%d/environ" % pid, "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            return False
        return any(one.startswith(b"DISPLAY=") and _number(one) == self._conn.name.number for one in variables)


def _number(variable: bytes) -> int:
    """The display's number in "DISPLAY=:1.0"; -1 when there is none."""
    number = variable.rpartition(b":")[2].partition(b".")[0]
    return int(number) if number.isdigit() else -1


def _processes() -> FrozenSet[int]:
    try:
        return frozenset(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return frozenset()


def _children(pid: int) -> List[int]:
    """Of all its threads: VTE and Firefox start theirs from one that is not the first."""
    found: List[int] = []
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return found
    for thread in threads:
        try:
            with open("/proc/%d/task/%s/children" % (pid, thread), "rb") as file:
                found += [int(child) for child in file.read().split()]
        except (OSError, ValueError):
            continue  # the thread has ended
    return found


def _descendants(pid: int) -> List[int]:
    found = _children(pid)
    for process in found:
        if len(found) < 64:
            found += _children(process)
    return found


def _reads(pid: int, terminal: Optional[str]) -> bool:
    """Whether the process waits in read(2) for its terminal; False when that may not be looked at (ptrace(2))."""
    try:
        with open("/proc/%d/syscall" % pid, "rb") as file:
            call = file.read().split()
        if len(call) < 2 or call[0] != _READ.get(os.uname().machine):
            return False
        return os.readlink("/proc/%d/fd/%d" % (pid, int(call[1], 16))) in (terminal, "/dev/tty")
    except (OSError, ValueError):
        return False


def _program(pid: int) -> bytes:
    """The first word of the command line: it can be read of every process, the executable only of one's own."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read().split(b"\0")[0]
    except OSError:
        return b""


def _stat(pid: int) -> List[bytes]:
    """The fields of /proc/pid/stat from the third on."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _started(fields: List[bytes]) -> float:
    """When the process started, CLOCK_MONOTONIC; up to a tick later than it did: "since" then errs towards waiting."""
    if len(fields) < 20:
        return 0.0
    ticks = os.sysconf("SC_CLK_TCK")
    since_boot = (int(fields[19]) + 1) / ticks
    return since_boot - (time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic())


def _takes_lines(tty: int) -> bool:
    """Whether the terminal with this device number is in line mode (canonical); True when that can not be read."""
    path = _pts(tty)
    if path is None:
        return True
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return bool(termios.tcgetattr(fd)[3] & termios.ICANON)
    except termios.error:
        return True
    finally:
        os.close(fd)


def _pts(tty: int) -> Optional[str]:
    """Pseudo-terminals have the major numbers 136 to 143 (Linux allocated devices)."""
    major, minor = tty >> 8 & 0xFFF, (tty & 0xFF) | (tty >> 12 & 0xFFF00)
    return "/dev/pts/%d" % ((major - 136) * 256 + minor) if 136 <= major <= 143 else None
