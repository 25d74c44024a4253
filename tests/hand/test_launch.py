# ruff: noqa: F811  (fixtures of another file)
"""Launching: the window that is seen. Real servers and processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.launching import Desk, argument_script, bare, desk, own_state, waiting_for  # noqa: F401
from tests.x_windows import command, x_window

from deskhand.hand import launched_process, windows


@pytest.mark.parametrize("where", ["desk", "bare"])
def test_a_window_is_seen_and_has_the_focus(request: pytest.FixtureRequest, where: str) -> None:
    desk: Desk = request.getfixturevalue(where)
    answer = desk.launch("one", command("--title", "The one"))
    assert answer["outcome"] == "window"
    assert answer["window"]["title"] == "The one"
    assert answer["window"]["app_id"] == "XWindow"
    assert answer["window"]["rect"][2:] == [300, 200]
    assert (answer["matched"], answer["focused"], answer["opener"]) == (True, True, "Exec line")
    assert windows.focused_window(desk.conn) == answer["window"]["id"]
    assert os.getsid(answer["pid"]) == answer["group"] == answer["pid"]


@pytest.mark.slow
def test_a_slow_window_is_waited_for(desk: Desk) -> None:
    answer = desk.launch("slow", command("--title", "late", "--delay", "3"))
    assert answer["window"]["title"] == "late"


def test_a_process_that_forks_and_leaves_is_followed(desk: Desk) -> None:
    script = argument_script(desk.directory, f"({command('--title', 'child', '--delay', '0.3')}) &\nexit 0\n")
    answer = desk.launch("forker", script)
    assert answer["window"]["title"] == "child"
    assert answer["matched"]
    assert launched_process.ancestors(answer["pid"])


def test_a_splash_does_not_count(desk: Desk) -> None:
    answer = desk.launch("office", command("--title", "Document", "--splash", "0.5"))
    assert answer["window"]["title"] == "Document"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["splash", "notification", "tooltip", "dock", "desktop"])
def test_windows_that_are_no_application_window(desk: Desk, kind: str) -> None:
    failed = desk.fails("kind", command("--title", "special", "--type", kind), timeout=1.0)
    assert f"opened no window within 1 s; it is still running (pid group {failed.facts['pid']})" in str(failed)
    assert f"'special' appeared but is a {kind}" in str(failed)
    assert failed.facts["running"]


def test_a_minimised_window_does_not_count(desk: Desk) -> None:
    failed = desk.fails("small", command("--title", "tiny", "--iconic"), timeout=1.0)
    assert "'tiny' appeared but is not shown" in str(failed)


def test_a_window_is_known_by_its_class_when_the_process_is_another(desk: Desk) -> None:
    # As with a terminal's server: the window's process is not of the launch.
    request = desk.directory / "request"
    server = subprocess.Popen(
        [
            "sh",
            "-c",
            waiting_for(request, "--title", "served", "--wm-class", "x,Served"),
        ],
        env=desk.server.env,
    )
    try:
        answer = desk.launch("served", f"touch {request}")
        assert (answer["outcome"], answer["matched"], answer["window"]["title"]) == ("window", True, "served")
        assert answer["group"] is None
    finally:
        server.kill()
        server.wait()


def test_a_window_of_another_is_reported_as_a_candidate_while_the_application_runs(desk: Desk) -> None:
    request = desk.directory / "request"
    other = subprocess.Popen(
        ["sh", "-c", waiting_for(request, "--title", "stranger")],
        env=desk.server.env,
    )
    try:
        failed = desk.fails("quiet", f'sh -c "touch {request}; sleep 60"', timeout=2.0)
        assert "'stranger' appeared but is not known to be the application's" in str(failed)
        assert failed.facts["candidates"][0]["title"] == "stranger"
    finally:
        other.kill()
        other.wait()


@pytest.mark.slow
def test_a_window_of_another_is_not_matched_when_the_application_has_gone(desk: Desk) -> None:
    request = desk.directory / "request"
    other = subprocess.Popen(
        ["sh", "-c", waiting_for(request, "--title", "unknown", "--delay", "0.5")],
        env=desk.server.env,
    )
    try:
        answer = desk.launch("gone", f"touch {request}")
        assert (answer["outcome"], answer["matched"], answer["window"]["title"]) == ("window", False, "unknown")
    finally:
        other.kill()
        other.wait()


def test_an_old_window_that_is_raised_counts_as_focus(desk: Desk) -> None:
    with (
        x_window(desk.conn, desk.server, "only", "--wm-class", "single,Single") as old,
        x_window(desk.conn, desk.server, "in front"),
    ):
        # A second instance that asks the window manager to raise the first one's window, and ends.
        raiser = desk.directory / "raise.py"
        raiser.write_text(
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from deskhand.hand import window_actions\n"
            "from deskhand.hand.x11 import Connection\n"
            "window_actions.activate(Connection.open(), int(sys.argv[2]))\n"
        )
        source = Path(launched_process.__file__).parents[2]
        answer = desk.launch("single", f'"{sys.executable}" "{raiser}" "{source}" {old}')
        assert (answer["outcome"], answer["window"]["id"]) == ("focus", old)
        assert (answer["matched"], answer["focused"]) == (True, True)


RENAME = "xprop -display {display} -id {window} -f _NET_WM_NAME 8u -set _NET_WM_NAME '{title}'"


@pytest.mark.slow
def test_an_application_that_takes_the_work_in_the_window_with_the_focus(desk: Desk) -> None:
    # An editor that runs already and opens a new tab: it is in front, so nothing is raised, and no window is new.
    with x_window(desk.conn, desk.server, "one file", "--wm-class", "single,Single") as old:
        script = argument_script(
            desk.directory, RENAME.format(display=desk.server.display, window=old, title="another file") + "\n"
        )
        answer = desk.launch("single", script)
        assert (answer["outcome"], answer["matched"], answer["focused"]) == ("focus", True, True)
        assert (answer["window"]["id"], answer["window"]["title"]) == (old, "another file")


def test_a_new_window_is_better_than_another_title_of_an_old_one(desk: Desk) -> None:
    with x_window(desk.conn, desk.server, "one page", "--wm-class", "single,Single") as old:
        renaming = RENAME.format(display=desk.server.display, window=old, title="another page")
        opening = command("--title", "new", "--wm-class", "single,Single")
        # It ends at once, and the window is another process's, as with a browser that runs already.
        script = argument_script(desk.directory, f"{renaming}\n( sleep 0.3; exec setsid {opening} ) &\n")
        answer = desk.launch("single", script)
        assert (answer["outcome"], answer["window"]["title"]) == ("window", "new")


@pytest.mark.slow
def test_another_title_of_another_application_is_no_launch(desk: Desk) -> None:
    with x_window(desk.conn, desk.server, "one page", "--wm-class", "other,Other") as old:
        script = argument_script(
            desk.directory, RENAME.format(display=desk.server.display, window=old, title="another page") + "\n"
        )
        desk.fails("single", script, timeout=1.0)


def test_the_focus_moving_to_another_application_is_no_launch(desk: Desk) -> None:
    with x_window(desk.conn, desk.server, "behind") as other, x_window(desk.conn, desk.server, "front"):
        raiser = desk.directory / "raise.py"
        raiser.write_text(
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from deskhand.hand import window_actions\n"
            "from deskhand.hand.x11 import Connection\n"
            "window_actions.activate(Connection.open(), int(sys.argv[2]))\n"
        )
        source = Path(launched_process.__file__).parents[2]
        failed = desk.fails("nobody", f'"{sys.executable}" "{raiser}" "{source}" {other}', timeout=1.0)
        assert "'behind' appeared but took the focus and is not known to be" in str(failed)


def test_a_window_that_the_window_manager_keeps_back_is_activated(desk: Desk) -> None:
    # Focus stealing prevention: the person has typed since the application was started, or so it says.
    with x_window(desk.conn, desk.server, "typed into"):
        answer = desk.launch("held", command("--title", "kept back", "--user-time", "0"))
        assert answer["focused"]
        assert windows.focused_window(desk.conn) == answer["window"]["id"]


@pytest.mark.slow
def test_a_window_that_wants_no_input_is_told_as_not_focused(desk: Desk) -> None:
    answer = desk.launch("clock", command("--title", "no keys", "--no-input"))
    assert answer["outcome"] == "window"
    assert answer["focused"] is False
