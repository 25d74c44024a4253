"""The parts of a desktop: programs started as an account, with an environment and nothing else of ours."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..hand.state import process_start_time
from .account import Account
from .logs import Logs

#: What programs are called that set something and end.
SETTINGS = "settings"
#: The Debian packages to install for a program; of a desktop, what makes it whole.
_PACKAGES = {
    "Xvfb": "xvfb",
    "dbus-daemon": "dbus-daemon",
    "startxfce4": "xfce4",
    "mate-session": "mate-desktop-environment-core",
    "lxqt-session": "lxqt-core openbox",
    "gnome-shell": "gnome-shell",
    "openbox": "openbox",
}
_WHERE_SETPRIV_IS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PartFailed(Exception):
    """A part of the desktop did not come up, or ended."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"{part}: {why}")
        self.part = part
        self.why = why


def start_part(
    part: str,
    command: Sequence[str],
    account: Account,
    environment: Mapping[str, str],
    directory: str,
    log: int,
    pass_fds: tuple[int, ...] = (),
    confined: bool = False,
    enter: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Start a program as ``account`` in a session of its own; its output and errors go to the descriptor ``log``.

    With ``confined`` neither it nor what it starts can ever gain a privilege: an empty capability bounding set, and
    no_new_privs (capabilities(7), prctl(2)). ``enter`` leads into a sandbox, becomes the account there and takes the
    privileges (see ``sandbox``).

    Raises:
        PartFailed: The program is not installed, or can not be started as that account.
    """
    switch, words = account.switch, list(command)
    if enter:
        words, switch = [*enter, *words], False
    elif confined:
        # Before the change of user: after it the bounding set can not be changed any more.
        words = [*_confinement(part, account), *words]
        switch = False
    try:
        return subprocess.Popen(
            words,
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=pass_fds,
            start_new_session=True,
            umask=0o022,
            user=account.uid if switch else None,
            group=account.gid if switch else None,
            extra_groups=[account.gid] if switch else None,
        )
    except FileNotFoundError:
        path = environment.get("PATH", os.defpath)
        package = _PACKAGES.get(command[0])
        how = f": install it (Debian: {package})" if package else ""
        raise PartFailed(part, f"{command[0]} is not installed (searched {path}){how}") from None
    except OSError as error:
        who = f" as {account.name}" if account.switch else ""
        raise PartFailed(part, f"{command[0]} can not be started{who}: {error.strerror}") from None


def _confinement(part: str, account: Account) -> list[str]:
    program = shutil.which("setpriv", path=_WHERE_SETPRIV_IS)
    if program is None:
        raise PartFailed(part, "setpriv is not installed (Debian: util-linux), and privileges can not be taken away")
    user = [f"--reuid={account.uid}", f"--regid={account.gid}", f"--groups={account.gid}"] if account.switch else []
    return [program, *user, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]


class Parts:
    """Those of one desktop.

    Args:
        account: Whose processes they are when nothing else is said.
        directory: Where they start.
        logs: What they write to.
        confined: Those of ``account`` can gain no privilege, see ``start_part``.
        processes: Takes pid and start time of each without which the desktop is none, by its name.
        look: Called before one is started; raises when the desktop is to end.
    """

    def __init__(
        self,
        account: Account,
        directory: str,
        logs: Logs,
        confined: bool,
        processes: dict[str, list[int | None]],
        look: Callable[[], None],
    ) -> None:
        self._account = account
        self._directory = directory
        self._logs = logs
        self._confined = confined
        self._processes = processes
        self._look = look
        #: What they get when nothing else is said.
        self.environment: dict[str, str] = {}
        #: What leads into the desktop's sandbox, where there is one by now.
        self.enter: Sequence[str] = ()
        self._vital: dict[int, str] = {}
        self._running: dict[int, str] = {}
        # Never polled: the supervisor takes the exit status of every child, and Popen must not be told another.
        self._children: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        part: str,
        command: list[str],
        pass_fds: tuple[int, ...] = (),
        vital: bool = True,
        account: Account | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> int:
        """Start one, with a log of its own; gives its pid. Without one that is ``vital`` the desktop is none.

        Raises:
            PartFailed: See ``start_part``.
        """
        self._look()
        as_whom, given = account or self._account, environment or self.environment
        confined = self._confined and account is None
        log = self._logs.open(part)
        try:
            child = start_part(part, command, as_whom, given, self._directory, log, pass_fds, confined, self.enter)
        finally:
            os.close(log)
        self._children.append(child)
        self._running[child.pid] = part
        if vital:
            self._vital[child.pid] = part
            self._processes[part] = [child.pid, process_start_time(child.pid)]
        return child.pid

    def start_aside(self, command: list[str]) -> None:
        """Start a program that sets something and ends. That it is not installed matters little."""
        with contextlib.suppress(PartFailed):
            self.start(SETTINGS, command, vital=False)

    def start_service(
        self, name: str, command: list[str], account: Account, environment: Mapping[str, str], given: tuple[int, ...]
    ) -> int:
        """Start what serves the desktop, which is started again when it ends; gives its pid."""
        log = self._logs.open_service(name)
        try:
            child = start_part(name, command, account, environment, "/", log, given, self._confined)
        finally:
            os.close(log)
        self._children.append(child)
        return child.pid

    def ended(self, pids: Iterable[int]) -> None:
        """These processes have ended."""
        for pid in pids:
            self._running.pop(pid, None)

    def runs(self, part: str) -> bool:
        return part in self._running.values()

    def lost(self, statuses: Mapping[int, int]) -> PartFailed | None:
        """What to say when one without which the desktop is none is among those that ended, each with its status."""
        for pid, part in self._vital.items():
            if pid in statuses:
                code = os.waitstatus_to_exitcode(statuses[pid])
                how = f"ended with exit status {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
                return PartFailed(part, f"the {part} {how}")
        return None
