"""Desktops for tests, ended and checked for remains whatever a test does to them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.desktop import DesktopState, list_desktops, processes, start_desktop, stop_desktop

Start = Callable[..., DesktopState]


@pytest.fixture
def start() -> Iterator[Start]:
    """``start_desktop``; what it started is stopped when the test ends."""
    started: list[DesktopState] = []

    def start_one(session: str = "openbox", **options: object) -> DesktopState:
        desktop = start_desktop(session, **options)  # type: ignore[arg-type]
        started.append(desktop)
        return desktop

    yield start_one
    left = {facts["id"] for facts in list_desktops()}
    for desktop in started:
        if desktop.id in left:  # else the test stopped it, and its display may be another one's by now
            stop_desktop(desktop.display)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every account may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="deskhand-test-") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


def run_on(desktop: DesktopState, command: list[str]) -> subprocess.Popen[str]:
    """Start a program on a desktop as its user; its standard output is a pipe."""
    switch = os.geteuid() == 0
    return subprocess.Popen(
        command,
        env=desktop.env,
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
        user=desktop.uid if switch else None,
        group=desktop.gid if switch else None,
        extra_groups=[] if switch else None,
    )


def nothing_left_of(desktop: DesktopState) -> None:
    """No process, socket, lock file, directory, state file or record of launches of the desktop is there."""
    assert processes.processes_of(desktop.id) == {}
    number = desktop.display.removeprefix(":")
    assert not is_dead_socket(f"/tmp/.X11-unix/X{number}")
    records = os.path.join(os.path.dirname(desktop.state_file), "..", "launched", f"{number}.jsonl")
    for path in (f"/tmp/.X{number}-lock", desktop.directory, records):
        assert not os.path.lexists(path), path
    assert desktop.id not in {facts["id"] for facts in list_desktops()}
    for pid, _start_time in desktop.processes.values():
        assert not os.path.lexists(f"/tmp/.ICE-unix/{pid}")


def is_dead_socket(path: str) -> bool:
    """Whether a socket file is there that nobody listens on. (Another server may have the number by now.)"""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except FileNotFoundError:
            return False
        except ConnectionRefusedError:
            return os.path.lexists(path)
    return False


def run_as(uid: int, script: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python script as another user, with an environment of its own; needs root.

    The system's Python and a copy of the package in ``home``, an ``open_directory``, because that user may not be
    allowed to read ours.
    """
    package = Path(__file__).parents[2] / "src" / "deskhand"
    copy = home / "package"
    shutil.copytree(package, copy / "deskhand", ignore=shutil.ignore_patterns("__pycache__"))
    return subprocess.run(
        ["/usr/bin/python3", "-c", script, *arguments],
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def fake(directory: Path, program: str, script: str) -> str:
    """Put a shell script in the place of a program; gives the PATH that finds it first (in an ``open_directory``)."""
    path = directory / program
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return f"{directory}:/usr/bin:/bin"


def wait_for(condition: Callable[[], Any], timeout: float = 30.0) -> Any:
    """Wait for what another process does; it says nothing when it has done it, so this looks again and again."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come about")
