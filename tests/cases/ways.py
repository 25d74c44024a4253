"""How the commands of a case reach its display: on this machine's display, or over HTTP through computerd."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from deskhand import Daemon, LocalDisplay
from deskhand.backends.base import Backend
from deskhand.testing import XServer
from tests.toolkits import FIXTURES
from tests.x_windows import command


class OnTheDisplay:
    """The command moves the display itself, and launches from its own process."""

    over_http = False
    #: How what belongs to the desktop, such as its bus, is started: as the account that applications run as.
    as_desktop: Mapping[str, Any] = {}

    def reach(self, server: XServer, environment: Mapping[str, str] | None = None) -> XServer:
        """The server as commands are to find it; ``environment`` is what launched applications get."""
        return replace(server, env=dict(environment)) if environment is not None else server

    def backend(self, server: XServer) -> Backend:
        return LocalDisplay(server.display, server.xauthority)

    def window(self, *options: object) -> str:
        """The Exec line of a window; see ``fixtures/x_window.py``."""
        return command(*options)

    def fixture(self, name: str) -> Path:
        """A fixture that applications may read."""
        return FIXTURES / name

    def descriptors(self) -> int:
        """Those of everything of ours that lives on between two calls."""
        return len(os.listdir("/proc/self/fd"))


class OverHttp(OnTheDisplay):
    """computerd and the launcher stand beside the display; the commands have an address and a token's file."""

    over_http = True

    def __init__(self, stack: ExitStack) -> None:
        # Here, because computerd is an extra.
        from deskhand.desktop.account import desktop_account
        from tests.computerd.launchers import RunningLauncher, as_account, open_directory

        self._stack = stack
        self._directory = stack.enter_context(open_directory())
        self._tokens = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deskhand-tokens-")))
        self._launchers: list[RunningLauncher] = []
        self._pids: list[int] = []
        self.as_desktop = as_account(desktop_account())

    def reach(self, server: XServer, environment: Mapping[str, str] | None = None) -> XServer:
        from tests.computerd.daemons import daemon
        from tests.computerd.launchers import RunningLauncher

        directory = self._directory / str(len(self._launchers))
        directory.mkdir()
        launcher = RunningLauncher(server, directory)
        own = {name: launcher.environment[name] for name in ("XDG_RUNTIME_DIR", "PYTHONPATH", "DISPLAY")}
        if environment is not None:
            launcher.environment = {**environment, **own}
        self._stack.callback(launcher.end)
        launcher.start()
        self._launchers.append(launcher)
        assert launcher.process is not None
        running = self._stack.enter_context(daemon(server, self._tokens, launcher=Path(launcher.path)))
        self._pids += [running.pid, launcher.process.pid]
        env = {**server.env, **(environment or {})}
        return replace(server, env={**env, "DESKHAND_URL": running.url, "DESKHAND_TOKEN_FILE": str(running.token_file)})

    def backend(self, server: XServer) -> Backend:
        return Daemon(server.env["DESKHAND_URL"], token_file=server.env["DESKHAND_TOKEN_FILE"])

    def window(self, *options: object) -> str:
        return self._launchers[-1].window(*options)

    def fixture(self, name: str) -> Path:
        return self._launchers[-1].directory / "tests" / "fixtures" / name

    def descriptors(self) -> int:
        return super().descriptors() + sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self._pids)


Way = OnTheDisplay
