"""Make and end the desktops of a fleet on this machine.

As root each desktop that is up has an account of its own (``desk-1``, ``desk-2`` ...), so that none can read the
cookie, the memory or the files of another, and what it leaves in directories that all share is known by its owner. An
ordinary user has one account for all.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
from dataclasses import dataclass, replace
from typing import Any, Protocol

from deskhand.desktop import start_desktop
from deskhand.desktop.account import NAME, Account, desktop_account
from deskhand.desktop.processes import end_processes, wait_for_end
from deskhand.desktop.remains import remove_files, remove_sockets_and_memory
from deskhand.desktop.sandbox import Isolation, enter
from deskhand.errors import SetupError
from deskhand.fleet.clearing import clear_account
from deskhand.hand.state import is_alive, make_own_directory, process_start_time, read_desktops

#: The environment variable with the host's name for itself, by which what a killed host left is found.
HOST_MARK = "DESKHAND_FLEET_HOST"
#: Accounts for desktops on one machine: as many as ``desktop.account`` has numbers for, and some to spare.
ACCOUNTS = 76
#: Seconds that a desktop's supervisor gets to end it.
_SUPERVISED = 20.0
#: What stands for a process: pid and start time, in clock ticks since boot.
ProcessId = tuple[int, int]


@dataclass(frozen=True)
class Made:
    """A desktop that is up. ``vital`` are the processes without which it is none; ``env`` is what its processes get.

    In a sandbox ``enter`` leads a command into it, and ``launcher`` is the socket of what starts applications there.
    """

    id: str
    display: str
    xauthority: str | None
    size: tuple[int, int]
    env: dict[str, str]
    account: Account | None
    vital: tuple[ProcessId, ...] = ()
    launcher: str | None = None
    enter: tuple[str, ...] = ()


class Maker(Protocol):
    """Makes desktops that are all alike. Both calls block, come from several threads, and end within a deadline."""

    def make(self) -> Made:
        """Raises SetupError: it did not come up, and nothing is left of it."""
        ...

    def end(self, made: Made) -> None:
        """End it with everything on it. Raises SetupError: something is left; says what."""
        ...


class DesktopMaker:
    """Makes desktops with ``deskhand.desktop``.

    Args:
        session: The kind: ``openbox``, ``xfce`` ...
        size: Of the screen, in pixels.
        timeout: Seconds for a desktop to be ready.
        most: How many are up at once at most, those that are ending included.
        host: The host's name for itself, see ``own_mark``.
        isolation: The sandbox of each; None: none.
    """

    def __init__(
        self,
        session: str,
        size: tuple[int, int],
        timeout: float,
        most: int,
        host: str,
        isolation: Isolation | None = None,
    ) -> None:
        self._isolation = isolation
        self._session = session
        self._size = size
        self._timeout = timeout
        self._environment = {HOST_MARK: host}
        self._left = threading.Semaphore(most)
        #: The descriptor that keeps the account of a desktop for it.
        self._kept: dict[str, int] = {}

    def make(self) -> Made:
        if not self._left.acquire(blocking=False):
            raise SetupError("more desktops are up or ending than this fleet may have: wait until some have ended")
        kept = -1
        try:
            kept, account = keep_account()
            desktop = start_desktop(
                self._session,
                self._size,
                self._timeout,
                self._environment,
                account=account,
                isolation=self._isolation,
            )
        except BaseException:
            self._let_go(kept)
            raise
        self._kept[desktop.id] = kept
        vital: tuple[ProcessId, ...] = (desktop.processes["supervisor"], desktop.processes["X server"])
        made = Made(desktop.id, desktop.display, desktop.xauthority, desktop.size, desktop.env, account, vital)
        if self._isolation is None:
            return made
        # Without its sandbox no application can be started any more.
        vital = (*vital, desktop.processes["namespaces"])
        inside = enter(desktop.processes["namespaces"][0], account, self._isolation.network, desktop.home)
        return replace(made, vital=vital, launcher=desktop.launcher, enter=tuple(inside))

    def end(self, made: Made) -> None:
        facts = next((facts for facts in read_desktops() if facts["id"] == made.id), None)
        if facts is not None:
            end_desktop(facts)
        else:  # it ended by itself, and its display is another one's by now
            end_processes(made.id)
            if made.account is not None:
                clear_account(made.account.name, made.account.uid)
        self._let_go(self._kept.pop(made.id, -1))

    def _let_go(self, kept: int) -> None:
        if kept >= 0:
            os.close(kept)
        self._left.release()


def keep_account() -> tuple[int, Account]:
    """An account that no other desktop of any fleet of this machine has, and the descriptor that keeps it while open.

    Raises:
        SetupError: All are taken, or it can not be made.
    """
    if os.geteuid() != 0:
        return -1, desktop_account()
    directory = make_own_directory("fleet")
    for number in range(1, ACCOUNTS + 1):
        name = f"{NAME}-{number}"
        kept = os.open(os.path.join(directory, f"{name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
            account = desktop_account(name)
            # A host that was killed lets go of its locks before its desktops have ended.
            if not any(facts["uid"] == account.uid for facts in read_desktops()):
                return kept, account
        except BlockingIOError:
            pass
        except BaseException:
            os.close(kept)
            raise
        os.close(kept)
    raise SetupError(f"all {ACCOUNTS} accounts for desktops of fleets on this machine are in use")


def end_desktop(facts: dict[str, Any]) -> None:
    """End the desktop of a state file, and remove what it leaves; known by its id, as displays are used again.

    Raises:
        SetupError: A process does not end; the rest has.
    """
    supervisor = facts["processes"].get("supervisor")
    if supervisor is not None and is_alive(*supervisor):
        try:
            os.kill(supervisor[0], signal.SIGTERM)
        except ProcessLookupError:
            pass
        wait_for_end(supervisor[0], supervisor[1], _SUPERVISED)
    roots = [(process[0], process[1]) for process in facts["processes"].values()]
    ended = end_processes(facts["id"], roots)
    if ended.left:
        left = ", ".join(map(str, sorted(ended.left)))
        raise SetupError(f"processes of the desktop at {facts['display']} do not end, even killed: pids {left}")
    clear_account(facts["user"], facts["uid"])
    remove_sockets_and_memory(facts, ended.pids)
    now = next((other for other in read_desktops() if other["display"] == facts["display"]), None)
    if now is not None and now["id"] == facts["id"]:
        remove_files(facts)
    else:
        shutil.rmtree(facts["directory"], ignore_errors=True)


def own_mark(name: str) -> str:
    """What this process calls itself as a host: it tells whether the host still lives."""
    return f"{name}:{os.getpid()}:{process_start_time(os.getpid())}"


def desktops_of(mark: str) -> list[dict[str, Any]]:
    """The state of each desktop that the host ``mark`` made."""
    return [facts for facts in read_desktops() if facts["env"].get(HOST_MARK) == mark]


def orphans() -> list[dict[str, Any]]:
    """The desktops of this user's hosts that do not live any more."""
    found = []
    for facts in read_desktops():
        mark = facts["env"].get(HOST_MARK)
        if mark and not _lives(mark) and _is_ours(facts):
            found.append(facts)
    return found


def _is_ours(facts: dict[str, Any]) -> bool:
    try:
        return os.stat(facts["state_file"]).st_uid == os.geteuid()
    except FileNotFoundError:
        return False  # it has just ended


def _lives(mark: str) -> bool:
    pid, start_time = mark.split(":")[-2:]
    return pid.isdecimal() and start_time.isdecimal() and is_alive(int(pid), int(start_time))
