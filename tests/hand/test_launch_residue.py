# ruff: noqa: F811  (fixtures of another file)
"""Launching: what stays behind, and launches at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.launching import Desk, desk, end_all, own_state  # noqa: F401
from tests.x_windows import command, environment, make_entry, zombies_of
from tests.xservers import display_of, until

from deskhand.hand import launched_process, state, window_actions, windows
from deskhand.hand.launch import launch
from deskhand.hand.quit import quit_application
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer


@pytest.mark.long
def test_launches_leave_nothing_behind(desk: Desk) -> None:
    desk.launch("first", command("--title", "first"))
    quit_application(desk.conn, app="first", display=desk.server.display)
    assert until(lambda: not zombies_of(os.getpid()))
    before = counts(desk)
    for number in range(50):
        answer = desk.launch("many", command("--title", f"number {number}"))
        assert answer["matched"]
        assert quit_application(desk.conn, app="many", display=desk.server.display)["outcome"] == "closed"
    assert until(lambda: counts(desk) == before), (counts(desk), before)
    assert desk.records() == []


def counts(desk: Desk) -> tuple[int, ...]:
    import threading

    mine = launched_process.parents()
    # Launches of other tests go on beside these, on displays of their own.
    here = [pid for pid in mine if display_of(pid) == desk.server.display]
    marked = [pid for pid in here if launched_process.launch_of(pid)]
    children = [pid for pid, parent in mine.items() if parent == os.getpid()]
    x_clients = len(windows.list_windows(desk.conn))
    return (
        len(os.listdir("/proc/self/fd")), threading.active_count(), len(children), len(zombies_of(os.getpid())),
        len(marked), x_clients,
    )  # fmt: skip


def test_a_launch_outlives_the_process_that_asked_for_it(desk: Desk) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from deskhand.hand import state\n"
        "from deskhand.hand.launch import launch\n"
        "from deskhand.hand.applications import read_entry\n"
        "from deskhand.hand.x11 import Connection\n"
        "state.own_directory = lambda: sys.argv[4]\n"
        "conn = Connection.open()\n"
        "print(launch(conn, None, read_entry(sys.argv[3], 'lives'), display=sys.argv[5])['pid'])\n"
    )
    make_entry(desk.directory, "lives", command("--title", "lives on"))
    source = str(Path(launched_process.__file__).parents[2])
    tests = str(Path(__file__).parents[2])
    arguments = [source, tests, str(desk.directory / "lives.desktop"), state.own_directory(), desk.server.display]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=desk.server.env, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pid = int(done.stdout)
    assert os.path.exists(f"/proc/{pid}")
    (record,) = desk.records()
    assert record["alive"]
    assert record["pid"] in list(launched_process.ancestors(pid))
    # Quit works from another process than the one that launched.
    assert quit_application(desk.conn, app="lives", force=True, display=desk.server.display)["outcome"] == "closed"
    assert until(lambda: state.process_start_time(record["pid"]) is None)


def test_the_host_does_not_become_a_subreaper(desk: Desk) -> None:
    desk.launch("one", command("--title", "one"))
    script = "(sleep 0.2) & echo $!"
    child = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    pid = int(child.stdout)
    assert os.getpid() not in list(launched_process.ancestors(pid))


@pytest.mark.parametrize("manager_gone", [False, True])
def test_a_display_that_dies_during_a_launch(display: XServer, tmp_path: Path, manager_gone: bool) -> None:
    from deskhand.hand.errors import DisplayLost

    with Connection.open(display.display) as conn:
        desk = Desk(display, conn, tmp_path, None)
        killer = f'sh -c "sleep 0.3; kill {display.pid}; sleep 60"'
        with pytest.raises(DisplayLost):
            desk.launch("killer", killer)
        end_all(desk)


def test_timeout_is_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from deskhand.hand import launch as module

    monkeypatch.setattr(module, "LONGEST_TIMEOUT", 0.3)
    assert "within 0.3 s" in str(desk.fails("sleeper", "sleep 60", timeout=1000))


def test_two_launches_of_one_program_at_once_keep_their_windows_apart(desk: Desk) -> None:
    # The second's window is there first; it has the same class.
    slow = make_entry(desk.directory, "slow", command("--title", "slow", "--wm-class", "twin,Twin", "--delay", "1"))
    quick = make_entry(desk.directory, "quick", command("--title", "quick", "--wm-class", "twin,Twin"), name="twin")
    where = environment(desk.server, desk.manager)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:2]\n"
        "from deskhand.hand import state\n"
        "from deskhand.hand.launch import launch\n"
        "from deskhand.hand.applications import read_entry\n"
        "from deskhand.hand.x11 import Connection\n"
        "state.own_directory = lambda: sys.argv[3]\n"
        "entry = read_entry(sys.argv[2], 'quick')\n"
        "print(launch(Connection.open(), None, entry, display=sys.argv[4])['window']['title'])\n"
    )
    source = str(Path(launched_process.__file__).parents[2])
    arguments = [source, quick.path, state.own_directory(), desk.server.display]
    other = subprocess.Popen([sys.executable, "-c", code, *arguments], env=where.env, stdout=subprocess.PIPE, text=True)
    twin = make_entry(desk.directory, "twin", slow.exec)
    answer = launch(desk.conn, None, twin, display=desk.server.display, environment=where)
    assert answer["window"]["title"] == "slow"
    assert other.communicate(timeout=30)[0].strip() == "quick"


def test_two_entries_of_one_program_are_told_apart(desk: Desk) -> None:
    first = desk.launch("one", command("--title", "first", "--wm-class", "same,Same"))
    second = desk.launch("two", command("--title", "second", "--wm-class", "same,Same"))
    assert first["window"]["id"] != second["window"]["id"]
    quit_application(desk.conn, app="one", display=desk.server.display)
    assert [facts["title"] for facts in windows.list_windows(desk.conn)] == ["second"]
    assert window_actions.activate(desk.conn, second["window"]["id"])["focused"]
