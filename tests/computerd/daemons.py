"""computerd as its users start it: a process of its own, over loopback or a unix socket, with a token in a file."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from deskhand.testing import XServer
from tests.commands import PROGRAM, environment
from tests.computerd.launchers import RunningLauncher, open_directory

_PATIENCE = 30.0
#: Becomes the program of the following words, with a descriptor passed as sd_listen_fds(3) says.
PASS_ON = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="computerd.socket")
os.execv(sys.argv[2], sys.argv[2:])
"""


class RunningDaemon:
    """A daemon that has said where it listens."""

    def __init__(self, process: subprocess.Popen[str], token_file: Path) -> None:
        self._process = process
        self.token_file = token_file
        self.token = token_file.read_text().strip()
        self.lines: list[str] = []
        self._told = threading.Event()
        self._ready: dict[str, Any] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._told.wait(_PATIENCE), "computerd did not come up"
        assert self._ready is not None, "".join(self.lines)
        self.listen: str = self._ready["listen"]
        self.pid: int = self._ready["pid"]

    @property
    def url(self) -> str:
        return self.listen if self.listen.startswith("unix:") else f"http://{self.listen}"

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.listen.rpartition(":")
        return host, int(port)

    @property
    def log(self) -> list[dict[str, Any]]:
        """What it has logged; each line must be JSON."""
        return [json.loads(line) for line in self.lines]

    def client(self, **headers: str) -> httpx2.Client:
        """A client that shows the token, unless ``headers`` have another."""
        whole = {"Authorization": f"Bearer {self.token}", **headers}
        return httpx2.Client(base_url=self.url, headers=whole, timeout=60, trust_env=False)

    def act(self, *actions: dict[str, Any], headers: dict[str, str] | None = None, **more: Any) -> httpx2.Response:
        """One batch that does not wait for the screen, and its answer as JSON."""
        body = {"actions": list(actions), "settle": {"mode": "none"}, **more}
        with self.client(Accept="application/json") as client:
            return client.post("/act", json=body, headers=headers)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; its status."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        status = self._process.wait(_PATIENCE)
        self._reader.join(_PATIENCE)
        return status

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)
            if self._ready is None:
                try:
                    told = json.loads(line)
                except ValueError:
                    break
                if told.get("event") == "ready":
                    self._ready = told
                    self._told.set()
        self._told.set()


def write_token(directory: Path) -> Path:
    """A token file for its owner alone."""
    path = directory / f"token-{secrets.token_hex(4)}"
    path.touch(0o600)
    path.write_text(secrets.token_urlsafe(32) + "\n")
    return path


@contextmanager
def daemon(
    server: XServer,
    directory: Path,
    *options: str,
    listen: str = "127.0.0.1:0",
    launcher: Path | None = None,
    token_file: Path | None = None,
    env: dict[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    passed: socket.socket | None = None,
) -> Iterator[RunningDaemon]:
    """``deskhand serve`` on the display of ``server``; ``passed`` is a socket as a service manager passes one."""
    path = token_file or write_token(directory)
    words = [PROGRAM, "serve", "--display", server.display, "--listen", listen, *options]
    if server.xauthority is not None:
        words += ["--xauthority", server.xauthority]
    if launcher is not None:
        words += ["--launcher", str(launcher)]
    if not pass_fds:
        words += ["--token-file", str(path)]
    if passed is not None:
        words = [sys.executable, "-c", PASS_ON, str(passed.fileno()), *words]
        pass_fds = (*pass_fds, passed.fileno())
    process = subprocess.Popen(
        words, env=env or environment(None), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        start_new_session=True, pass_fds=pass_fds,
    )  # fmt: skip
    try:
        running = RunningDaemon(process, path)
        yield running
        running.stop()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def launcher(server: XServer) -> Iterator[RunningLauncher]:
    """A launcher on the display of ``server``, as the desktop's account; the cookie is copied for that."""
    with open_directory() as directory:
        running = RunningLauncher(server, directory)
        if server.xauthority is not None:
            cookie = directory / "cookie"
            shutil.copy(server.xauthority, cookie)
            os.chown(cookie, running.account.uid, running.account.gid)
            running.environment["XAUTHORITY"] = str(cookie)
        try:
            running.start()
            yield running
        finally:
            running.end()


def until(condition: Any, seconds: float = _PATIENCE) -> None:
    """Wait for what nothing tells."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.01)


class Daemons:
    """Starts a daemon, with its launcher, for each display that is asked for; all end with the block."""

    _running: dict[str, RunningDaemon]

    def __init__(self, directory: Path, *options: str, unix: bool = False) -> None:
        self._directory = directory
        self._options = options
        self._unix = unix
        self._stack = ExitStack()
        self._running = {}

    def __enter__(self) -> Daemons:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def on(self, server: XServer) -> RunningDaemon:
        if server.display in self._running:
            return self._running[server.display]
        path = Path(self._stack.enter_context(launcher(server)).path)
        listen = f"unix:{self._directory / secrets.token_hex(4)}.sock" if self._unix else "127.0.0.1:0"
        running = daemon(server, self._directory, *self._options, listen=listen, launcher=path)
        self._running[server.display] = self._stack.enter_context(running)
        return self._running[server.display]
