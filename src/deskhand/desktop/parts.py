"""A part of a desktop: a program started as an account, with an environment and nothing else of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from .account import Account

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
        raise PartFailed(part, f"{command[0]} is not installed (searched {path})") from None
    except OSError as error:
        who = f" as {account.name}" if account.switch else ""
        raise PartFailed(part, f"{command[0]} can not be started{who}: {error.strerror}") from None


def _confinement(part: str, account: Account) -> list[str]:
    program = shutil.which("setpriv", path=_WHERE_SETPRIV_IS)
    if program is None:
        raise PartFailed(part, "setpriv is not installed (Debian: util-linux), and privileges can not be taken away")
    user = [f"--reuid={account.uid}", f"--regid={account.gid}", f"--groups={account.gid}"] if account.switch else []
    return [program, *user, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]
