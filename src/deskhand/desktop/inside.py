"""The sandbox of one desktop as its supervisor has it: made, led into, with a launcher that is kept running."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..hand.state import process_start_time
from .account import Account, own_account
from .parts import PartFailed, Parts
from .sandbox import PACKAGE_SEEN, Sandbox, launcher_socket

#: Seconds that a launcher must live to be started again.
_SHORT_LIFE = 1.0
_LOOK = 0.02


class Inside:
    """``line_from`` reads the line that one of ``parts`` writes to a pipe when it is up."""

    def __init__(
        self, sandbox: Sandbox, account: Account, parts: Parts, line_from: Callable[[int, str, str], str]
    ) -> None:
        self._sandbox = sandbox
        self._account = account
        self._parts = parts
        self._line_from = line_from
        self._launcher = (0, 0.0)
        self._holder = 0
        self._display = ""

    def make(self, display: str) -> list[int | None]:
        """Make it, for ``display``; gives the process that holds its namespaces, pid and start time.

        Parts of the desktop are started in it from then on.

        Raises:
            PartFailed: It can not be made; its log says why.
        """
        self._display = display
        self._sandbox.make_directories()
        reader, writer = os.pipe2(os.O_CLOEXEC)
        try:
            try:
                command = self._sandbox.command(int(display[1:]), writer)
                self._parts.start("sandbox", command, pass_fds=(writer,), account=own_account(self._account))
            finally:
                os.close(writer)
            holder = self._holder = int(self._line_from(reader, "sandbox", "bubblewrap could not make it"))
        finally:
            os.close(reader)
        self._parts.enter = self._sandbox.enter(holder)
        return [holder, process_start_time(holder)]

    def start_launcher(self) -> None:
        """Start what starts applications in there, for those who are outside."""
        environment = {**self._parts.environment, "PYTHONPATH": PACKAGE_SEEN, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [*self._sandbox.launcher_command, "--display", self._display]
        pid = self._parts.start("launcher", command, vital=False, environment=environment)
        self._launcher = (pid, time.monotonic())

    def prove_launcher(self, wait: Callable[..., bool], left: Callable[[], float]) -> str:
        """Wait until it listens, while ``left()`` seconds are left; gives its socket."""
        path = launcher_socket(self._holder)
        # A file appears without a word to us, so this looks again and again.
        while not wait(lambda: os.path.exists(path), (), min(_LOOK, left())):
            if left() <= 0:
                raise PartFailed("launcher", f"its socket {path} did not appear in time")
        return path

    def ended(self, statuses: Mapping[int, Any]) -> None:
        """Start the launcher again when it is among those that ended: an application may have ended it.

        Raises:
            PartFailed: It can not live, which is a fault.
        """
        pid, since = self._launcher
        if pid not in statuses:
            return
        if time.monotonic() - since < _SHORT_LIFE:
            raise PartFailed("launcher", "the launcher ended as soon as it had begun")
        self.start_launcher()
