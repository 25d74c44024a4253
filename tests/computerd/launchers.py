"""A launcher on a display of its own, as ``desk`` when the tests run as root; and what a peer may say to it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import deskhand
from deskhand.computerd.launcher.client import LauncherClient
from deskhand.desktop.account import Account, desktop_account, service_account
from deskhand.hand import launched_process, state
from deskhand.hand.hand import Hand
from deskhand.testing import XServer, window_manager, xvfb
from tests.x_windows import make_entry
from tests.xservers import until

ROOT = os.geteuid() == 0
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else shutil.which("python3") or "python3"
needs_root = pytest.mark.skipif(not ROOT, reason="only root has other accounts to run things as")


class RunningLauncher:
    """A launcher with applications of its own. ``serve`` is the account that it serves; None: that of the tests."""

    def __init__(self, server: XServer, directory: Path, serve: Account | None = None) -> None:
        self.server = server
        self.directory = directory
        self.account = desktop_account()
        self.serve_uid = serve.uid if serve is not None else os.geteuid()
        self.path = str(directory / "launcher" / "launcher.sock")
        self.log = directory / "log"
        self.data = directory / "data" / "applications"
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(directory / "home"),
            "XDG_RUNTIME_DIR": str(directory / "run"),
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_DATA_DIRS": "/nowhere",
            "PYTHONPATH": str(directory / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DISPLAY": server.display,
            "LC_ALL": "C.UTF-8",
        }
        if server.xauthority is not None:
            self.environment["XAUTHORITY"] = server.xauthority
        group = serve.gid if serve is not None else self.account.gid
        for name, mode in (("home", 0o700), ("run", 0o700), ("launcher", 0o750)):
            (directory / name).mkdir()
            (directory / name).chmod(mode)
            os.chown(directory / name, self.account.uid, group if name == "launcher" else self.account.gid)
        self.data.mkdir(parents=True)
        # Other accounts may not be allowed to read ours.
        source, tests = Path(deskhand.__file__).parent, Path(__file__).parents[1]
        nothing = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, directory / "src" / "deskhand", ignore=nothing)
        shutil.copytree(tests / "fixtures", directory / "tests" / "fixtures", ignore=nothing)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def client(self) -> LauncherClient:
        return LauncherClient(self.path)

    def start(self, *arguments: str) -> None:
        command = [PYTHON, "-m", "deskhand.computerd.launcher", "--socket", self.path]
        command += ["--serve-uid", str(self.serve_uid), *arguments]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command,
                env=self.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **as_account(self.account),
            )
        process = self.process
        until(lambda: process.poll() is not None or self.client.connects())
        assert process.poll() is None, self.log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(20)

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for record in self.records():
            keeper = record["pid"] if state.is_alive(record["pid"], record["start_time"]) else None
            for pid in launched_process.descendants(keeper, record["mark"]):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def records(self) -> list[dict[str, Any]]:
        found = []
        for path in (self.directory / "run").glob("deskhand/launched/*.jsonl"):
            found += [json.loads(line) for line in path.read_text().splitlines()]
        return found

    def entry(self, id: str, exec_line: str | None, *lines: str, name: str = "") -> None:
        make_entry(self.data, id, exec_line, *lines, name=name)

    def window(self, *options: object) -> str:
        """The Exec line of a window; see ``fixtures/x_window.py``."""
        return " ".join(f'"{one}"' for one in (PYTHON, self.directory / "tests/fixtures/x_window.py", *options))

    def script(self, body: str) -> str:
        path = self.directory / f"script-{len(list(self.directory.iterdir()))}.sh"
        path.write_text("#!/bin/sh\n" + body)
        path.chmod(0o755)
        return str(path)

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(self.path)
        return connection

    def raw(self, *pieces: bytes) -> bytes:
        """All that is answered to what is sent, piece by piece, on one connection."""
        with self.connect() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return everything(connection)

    def ask(self, *pieces: bytes) -> dict[str, Any]:
        answer = self.raw(*pieces)
        assert answer.endswith(b"\n")
        assert answer.count(b"\n") == 1
        return dict(json.loads(answer))

    def refusal(self, *pieces: bytes) -> str:
        answer = self.ask(*pieces)
        assert answer["ok"] is False
        return str(answer["error"])


def everything(connection: socket.socket) -> bytes:
    data = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:  # something was left unread at the other end
            return data
        if not piece:
            return data
        data += piece


def as_account(account: Account) -> dict[str, Any]:
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account.switch else {}


@contextmanager
def open_directory() -> Iterator[Path]:
    """A directory that every account may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="deskhand-test-") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


@contextmanager
def running_launcher(serve: Account | None = None, *arguments: str, start: bool = True) -> Iterator[RunningLauncher]:
    with xvfb() as server, window_manager(server, "openbox"), open_directory() as directory:
        launcher = RunningLauncher(server, directory, serve)
        try:
            if start:
                launcher.start(*arguments)
            yield launcher
        finally:
            launcher.end()


@pytest.fixture
def launcher() -> Iterator[RunningLauncher]:
    """A launcher that serves the tests."""
    with running_launcher() as launcher:
        yield launcher


@pytest.fixture
def computerd() -> Account:
    return service_account()


class Lines:
    """The lines of one ``launch`` request, as they come."""

    def __init__(self, launcher: RunningLauncher, name: str) -> None:
        self.connection = launcher.connect()
        self.connection.sendall(f"launch {name}\n".encode())
        self._file = self.connection.makefile("rb")

    def next(self) -> dict[str, Any]:
        return dict(json.loads(self._file.readline()))

    def until(self, wanted: str) -> dict[str, Any]:
        """The first line in which this is true."""
        while True:
            line = self.next()
            if line[wanted]:
                return line

    def finish(self) -> dict[str, Any]:
        """Close our end; the last line."""
        self.connection.shutdown(socket.SHUT_WR)
        lines = self._file.read().splitlines()
        self.close()
        return dict(json.loads(lines[-1]))

    def close(self) -> None:
        self._file.close()
        self.connection.close()


@pytest.fixture
def hand(launcher: RunningLauncher) -> Iterator[Hand]:
    with Hand(launcher.server.display, launcher=launcher.client) as hand:
        yield hand


def act(hand: Hand, *actions: dict[str, Any]) -> list[dict[str, Any]]:
    answer, _ = hand.act({"actions": list(actions), "picture": False, "settle": {"mode": "none"}})
    results: list[dict[str, Any]] = answer["results"]
    return results
