# ruff: noqa: F811  (fixtures of another file)
"""Quitting: politely, with a dialog, by force; and what force must never touch."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from tests.launching import Desk, argument_script, desk, own_state  # noqa: F401
from tests.x_windows import command, make_entry, x_window, zombies_of
from tests.xservers import until

from deskhand.hand import launched_process, state, windows
from deskhand.hand.errors import ActionFailed
from deskhand.hand.quit import quit_application
from deskhand.hand.window_properties import mark_launched
from deskhand.hand.x11 import core, xtest


def test_by_id_and_by_name(desk: Desk) -> None:
    display = desk.server.display
    for asked in ("one", "ONE", "A Name"):
        answer = desk.launch("one", command("--title", "it"), "Name=A Name")
        quitted = quit_application(desk.conn, app=asked, display=display)
        assert quitted == {"outcome": "closed", "windows": [answer["window"]["id"]]}
        assert state.process_start_time(answer["pid"]) is None
        assert desk.records() == []
        assert quit_application(desk.conn, app=asked, display=display) == {"outcome": "not_running"}
    assert until(lambda: not zombies_of(os.getpid()))


def test_all_windows_of_an_application(desk: Desk) -> None:
    both = argument_script(
        desk.directory, f"{command('--title', 'first')} &\n{command('--title', 'second', '--delay', '0.2')} &\nwait\n"
    )
    desk.launch("pair", both)
    assert until(lambda: len(windows.list_windows(desk.conn)) == 2)
    answer = quit_application(desk.conn, app="pair", display=desk.server.display)
    assert (answer["outcome"], len(answer["windows"])) == ("closed", 2)
    assert windows.list_windows(desk.conn) == []


def test_one_window(desk: Desk) -> None:
    one = desk.launch("one", command("--title", "one"))
    two = desk.launch("two", command("--title", "two"))
    answer = quit_application(desk.conn, window=one["window"]["id"], display=desk.server.display)
    assert answer["outcome"] == "closed"
    assert [facts["id"] for facts in windows.list_windows(desk.conn)] == [two["window"]["id"]]
    with pytest.raises(ActionFailed, match="no window"):
        quit_application(desk.conn, window=one["window"]["id"], display=desk.server.display)
    assert state.process_start_time(two["pid"]) is not None


def test_a_dialog_is_told_and_force_ends_it_all_the_same(desk: Desk) -> None:
    display = desk.server.display
    desk.launch("unsaved", command("--title", "unsaved", "--on-close", "dialog"))
    for _ in range(2):
        answer = quit_application(desk.conn, app="unsaved", display=display)
        assert answer["outcome"] == "asked"
        assert answer["dialog"]["title"] == "Save changes?"
    assert quit_application(desk.conn, app="unsaved", force=True, display=display) == {"outcome": "closed", "ended": 1}
    assert windows.list_windows(desk.conn) == []
    assert desk.records() == []


def test_a_window_of_the_launch_that_another_process_has_is_not_said_to_be_closed(desk: Desk) -> None:
    desk.launch("one", command("--title", "one"))
    other = desk.launch("other", command("--title", "other"))["window"]["id"]
    record = next(record for record in desk.records() if record["id"] == "one")
    mark_launched(desk.conn, other, record["mark"])  # as the window of an application that the session bus started
    with pytest.raises(ActionFailed, match=f"window {other}, which another process has, is still open") as caught:
        quit_application(desk.conn, app="one", force=True, display=desk.server.display)
    assert (caught.value.facts["windows"], caught.value.facts["ended"]) == ([other], 1)
    assert [facts["id"] for facts in windows.list_windows(desk.conn)] == [other]


def test_a_window_that_does_not_listen_is_an_error_in_time(desk: Desk) -> None:
    desk.launch("deaf", command("--title", "deaf", "--on-close", "ignore"))
    with pytest.raises(ActionFailed, match=r"deaf is still open after 0\.3 s and no dialog is"):
        quit_application(desk.conn, app="deaf", timeout=0.3, display=desk.server.display)


def test_windows_not_launched_here_are_closed_politely_only(desk: Desk) -> None:
    display = desk.server.display
    with x_window(desk.conn, desk.server, "theirs", "--wm-class", "their,Their") as window:
        for target in ({"app": "their"}, {"window": window}):
            with pytest.raises(ActionFailed, match="was not launched here, so it is not ended by force"):
                quit_application(desk.conn, force=True, display=display, **target)
        assert windows.window_facts(desk.conn, window)["viewable"]
        assert quit_application(desk.conn, app="Their", display=display)["outcome"] == "closed"
    assert quit_application(desk.conn, app="their", force=True, display=display) == {"outcome": "not_running"}


def test_an_entry_tells_by_which_class_its_windows_go(desk: Desk) -> None:
    entry = make_entry(desk.directory, "org.example.Odd", "true", "StartupWMClass=Strange", name="Odd One")
    with x_window(desk.conn, desk.server, "theirs", "--wm-class", "x,Strange"):
        answer = quit_application(desk.conn, app="Odd One", entry=entry, display=desk.server.display)
        assert answer["outcome"] == "closed"


def test_force_ends_the_whole_family_and_nobody_else(desk: Desk) -> None:
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        # Children in sessions of their own, one that ignores SIGTERM, one that is stopped, one that cleared its mark.
        script = argument_script(
            desk.directory,
            "setsid sleep 301 &\n(trap '' TERM; sleep 302; sleep 303) &\nsleep 304 & kill -STOP $!\n"
            f"env -i setsid sleep 305 &\nexec {command('--title', 'family')}\n",
        )
        desk.launch("family", script)
        (record,) = desk.records()
        mark = record["mark"]
        assert until(lambda: len(launched_process.descendants(record["pid"], mark)) >= 6)
        family = launched_process.descendants(record["pid"], mark)
        answer = quit_application(desk.conn, app="family", force=True, timeout=1.0, display=desk.server.display)
        assert answer["outcome"] == "closed"
        assert answer["ended"] >= 6
        assert all(state.process_start_time(pid) is None for pid in family)
        assert until(lambda: state.process_start_time(record["pid"]) is None)
        assert bystander.poll() is None
        assert state.process_start_time(desk.server.pid) is not None
        assert windows.window_manager(desk.conn) == "Openbox"
    finally:
        bystander.kill()
        bystander.wait()


def test_force_finds_the_family_when_its_keeper_was_killed(desk: Desk) -> None:
    answer = desk.launch("orphan", command("--title", "orphan", "--on-close", "ignore"))
    (record,) = desk.records()
    os.kill(record["pid"], signal.SIGKILL)
    assert until(lambda: state.process_start_time(record["pid"]) is None)
    assert state.process_start_time(answer["pid"]) is not None
    quitted = quit_application(desk.conn, app="orphan", force=True, display=desk.server.display)
    assert quitted == {"outcome": "closed", "ended": 1}
    assert state.process_start_time(answer["pid"]) is None
    assert until(lambda: not zombies_of(os.getpid()))


def test_a_dead_keeper_without_family_names_nobody() -> None:
    assert launched_process.descendants(None, "") == set()
    assert launched_process.descendants(None, "no-such-mark") == set()
    for root in (0, 1):
        assert launched_process.descendants(root, "no-such-mark") == set()


def test_a_keeper_does_not_end_before_its_application(desk: Desk) -> None:
    desk.launch("stays", command("--title", "stays"))
    (record,) = desk.records()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        os.kill(record["pid"], number)
    quit_application(desk.conn, app="stays", display=desk.server.display)
    assert until(lambda: state.process_start_time(record["pid"]) is None)


def test_force_is_limited_to_the_session_that_launched(desk: Desk) -> None:
    display = desk.server.display
    desk.launch("one", command("--title", "one"), session="mine")
    with pytest.raises(ActionFailed, match="was launched by another session"):
        quit_application(desk.conn, app="one", force=True, display=display, session="other")
    assert quit_application(desk.conn, app="one", force=True, display=display, session="mine")["outcome"] == "closed"


def test_what_runs_without_a_window(desk: Desk) -> None:
    display = desk.server.display
    desk.fails("daemon", "sleep 60", timeout=0.3)
    with pytest.raises(ActionFailed, match="daemon runs but has no window to close"):
        quit_application(desk.conn, app="daemon", display=display)
    assert quit_application(desk.conn, app="daemon", force=True, display=display)["outcome"] == "closed"


def test_a_process_that_goes_on_without_its_window_is_told(desk: Desk) -> None:
    script = argument_script(desk.directory, f"{command('--title', 'front')}\nsleep 60\n")
    desk.launch("tray", script)
    answer = quit_application(desk.conn, app="tray", timeout=0.5, display=desk.server.display)
    assert answer["outcome"] == "closed"
    assert answer["running"] is True
    assert len(desk.records()) == 1
    assert quit_application(desk.conn, app="tray", force=True, display=desk.server.display)["outcome"] == "closed"


def test_an_old_record_never_names_a_new_window(desk: Desk) -> None:
    """Window ids and display numbers are used again; a record of a server that is gone must not close a stranger."""
    display = desk.server.display
    with x_window(desk.conn, desk.server, "stranger") as window:
        state.record_launched(
            display,
            {"id": "old", "name": "Old", "pid": 2**22 - 1, "start_time": 1, "mark": "gone", "window": window},
        )
        assert quit_application(desk.conn, app="old", display=display) == {"outcome": "not_running"}
        assert windows.window_facts(desk.conn, window)["viewable"]
        assert desk.records() == []


def test_takes_either_app_or_window(desk: Desk) -> None:
    for arguments in ({}, {"app": "x", "window": 1}):
        with pytest.raises(ValueError, match="either app or window"):
            quit_application(desk.conn, display=desk.server.display, **arguments)  # type: ignore[arg-type]


@pytest.mark.slow
def test_mousepad_with_unsaved_text_asks(desk: Desk) -> None:
    if not os.path.exists("/usr/bin/mousepad"):
        pytest.skip("no mousepad here")
    display = desk.server.display
    # A HOME of its own: after a forced end mousepad asks about the last time first.
    home = {"HOME": str(desk.directory), "GSETTINGS_BACKEND": "memory", "NO_AT_BRIDGE": "1"}
    home.update((f"XDG_{kind}_HOME", str(desk.directory / kind)) for kind in ("DATA", "CONFIG", "STATE", "CACHE"))
    answer = desk.launch("mousepad", "mousepad --disable-server", env=home)
    window = answer["window"]["id"]
    keycode = next(
        code for code, keysyms in enumerate(core.get_keyboard_mapping(desk.conn, 8, 248), 8) if ord("a") in keysyms
    )

    def changed() -> bool:
        # GTK marks a changed document in the title.
        return bool(windows.window_facts(desk.conn, window)["title"].startswith("*"))

    for _ in range(20):  # a window that is focused may not listen to keys yet
        for kind in (xtest.KEY_PRESS, xtest.KEY_RELEASE):
            xtest.fake_input(desk.conn, kind, keycode)
        desk.conn.sync()
        if windows.await_state(desk.conn, changed, 0.5):
            break
    assert changed()
    quitted = quit_application(desk.conn, app="mousepad", display=display)
    assert quitted["outcome"] == "asked"
    assert windows.window_facts(desk.conn, quitted["dialog"]["id"])["type"] == "dialog"
    assert quit_application(desk.conn, app="mousepad", force=True, display=display)["outcome"] == "closed"
