"""The launcher that this process is itself: it starts applications under a keeper each, and remembers them."""

from __future__ import annotations

import os
import socket
import uuid
from typing import Any, Dict, List, Optional, Sequence

from . import applications, launch_environment, launched_process, launches, opener, state, windows
from .applications import Entry
from .errors import DeskhandError, SetupError
from .launch_environment import LaunchEnvironment
from .launched_process import Exit, LaunchedProcess
from .launcher import Launch, Launcher, Launching
from .window_properties import Window
from .x11 import Connection, core


class OwnLauncher(Launcher):
    """Launches on ``display``, which ``conn`` is connected to; ``environment`` is found when it is not given."""

    def __init__(
        self,
        conn: Connection,
        display: str,
        xauthority: Optional[str] = None,
        environment: Optional[LaunchEnvironment] = None,
    ) -> None:
        self._conn = conn
        self._display = display
        self._xauthority = xauthority
        self._environment = environment

    def environment(self) -> LaunchEnvironment:
        """The desktop's environment as it is now, which also decides what applications there are."""
        return self._environment or launch_environment.find(self._conn, self._display, self._xauthority)

    def listing(self) -> Dict[str, Any]:
        found = applications.scan(self.environment().env)
        return {"apps": [entry.as_dict() for entry in found.listed()], "searched": found.searched}

    def find(self, name: str) -> Entry:
        return applications.find(name, self.environment().env, unlisted=True)

    def start(self, entry: Entry, keep_open: bool = False, session: Optional[str] = None) -> "OwnLaunching":
        where = self.environment()
        startup_time = core.server_time(self._conn)
        mark = uuid.uuid4().hex
        startup_id = f"deskhand-{os.getpid()}-{socket.gethostname()}-{mark[:12]}_TIME{startup_time}"
        env = {**where.env, "DESKTOP_STARTUP_ID": startup_id}
        way = opener.choose(entry, env, where.window_manager, where.account)
        facts = {"id": entry.id, "name": entry.name, "keep_open": keep_open, "session": session}
        return OwnLaunching(self._display, facts, where._replace(env=env), way, startup_id, startup_time, mark)

    def window_of(self, mark: str) -> Optional[Window]:
        """The window that a launch was answered with, while it is there."""
        return next((one for one in windows.read_all(self._conn) if one.launch_mark == mark), None)

    def launches(self) -> List[Launch]:
        return list(launches.remembered(self._conn, self._display))


class OwnLaunching(Launching):
    """A launch that this process has started. It is remembered from the start: one that hangs can be quit too."""

    def __init__(
        self,
        display: str,
        facts: Dict[str, Any],
        where: LaunchEnvironment,
        way: opener.Opener,
        startup_id: str,
        startup_time: int,
        mark: str,
    ) -> None:
        self.startup_id = startup_id
        self.startup_time = startup_time
        self.mark = mark
        self._display = display
        self._facts = {**facts, "mark": mark, "window": None}
        self._written: Dict[str, Any] = {}
        self._where = where
        self._begin(way)

    def _begin(self, way: opener.Opener) -> None:
        self._way = way
        self.opener, self.program, self.direct, self.note = way.name, way.argv[0], way.direct, way.note
        self.pid = self.error = None
        where = self._where
        self._process = launched_process.start(way.argv, where.env, way.directory, where.account, self.mark)
        self.keeper = self._process.keeper
        self._facts.update(pid=self.keeper, start_time=self._process.keeper_start)
        self._write()

    @property
    def process(self) -> LaunchedProcess:
        return self._process

    @property
    def opener_exit(self) -> Optional[Exit]:
        return self._process.opener_exit

    @property
    def failure(self) -> Optional[Exit]:
        return self._process.failure

    @property
    def over(self) -> bool:
        return self._process.over

    def fileno(self) -> int:
        return self._process.fileno() if self._process.listening else -1

    def read(self) -> None:
        self._take()
        if self._way.fallback is not None and self.ended_badly:
            self.close()
            self._begin(self._way.fallback)

    def _take(self) -> None:
        self._process.read()
        self.pid, self.error = self._process.pid, self._process.error

    def last_words(self) -> str:
        return self._process.last_words()

    def owns(self, pids: Sequence[int]) -> bool:
        return self._process.owns(pids)

    def is_of_another(self, pids: Sequence[int]) -> bool:
        return any(launched_process.launch_of(pid) for pid in pids)

    def complete(self, window: int) -> None:
        self._way = self._way._replace(fallback=None)
        self._facts["window"] = window

    def close(self) -> None:
        """Write what is known now, or forget a launch of which nothing is left."""
        try:
            self._take()
            if not self.over or self._facts["window"] is not None:
                self._write()
            else:
                state.forget_launched(self._display, self._process.keeper, self._process.keeper_start)
        except (SetupError, OSError):
            pass
        finally:
            self._process.stop_listening()

    def _write(self) -> None:
        if self._facts == self._written:
            return  # somebody else may have ended and forgotten it meanwhile
        try:
            self._written = dict(self._facts)
            state.record_launched(self._display, self._facts, replace=True)
        except (DeskhandError, OSError):
            pass  # a launch that can not be remembered is still a launch; quitting it by its windows works
