"""What the processes behind a window say about what is still to come (proc(5), tty_ioctl(4)).

Only of clients on this host. What can not be read counts as "nothing known": the pixels decide alone then.
"""

from __future__ import annotations

import os
import termios
import time
from typing import List, Optional

from .errors import RequestFailed
from .x11 import Connection, core, xres


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
    which takes single keys, waits for us. A command that ran before the input does not count: it may run for ever.
    """
    for shell in _children(pid):
        fields = _stat(shell)
        if len(fields) < 20:
            continue
        group, session, tty, foreground = int(fields[2]), int(fields[3]), int(fields[4]), int(fields[5])
        if session != shell or foreground <= 0 or foreground == group:
            continue
        leader = _stat(foreground)
        if len(leader) >= 20 and _started(leader) >= since and _takes_lines(tty):
            return True
    return False


def _children(pid: int) -> List[int]:
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), "rb") as file:
            return [int(child) for child in file.read().split()]
    except (OSError, ValueError):
        return []


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
