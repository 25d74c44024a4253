"""A display with entries made as they are needed, and launches on it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.hand import launched_process, state
from deskhand.hand.errors import ActionFailed
from deskhand.hand.launch import launch
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer
from tests.x_windows import command, environment, make_entry


class Desk:
    """One display, entries made as they are needed, and launches on it."""

    def __init__(self, server: XServer, conn: Connection, directory: Path, manager: str | None) -> None:
        self.server = server
        self.conn = conn
        self.directory = directory
        self.manager = manager

    def launch(self, id: str, exec_line: str | None, *lines: str, env: Any = None, **options: Any) -> dict[str, Any]:
        entry = make_entry(self.directory, id, exec_line, *lines)
        where = environment(self.server, self.manager, **(env or {}))
        return launch(self.conn, None, entry, display=self.server.display, environment=where, **options)

    def fails(self, id: str, exec_line: str, *lines: str, timeout: float = 10, **options: Any) -> ActionFailed:
        with pytest.raises(ActionFailed) as failed:
            self.launch(id, exec_line, *lines, timeout=timeout, **options)
        return failed.value

    def records(self) -> list[dict[str, Any]]:
        return state.launched(self.server.display)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"
    monkeypatch.setattr(state, "own_directory", lambda: str(folder))


@pytest.fixture
def desk(openbox_display: XServer, tmp_path: Path) -> Iterator[Desk]:
    with Connection.open(openbox_display.display) as conn:
        desk = Desk(openbox_display, conn, tmp_path, "Openbox")
        yield desk
        end_all(desk)


@pytest.fixture
def bare(display: XServer, tmp_path: Path) -> Iterator[Desk]:
    with Connection.open(display.display) as conn:
        desk = Desk(display, conn, tmp_path, None)
        yield desk
        end_all(desk)


def end_all(desk: Desk) -> None:
    for record in desk.records():
        for pid in launched_process.descendants(
            record["pid"] if record["alive"] else None, str(record.get("mark") or "")
        ):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def argument_script(folder: Path, body: str) -> str:
    path = folder / "script.sh"
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return str(path)


def waiting_for(path: Path, *options: str) -> str:
    """The shell line of a process of somebody else's that opens its window when ``path`` is there."""
    return f"until [ -e {path} ]; do sleep 0.05; done; exec {command(*options)}"
