"""As whom a desktop runs: as root an account of its own, ``desk``; as an ordinary user, that user.

And as whom computerd serves it: as root another account of its own, ``computerd``, which holds the token.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..hand.errors import SetupError
from ..hand.state import make_own_directory

NAME = "desk"
SERVICE_NAME = "computerd"
#: Few systems give out these numbers; RLIMIT_NPROC counts per uid on the whole host, containers included.
UIDS = range(48710, 48790)
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Account:
    """An account of this machine. ``switch`` says whether processes must be started as another user than ours."""

    name: str
    uid: int
    gid: int
    shell: str
    switch: bool


def desktop_account(name: str = NAME) -> Account:
    """The account that desktops started by this process run as; root makes it when there is none.

    Raises:
        SetupError: The account can not be made, or is root's.
    """
    if os.geteuid() != 0:
        return _account(_entry_of(os.geteuid()), switch=False)
    entry = _found_or_made(name, "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "Deskhand desktops")
    if entry.pw_uid == 0:
        raise SetupError(f"the account {name!r} has uid 0: a desktop must not run as root; remove or rename it")
    return _account(entry, switch=True)


def own_account(desktop: Account) -> Account:
    """As whom a sandbox for the account ``desktop`` is made: this process's user, who may be root."""
    return replace(desktop, switch=False)


def service_account() -> Account:
    """The account that computerd runs as; root makes ``computerd`` when there is none. An ordinary user has no other.

    Raises:
        SetupError: The account can not be made, or is root's or the desktop's.
    """
    if os.geteuid() != 0:
        return desktop_account()
    desk = desktop_account()
    entry = _found_or_made(SERVICE_NAME, "/usr/sbin/nologin", "Deskhand's computerd")
    if entry.pw_uid in (0, desk.uid) or entry.pw_gid == desk.gid:
        raise SetupError(
            f"the account {SERVICE_NAME!r} is root's or shares the group of {NAME!r}, and it holds the token: "
            "remove or rename it"
        )
    return _account(entry, switch=True)


def _found_or_made(name: str, shell: str, comment: str) -> pwd.struct_passwd:
    with _lock():
        try:
            return pwd.getpwnam(name)
        except KeyError:
            return _make(name, shell, comment)


def _account(entry: pwd.struct_passwd, switch: bool) -> Account:
    # Terminals start the account's shell; one that refuses log-ins would close them at once.
    shell = entry.pw_shell
    if os.path.basename(shell) in ("", "nologin", "false") or not os.access(shell, os.X_OK):
        shell = next((path for path in ("/bin/bash", "/bin/sh") if os.access(path, os.X_OK)), "/bin/sh")
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, shell, switch)


def _entry_of(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        # A container may run as a uid without an account.
        return pwd.struct_passwd((str(uid), "x", uid, os.getegid(), "", "/", "/bin/sh"))


def _make(name: str, shell: str, comment: str) -> pwd.struct_passwd:
    """Make an account: a group of its own, a locked password, no home (each desktop has its own)."""
    program = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        raise SetupError(f"useradd is not installed: install it (Debian: passwd) or make an account named {name!r}")
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    uid = next((uid for uid in UIDS if uid not in taken), None)
    if uid is None:
        raise SetupError(f"uids {UIDS[0]}-{UIDS[-1]} are all taken: make an account named {name!r} yourself")
    command = [program, "--uid", str(uid), "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    command += ["--shell", shell, "--comment", comment, name]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        raise SetupError(f"useradd {name} did not end within {_TIMEOUT:g} s: make the account yourself") from None
    try:
        return pwd.getpwnam(name)
    except KeyError:
        why = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise SetupError(f"the account {name!r} can not be made: {why[0]}; make it yourself") from None


@contextmanager
def _lock() -> Iterator[None]:
    """Two desktops started at once must not both run useradd."""
    path = os.path.join(make_own_directory(), "account.lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + _TIMEOUT
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SetupError(f"{path} stays locked: another start hangs; end it and try again") from None
                time.sleep(0.05)  # flock has no deadline of its own
        yield
    finally:
        os.close(descriptor)
