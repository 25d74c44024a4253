# ruff: noqa: F811  (fixtures of another file)
"""The hand launches and quits through the launcher."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading

import pytest

from deskhand.computerd.launcher.peer import Peer
from deskhand.computerd.launcher.server import Server
from deskhand.desktop.account import Account
from deskhand.hand import state
from deskhand.hand.errors import BatchRefused
from deskhand.hand.hand import Hand
from deskhand.hand.own_launcher import OwnLauncher, OwnLaunching
from deskhand.hand.window_properties import mark_launched
from deskhand.hand.x11 import Connection
from tests.computerd.launchers import (
    PYTHON,
    RunningLauncher,
    act,
    as_account,
    computerd,  # noqa: F401
    hand,  # noqa: F401
    launcher,  # noqa: F401
    needs_root,
    running_launcher,
)
from tests.x_windows import x_window
from tests.xservers import until

#: The hand in the account of computerd: arguments are the display, the socket, and batches as JSON.
HAND = """
import json, sys
from deskhand.computerd.launcher.client import LauncherClient
from deskhand.hand.answering import answer
from deskhand.hand.hand import Hand
with Hand(sys.argv[1], launcher=LauncherClient(sys.argv[2])) as hand:
    for request in sys.argv[3:]:
        print(json.dumps(answer(hand, json.loads(request)).answer), flush=True)
