"""Desktops for tests, ended and checked for remains whatever a test does to them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from deskhand.desktop import DesktopState, processes, start_desktop, stop_desktop
from deskhand.hand.errors import SetupError

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
    for desktop in started:
        with suppress(SetupError):  # the test stopped it
            stop_desktop(desktop.display)


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
    """No process, socket, lock file, directory or state file of the desktop is there."""
    assert processes.processes_of(desktop.id) == {}
    number = desktop.display.removeprefix(":")
    for path in (f"/tmp/.X11-unix/X{number}", f"/tmp/.X{number}-lock", desktop.directory, desktop.state_file):
        assert not os.path.lexists(path), path
    for pid, _start_time in desktop.processes.values():
        assert not os.path.lexists(f"/tmp/.ICE-unix/{pid}")


def run_as(uid: int, script: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python script as another user, with an environment of its own; needs root.

    The system's Python and a copy of the package, because that user may not be allowed to read ours.
    """
    package = Path(__file__).parents[2] / "src" / "deskhand"
    copy = home / "package"
    shutil.copytree(package, copy / "deskhand", ignore=shutil.ignore_patterns("__pycache__"))
    let_everybody_in(home)
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


def let_everybody_in(directory: Path) -> None:
    """pytest's temporary directories are for the user who runs the tests; ``desk`` must be able to start fakes."""
    for path in (directory, directory.parent, directory.parent.parent):
        path.chmod(0o755)


def fake(directory: Path, program: str, script: str) -> str:
    """Put a shell script in the place of a program; gives the PATH that finds it first."""
    let_everybody_in(directory)
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
