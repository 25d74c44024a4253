"""The launcher in a desktop's sandbox, asked from outside."""

from __future__ import annotations

import os
import socket
import stat

from deskhand.computerd.launcher.client import LauncherClient
from deskhand.errors import SetupError
from deskhand.fleet.making import Made


class SandboxLauncher(LauncherClient):
    """The launcher of the desktop ``made``, which has one.

    What stands in its place is the account's to change: a link would lead to a socket of this machine, or to another
    desktop's launcher. So it is opened first, looked at, and connected to as what was opened.
    """

    def __init__(self, made: Made) -> None:
        assert made.launcher is not None
        super().__init__(made.launcher)
        self._uid = made.account.uid if made.account is not None else os.geteuid()

    def _connect(self, timeout: float) -> socket.socket:
        try:
            descriptor = os.open(self.path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._away(error.strerror) from None
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISSOCK(facts.st_mode) or facts.st_uid != self._uid:
                raise self._away("what stands there is no socket of its account")
            return LauncherClient(f"/proc/self/fd/{descriptor}")._connect(timeout)
        except SetupError as error:
            error.sent = "none"
            raise
        finally:
            os.close(descriptor)

    def _away(self, why: str | None) -> SetupError:
        error = SetupError(f"the launcher of this desktop does not answer ({why}): reset the lease for a fresh one")
        error.sent = "none"
        return error