"""


def test_the_hand_sees_the_window_and_quits_it(launcher: RunningLauncher, hand: Hand) -> None:
    launcher.entry("one", launcher.window("--title", "The one"), name="Number One")
    assert hand.apps() == [{"id": "one", "name": "Number One", "path": str(launcher.data / "one.desktop")}]
    (result,) = act(hand, {"action": "launch", "app": "number one"})
    assert (result["outcome"], result["matched"], result["focused"]) == ("window", True, True)
    assert result["window"]["title"] == "The one"
    assert os.stat(f"/proc/{result['pid']}").st_uid == launcher.account.uid
    assert os.getsid(result["pid"]) == result["pid"]
    (quitted,) = act(hand, {"action": "quit", "app": "one"})
    assert quitted["outcome"] == "closed"
    assert "running" not in quitted
    assert until(lambda: launcher.ask(b"launched\n")["launches"] == [])
    (again,) = act(hand, {"action": "quit", "app": "one"})
    assert again["outcome"] == "not_running"


def test_an_early_death_is_told_with_status_and_last_words(launcher: RunningLauncher, hand: Hand) -> None:
    launcher.entry("dies", launcher.script("echo cannot open the moon >&2\nexit 3\n"))
    (result,) = act(hand, {"action": "launch", "app": "dies"})
    assert result["status"] == "failed"
    assert result["error"].startswith(
        "dies ended before it opened a window, with exit status 3; its last words: cannot open the moon"
    )
    assert (result["exit"], result["running"]) == ("exit status 3", False)


@pytest.mark.slow
def test_a_child_of_a_forker_is_the_launchs(launcher: RunningLauncher, hand: Hand) -> None:
    launcher.entry("forker", launcher.script(f"({launcher.window('--title', 'child', '--delay', '0.3')}) &\nexit 0\n"))
    (result,) = act(hand, {"action": "launch", "app": "forker"})
    assert (result["window"]["title"], result["matched"]) == ("child", True)


@pytest.mark.slow
def test_no_window_in_time_names_what_runs_and_its_last_words(launcher: RunningLauncher, hand: Hand) -> None:
    launcher.entry("windowless", launcher.script("echo in the background\nexec sleep 60\n"))
    (result,) = act(hand, {"action": "launch", "app": "windowless", "timeout": 1})
    assert "opened no window within 1 s; it is still running (pid group" in result["error"]
    assert result["last_words"] == "in the background"
    (refused,) = act(hand, {"action": "quit", "app": "windowless"})
    assert "runs but has no window to close" in refused["error"]
    (forced,) = act(hand, {"action": "quit", "app": "windowless", "force": True})
    assert (forced["outcome"], forced["ended"]) == ("closed", 1)
    assert launcher.records() == []


@pytest.mark.slow
def test_a_single_instance_application_that_ran_is_raised_and_can_be_quit(
    launcher: RunningLauncher,
    hand: Hand,
) -> None:
    launcher.entry(
        "single", launcher.window("--title", "single", "--wm-class", "single,Single"), "StartupWMClass=Single"
    )
    (first,) = act(hand, {"action": "launch", "app": "single"})
    # The second one only raises the window of the first, and leaves.
    raiser = f"from deskhand.hand.x11 import Connection\nfrom deskhand.hand import window_actions\n\
window_actions.activate(Connection.open(), {first['window']['id']})"
    (launcher.directory / "raiser.py").write_text(raiser)
    launcher.entry("other", launcher.window("--title", "other"))
    act(hand, {"action": "launch", "app": "other"})
    raise_it = launcher.script(f"PYTHONPATH={launcher.directory}/src exec {PYTHON} {launcher.directory}/raiser.py\n")
    launcher.entry("single", raise_it, "StartupWMClass=Single")
    (second,) = act(hand, {"action": "launch", "app": "single"})
    assert (second["outcome"], second["window"]["id"]) == ("focus", first["window"]["id"])
    assert second["group"] is None
    # Two launches have the window now, and are both remembered: the second by the mark on it.
    assert [one["id"] for one in launcher.ask(b"launched\n")["launches"]] == ["single", "other", "single"]
    (quitted,) = act(hand, {"action": "quit", "app": "single"})
    assert quitted["outcome"] == "closed"
    assert until(lambda: [one["id"] for one in launcher.ask(b"launched\n")["launches"]] == ["other"])


@pytest.mark.slow
def test_what_ends_just_before_its_record_is_written_is_remembered_by_the_window(
    launcher: RunningLauncher, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Thunar's second process asks the first for a window and leaves when the answer is already on its way.
    go = launcher.directory / "home" / "go"
    launcher.entry("late", launcher.script(f"until [ -e {go} ]; do sleep 0.01; done\n"))
    close = OwnLaunching.close

    def ends_first(launching: OwnLaunching) -> None:
        assert not launching.over
        go.touch()

        def over() -> bool:
            launching.read()
            return launching.over

        assert until(over)
        close(launching)

    monkeypatch.setattr(OwnLaunching, "close", ends_first)
    ours, theirs = socket.socketpair()
    display = launcher.server.display
    with ours, theirs, Connection.open(display) as conn, x_window(conn, launcher.server, "of the first") as window:
        listener = socket.socket(socket.AF_UNIX)
        server = Server(listener, os.getuid(), display)
        serving = threading.Thread(target=server._serve_one, args=(theirs, Peer(theirs), threading.Semaphore()))
        with monkeypatch.context() as patch:
            for name, value in launcher.environment.items():
                patch.setenv(name, value)
            serving.start()
            ours.sendall(b"launch late\n")
            mark = json.loads(ours.makefile("rb").readline())["mark"]
            mark_launched(conn, window, mark)
            conn.sync()
            ours.shutdown(socket.SHUT_WR)
            serving.join()
        assert [one.mark for one in OwnLauncher(conn, display).launches()] == [mark]
    assert until(lambda: launcher.ask(b"launched\n")["launches"] == [])


@pytest.mark.slow
def test_only_what_was_launched_here_is_quit(launcher: RunningLauncher, hand: Hand) -> None:
    foreign = subprocess.Popen(
        [PYTHON, str(launcher.directory / "tests/fixtures/x_window.py"), "--title", "theirs", "--wm-class", "x,Theirs"],
        env=launcher.environment,
        **as_account(launcher.account),
    )
    try:
        (seen,) = act(hand, {"action": "wait_window", "title": "theirs"})
        launcher.entry("theirs", launcher.window(), "StartupWMClass=Theirs")
        for force in (False, True):
            for target in ({"window": seen["window"]["id"]}, {"app": "theirs"}):
                (result,) = act(hand, {"action": "quit", "force": force, **target})
                assert "was not launched here, and only what was is quit: close its window instead" in result["error"]
        assert foreign.poll() is None
        (closed,) = act(hand, {"action": "close", "window": seen["window"]["id"]})
        assert closed["status"] == "ok"
    finally:
        foreign.kill()
        foreign.wait()


@pytest.mark.slow
def test_force_ends_one_launch_of_two(launcher: RunningLauncher, hand: Hand) -> None:
    launcher.entry("deaf", launcher.window("--title", "deaf", "--on-close", "ignore"))
    (one,) = act(hand, {"action": "launch", "app": "deaf"})
    (two,) = act(hand, {"action": "launch", "app": "deaf"})
    (forced,) = act(hand, {"action": "quit", "window": one["window"]["id"], "force": True})
    assert (forced["outcome"], forced["ended"]) == ("closed", 1)
    assert state.process_start_time(one["pid"]) is None
    assert state.process_start_time(two["pid"]) is not None


@pytest.mark.slow
def test_kill_takes_an_id_or_a_name_and_touches_nothing_else(launcher: RunningLauncher, hand: Hand) -> None:
    launcher.entry("one", launcher.window("--title", "one"), name="Number One")
    launcher.entry("two", launcher.window("--title", "two"))
    bystander = subprocess.Popen(["sleep", "60"], **as_account(launcher.account))
    try:
        for name in ("one", "NUMBER ONE"):
            (first,) = act(hand, {"action": "launch", "app": "one"})
            (second,) = act(hand, {"action": "launch", "app": "two"})
            assert launcher.ask(f"kill {name}\n".encode()) == {"ok": True, "ended": 1, "left": []}
            assert state.process_start_time(first["pid"]) is None
            assert state.process_start_time(second["pid"]) is not None
        assert launcher.ask(b"kill one\n") == {"ok": True, "ended": 0, "left": []}
        assert launcher.ask(b"kill sleep\n") == {"ok": True, "ended": 0, "left": []}
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_application_that_is_gone_from_the_list_is_refused_in_preflight(
    launcher: RunningLauncher,
    hand: Hand,
) -> None:
    launcher.entry("editor", launcher.window(), name="Editor")
    click = {"action": "click", "x": 5, "y": 5}
    with pytest.raises(BatchRefused, match=r"action 1 \(launch\): unknown application 'Edit'") as refused:
        act(hand, click, {"action": "launch", "app": "Edit"})
    assert refused.value.facts["near"] == [{"id": "editor", "name": "Editor"}]


@pytest.mark.slow
@needs_root
def test_the_hand_in_computerds_account_launches_force_ends_and_reads_nothing(computerd: Account) -> None:
    with running_launcher(computerd) as launcher:
        launcher.entry("one", launcher.window("--title", "one"))
        launcher.entry("other", launcher.window("--title", "two", "--on-close", "ignore"))
        batches = [
            {"actions": [{"action": "launch", "app": "one"}, {"action": "launch", "app": "other"}]},
            {"actions": [{"action": "quit", "app": "one"}, {"action": "quit", "app": "other", "force": True}]},
        ]
        done = subprocess.run(
            [PYTHON, "-c", HAND, launcher.server.display, launcher.path, *map(json.dumps, batches)],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": launcher.environment["PYTHONPATH"], "HOME": "/nonexistent"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            **as_account(computerd),
        )
        assert done.returncode == 0, done.stderr
        launched, quitted = map(json.loads, done.stdout.splitlines())
        assert launched["ok"] is True, launched
        assert [result["window"]["title"] for result in launched["results"]] == ["one", "two"]
        assert [(one["matched"], one["focused"]) for one in launched["results"]] == [(True, True)] * 2
        assert [result["outcome"] for result in quitted["results"]] == ["closed", "closed"]
        assert [state.process_start_time(result["pid"]) for result in launched["results"]] == [None, None]
