"""End what a fleet's own account still runs, and remove what it left where every account may write.

Known by its owner: a process that has cleared its environment, and whose supervisor was killed, can be told by nothing
else. But a number is no owner: a container without a user namespace may use the same numbers, have a fleet of its own
even, and what runs in it is seen from here. It has a PID namespace of its own. That alone does not tell it, as a
desktop's own processes make such namespaces too: browsers for what a page runs, bubblewrap, ``unshare --user --pid``.
What does is who has made it. An account can only make one within a user namespace of its own, and that names its owner;
a container is made with root's rights, or within the user namespace of another account. What is further down is judged
by the PID namespace just below ours, as it was made in there.

Not told: a container that shares the PID namespace of this machine (``--pid host``) is taken for the account's, and
what a setuid program of the desktop has put into such a namespace (Chromium's older sandbox) for a container's; that
was found before by its mark (``desktop.processes``), unless it has cleared its environment.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import ExitStack
from fcntl import ioctl

from deskhand.desktop.account import NAME
from deskhand.errors import SetupError
from deskhand.hand.state import process_start_time

#: Seconds that killed processes get to be gone, and between two looks.
_KILLED, _LOOK = 5.0, 0.02
#: Where every account may write.
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")
#: ioctl_ns(2): the user namespace that a namespace belongs to, the namespace above it, the owner of a user namespace.
_NS_GET_USERNS, _NS_GET_PARENT, _NS_GET_OWNER_UID = 0xB701, 0xB702, 0xB704


def clear_account(name: str, uid: int) -> None:
    """Clear the account of a desktop that has ended. Does nothing but for root, and for accounts of fleets.

    Raises:
        SetupError: A process does not end; the files are still there.
    """
    if os.geteuid() != 0 or not name.startswith(f"{NAME}-"):
        return
    deadline = time.monotonic() + _KILLED
    while left := _processes_of(uid):
        if time.monotonic() > deadline:
            raise SetupError(f"processes of the account {name} do not end, even killed: pids {left}")
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(_LOOK)  # what forks while it is killed is met by the next look
    for directory in _SHARED:
        try:
            entries = list(os.scandir(directory))
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.stat(follow_symlinks=False).st_uid != uid:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)
            except OSError:
                continue


def _processes_of(uid: int) -> list[int]:
    """Those that are no zombies, and in no container."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and process_start_time(int(name)) is not None:
            try:
                real, levels = _facts(name)
                if (os.stat(f"/proc/{name}").st_uid == uid or real == uid) and (levels == 1 or _made_by(name, uid)):
                    found.append(int(name))
            except OSError:
                continue
    return found


def _facts(pid: str) -> tuple[int, int]:
    """Its real uid, and in how many PID namespaces it is, ours and below (proc(5), /proc/pid/status, Uid, NSpid)."""
    uid, levels = -1, 1
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("Uid:"):
                uid = int(line.split()[1])
            elif line.startswith("NSpid:"):
                levels = len(line.split()) - 1
    return uid, levels


def _made_by(pid: str, uid: int) -> bool:
    """Whether the account has made the PID namespace below ours that the process is in.

    Raises:
        OSError: It has just ended, or what it is in can not be told.
    """
    with ExitStack() as opened:

        def keep(descriptor: int) -> int:
            opened.callback(os.close, descriptor)
            return descriptor

        def outermost(namespace: int, ours: os.stat_result) -> int:
            while not os.path.samestat(os.fstat(above := keep(ioctl(namespace, _NS_GET_PARENT))), ours):
                namespace = above
            return namespace

        try:
            namespace = keep(os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC))
        except PermissionError:
            # We may not look (no CAP_SYS_PTRACE): a container of few rights, in which root can make no namespaces.
            return True
        user = keep(ioctl(outermost(namespace, os.stat("/proc/self/ns/pid")), _NS_GET_USERNS))
        ours = os.stat("/proc/self/ns/user")
        if os.path.samestat(os.fstat(user), ours):
            return False  # made with root's rights
        owner = bytearray(4)
        ioctl(outermost(user, ours), _NS_GET_OWNER_UID, owner)
        return int.from_bytes(owner, sys.byteorder) == uid
