"""Applications made for a test: desktop entries, and windows of a client that does exactly what it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deskhand.hand import windows
from deskhand.hand.applications import Entry, read_entry
from deskhand.hand.launch_environment import LaunchEnvironment
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer

CLIENT = Path(__file__).parent / "fixtures" / "x_window.py"


def command(*options: object) -> str:
    """The Exec line of a window with these options (see ``fixtures/x_window.py``)."""
    return " ".join([_quoted(sys.executable), _quoted(str(CLIENT)), *(_quoted(str(option)) for option in options)])


def _quoted(argument: str) -> str:
    text = "".join("\\" + one if one in '"`$\\' else one for one in argument).replace("\\", "\\\\").replace("%", "%%")
    return f'"{text}"'


def make_entry(directory: Path, id: str, exec_line: str | None, *lines: str, name: str = "") -> Entry:
    """A desktop entry of the test's own, read back as the lookup reads it."""
    path = directory / f"{id}.desktop"
    body = ["[Desktop Entry]", "Type=Application", f"Name={name or id}", *lines]
    if exec_line is not None:
        body.append(f"Exec={exec_line}")
    path.write_text("\n".join(body) + "\n")
    return read_entry(str(path), id)


def environment(server: XServer, manager: str | None = "Openbox", **more: str) -> LaunchEnvironment:
    """What a launch takes as the desktop's environment: the test's, with ``more``."""
    kept = {name: value for name, value in server.env.items() if name not in ("XDG_CURRENT_DESKTOP",)}
    return LaunchEnvironment({**kept, **more}, None, "own", manager)


@contextmanager
def x_window(conn: Connection, server: XServer, title: str, *options: object, wait: bool = True) -> Iterator[int]:
    """A window of another client, until the block is left. Gives its id (0: not waited for)."""
    arguments = [sys.executable, str(CLIENT), "--title", title, *map(str, options)]
    process = subprocess.Popen(arguments, env=server.env, stdin=subprocess.DEVNULL)
    try:
        yield int(windows.wait_window(conn, title=title)["id"]) if wait else 0
    finally:
        process.kill()
        process.wait()


def zombies_of(pid: int) -> list[int]:
    """The ended children of ``pid`` that nobody has waited for."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] == b"Z" and int(fields[1]) == pid:
                found.append(int(name))
    return found
