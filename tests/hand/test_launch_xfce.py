"""Launching and quitting real applications on a whole XFCE desktop, through its own opener."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from deskhand.desktop import DesktopState
from deskhand.hand import applications, launch_environment, launched_process, state, windows
from deskhand.hand.errors import ActionFailed
from deskhand.hand.launch import launch
from deskhand.hand.quit import quit_application
from deskhand.hand.x11 import Connection

pytestmark = pytest.mark.slow


@pytest.fixture
def conn(xfce: DesktopState) -> Iterator[Connection]:
    with Connection.open(xfce.display, xfce.xauthority) as conn:
        yield conn


def open_entry(conn: Connection, xfce: DesktopState, name: str, timeout: float = 20) -> dict[str, Any]:
    where = launch_environment.find(conn, xfce.display, xfce.xauthority)
    if not shutil.which(name, path=where.env["PATH"]):
        pytest.skip(f"{name} is not installed")
    entry = applications.find(name, where.env)
    return launch(conn, None, entry, display=xfce.display, xauthority=xfce.xauthority, timeout=timeout)


def test_through_exo_open_as_the_desktops_user(conn: Connection, xfce: DesktopState) -> None:
    where = launch_environment.find(conn, xfce.display)
    assert where.source == "desktop"
    assert where.window_manager == "Xfwm4"
    answer = open_entry(conn, xfce, "mousepad")
    assert (answer["outcome"], answer["matched"], answer["focused"]) == ("window", True, True)
    assert answer["opener"] == "exo-open"
    pid = answer["pid"]
    assert isinstance(pid, int)
    assert os.stat(f"/proc/{pid}").st_uid == xfce.uid
    with open(f"/proc/{pid}/environ", "rb") as file:
        environment = file.read().split(b"\0")
    assert f"HOME={xfce.home}".encode() in environment
    assert f"DISPLAY={xfce.display}".encode() in environment
    assert quit_application(conn, app="Mousepad", display=xfce.display)["outcome"] == "closed"
    assert state.process_start_time(pid) is None


def test_a_single_instance_application_opens_a_second_window(conn: Connection, xfce: DesktopState) -> None:
    first, second = open_entry(conn, xfce, "thunar"), open_entry(conn, xfce, "thunar")
    for answer in (first, second):
        assert (answer["outcome"], answer["matched"], answer["focused"]) == ("window", True, True)
    assert first["window"] != second["window"]
    answer = quit_application(conn, app="thunar", display=xfce.display)
    assert (answer["outcome"], len(answer["windows"])) == ("closed", 2)


def test_the_desktops_own_windows_are_no_application_to_quit(conn: Connection, xfce: DesktopState) -> None:
    kept = [one["id"] for one in windows.list_windows(conn) if one["type"] in ("desktop", "dock")]
    assert kept
    for name in ("xfdesktop", "xfce4-panel"):
        for force in (False, True):
            answer = quit_application(conn, app=name, force=force, display=xfce.display)
            assert answer == {"outcome": "not_running"}
    with pytest.raises(ActionFailed, match="not launched here"):
        quit_application(conn, window=kept[0], force=True, display=xfce.display)
    assert [one["id"] for one in windows.list_windows(conn) if one["type"] in ("desktop", "dock")] == kept


def test_a_terminal(conn: Connection, xfce: DesktopState) -> None:
    answer = open_entry(conn, xfce, "xfce4-terminal")
    assert answer["focused"]
    (record,) = [one for one in state.launched(xfce.display) if one["id"] == "xfce4-terminal"]
    assert quit_application(conn, app="xfce4-terminal", force=True, display=xfce.display)["outcome"] == "closed"
    assert launched_process.descendants(None, record["mark"]) == set()
