# ruff: noqa: F811  (fixtures of another file)
"""Launching through the launcher: what the application is given, what is told of it, and what outlives what."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.computerd.launcher.client import LauncherClient
from deskhand.computerd.launcher.peer import Peer
from deskhand.computerd.launcher.server import Server
from deskhand.desktop.account import Account
from deskhand.hand import launched_process, state
from deskhand.hand.errors import ActionFailed, BatchRefused, SetupError
from deskhand.hand.hand import Hand
from deskhand.hand.own_launcher import OwnLauncher, OwnLaunching
from deskhand.hand.window_properties import mark_launched
from deskhand.hand.x11 import Connection, core
from tests.computerd.launchers import (
    PYTHON,
    RunningLauncher,
    as_account,
    computerd,  # noqa: F401
    launcher,  # noqa: F401
    needs_root,
    running_launcher,
)
from tests.x_windows import x_window, zombies_of
from tests.xservers import until

#: The hand in the account of computerd: arguments are the display, the socket, and batches as JSON.
HAND = """
import json, sys
from deskhand.computerd.launcher.client import LauncherClient
from deskhand.hand.answering import answer
from deskhand.hand.hand import Hand
from deskhand.hand.own_launcher import OwnLauncher, OwnLaunching
from deskhand.hand.window_properties import mark_launched
with Hand(sys.argv[1], launcher=LauncherClient(sys.argv[2])) as hand:
    for request in sys.argv[3:]:
        print(json.dumps(answer(hand, json.loads(request)).answer), flush=True)
"""


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


# ---- what is told


def test_pid_and_startup_id_come_at_once_and_the_death_after_them(launcher: RunningLauncher) -> None:
    launcher.entry("mortal", launcher.script("echo the first line\necho out of cheese >&2\nread x < fifo\nexit 7\n"))
    os.mkfifo(launcher.directory / "home" / "fifo", 0o666)
    (launcher.directory / "home" / "fifo").chmod(0o666)
    lines = Lines(launcher, "mortal")
    first = lines.next()
    assert first["ok"] is True
    assert first["over"] is False
    assert os.stat(f"/proc/{first['pid']}").st_uid == launcher.account.uid
    assert first["startup_id"].endswith(f"_TIME{first['startup_time']}")
    with Connection.open(launcher.server.display) as conn:
        assert 0 <= core.server_time(conn) - first["startup_time"] < 30_000
    (launcher.directory / "home" / "fifo").write_text("\n")
    last = lines.until("over")
    assert last["exit"] == last["failure"] == [first["pid"], 7, 0]
    assert last["last_words"] == "out of cheese"
    lines.close()
    assert until(lambda: launcher.records() == [])


@pytest.mark.slow
def test_the_last_words_of_what_still_runs_are_told_when_they_are_asked_for(launcher: RunningLauncher) -> None:
    launcher.entry("chatty", launcher.script("echo thinking\ntouch said\nexec sleep 60\n"))
    lines = Lines(launcher, "chatty")
    assert lines.next()["last_words"] == ""
    assert until((launcher.directory / "home" / "said").exists)
    last = lines.finish()
    assert (last["ok"], last["over"], last["last_words"]) == (True, False, "thinking")
    assert [one["id"] for one in launcher.ask(b"launched")["launches"]] == ["chatty"]


@pytest.mark.slow
def test_a_program_that_can_not_be_run_is_told(launcher: RunningLauncher) -> None:
    launcher.entry("gone", "/no/such/program")
    assert "its program '/no/such/program' is not there" in launcher.refusal(b"launch gone\n")
    broken = launcher.directory / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    launcher.entry("broken", str(broken))
    lines = Lines(launcher, "broken")
    first = lines.next()
    assert (first["pid"], first["failed"]) == (None, "No such file or directory")
    lines.close()
    assert until(lambda: launcher.records() == [])


@pytest.mark.slow
def test_an_activation_that_fails_falls_back_and_says_so(launcher: RunningLauncher) -> None:
    bus = launcher.directory / "bin"
    bus.mkdir()
    (bus / "gdbus").write_text(
        '#!/bin/sh\ncase "$*" in *ListActivatableNames*) echo "([\'org.example.App\'],)";; '
        "*) echo no such object >&2; exit 1;; esac\n"
    )
    (bus / "gdbus").chmod(0o755)
    launcher.stop()
    launcher.environment.update(PATH=f"{bus}:/usr/bin:/bin", DBUS_SESSION_BUS_ADDRESS="unix:path=/nowhere")
    launcher.start()
    launcher.entry("org.example.App", launcher.window("--title", "fell back"), "DBusActivatable=true")
    with Hand(launcher.server.display, launcher=launcher.client) as hand:
        (result,) = act(hand, {"action": "launch", "app": "org.example.App"})
    assert result["window"]["title"] == "fell back"
    assert result["note"] == "activating it on the session bus failed, so its Exec line was run"
    assert result["opener"] == "Exec line"
    (record,) = launcher.records()
    assert launched_process.launch_of(result["pid"]) == record["mark"]


# ---- seen by the hand


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


# ---- what outlives what


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_application_outlives_its_launcher_and_is_still_known_and_killed(
    launcher: RunningLauncher,
    hand: Hand,
    number: int,
) -> None:
    launcher.entry("one", launcher.window("--title", "one", "--on-close", "ignore"))
    (result,) = act(hand, {"action": "launch", "app": "one"})
    (before,) = launcher.ask(b"launched\n")["launches"]
    status = launcher.stop(number)
    assert status == (0 if number == signal.SIGTERM else -number)
    assert os.path.exists(launcher.path) == (number == signal.SIGKILL)
    assert state.process_start_time(result["pid"]) is not None
    with pytest.raises(SetupError, match="the launcher does not answer at"):
        hand.apps()
    launcher.start()
    assert launcher.ask(b"launched\n")["launches"] == [before]
    assert result["pid"] in before["pids"]
    assert launcher.ask(b"kill one\n")["ended"] == 1
    assert state.process_start_time(result["pid"]) is None
    assert launcher.ask(b"launched\n")["launches"] == []


@pytest.mark.slow
def test_a_launcher_that_dies_during_a_launch_leaves_the_window_to_tell(
    launcher: RunningLauncher,
) -> None:
    launcher.entry("slow", launcher.window("--title", "slow", "--delay", "1.5"))
    results: list[dict[str, Any]] = []

    def launch() -> None:
        with Hand(launcher.server.display, launcher=launcher.client) as hand:
            results.extend(act(hand, {"action": "launch", "app": "slow"}))

    thread = threading.Thread(target=launch)
    thread.start()
    assert until(lambda: launcher.records())
    assert until(lambda: launched_process.descendants(launcher.records()[0]["pid"], ""))
    time.sleep(0.3)  # until the hand has been told of the pid, which nobody else can see
    launcher.stop(signal.SIGKILL)
    thread.join()
    assert results[0]["status"] == "ok", results
    assert (results[0]["window"]["title"], results[0]["matched"]) == ("slow", True)


@pytest.mark.slow
def test_a_launcher_that_ends_before_it_answers_leaves_a_doubt(launcher: RunningLauncher) -> None:
    launcher.entry("one", "sleep 60")
    entry = launcher.client.find("one")
    assert launcher.process is not None
    launcher.process.send_signal(signal.SIGSTOP)
    errors: list[ActionFailed] = []

    def start() -> None:
        with pytest.raises(ActionFailed) as failed:
            launcher.client.start(entry)
        errors.append(failed.value)

    thread = threading.Thread(target=start)
    thread.start()
    time.sleep(0.3)  # until the request is on its way
    launcher.stop(signal.SIGKILL)
    thread.join()
    assert errors[0].sent == "part"
    assert str(errors[0]).startswith("one may have been started: the launcher at")


@pytest.mark.slow
def test_no_zombie_stays_after_twenty_launches_and_closes(launcher: RunningLauncher, hand: Hand) -> None:
    launcher.entry("one", launcher.window("--title", "one"))
    launcher.entry("forker", launcher.script(f"(sleep 0.01)&\n{launcher.window('--title', 'forked')} &\nexit 0\n"))
    assert launcher.process is not None
    pid = launcher.process.pid
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    for number in range(20):
        name = "forker" if number % 4 == 0 else "one"
        (launched,) = act(hand, {"action": "launch", "app": name})
        assert launched["status"] == "ok", launched
        (quitted,) = act(hand, {"action": "quit", "app": name, "force": number % 5 == 0})
        assert quitted["outcome"] == "closed", quitted
    assert until(lambda: not zombies_of(pid))
    assert until(lambda: not children_of(pid))
    assert until(lambda: len(os.listdir(f"/proc/{pid}/fd")) == descriptors)
    assert until(lambda: len(os.listdir(f"/proc/{pid}/task")) == 1)
    assert until(lambda: launcher.ask(b"launched\n")["launches"] == [])
    assert launcher.records() == []


def children_of(pid: int) -> list[int]:
    return [one for one, parent in launched_process.parents().items() if parent == pid]


# ---- what the application is given


def test_the_application_is_given_nothing_of_the_launchers() -> None:
    with running_launcher(start=False) as launcher:
        launcher.environment.update(
            MY_API_KEY="secret", SOME_TOKEN="secret", DB_PASSWORD="secret", COMPUTERD_LAUNCHER="secret",
            DESKHAND_URL="secret", NOTIFY_SOCKET="/secret", LISTEN_FDS="1",
        )  # fmt: skip
        os.umask(old := os.umask(0o077))
        os.umask(0o077)
        try:
            launcher.start()
        finally:
            os.umask(old)
        report = launcher.directory / "home" / "report"
        launcher.entry(
            "spy",
            launcher.script(
                "{ ls -l /proc/self/fd; cat /proc/self/status; umask; pwd; id -u; env; cat /proc/$PPID/cmdline; } > r\n"
                "mv r report\nexec sleep 60\n"
            ),
        )
        held = [launcher.connect() for _ in range(3)]
        lines = Lines(launcher, "spy")
        first = lines.next()
        assert until(report.exists)
        text = report.read_text()
        for one in held:
            one.close()
        lines.close()
    descriptors = [line.split(" -> ")[1] for line in text.splitlines() if " -> " in line]
    assert descriptors[0] == "/dev/null"
    assert not any("pipe" in one or "socket" in one for one in descriptors)
    assert len(descriptors) == 4  # the fourth is the listing's own folder
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert fields["SigIgn"] == fields["SigBlk"] == "0000000000000000"
    assert fields["NoNewPrivs"] == "1"
    assert fields["CapEff"] == fields["CapPrm"] == fields["CapInh"] == fields["CapAmb"] == "0000000000000000"
    assert "\n0022\n" in text
    assert f"\n{launcher.directory}/home\n" in text
    assert f"\n{launcher.account.uid}\n" in text
    assert "secret" not in text
    assert "PYTHONPATH" not in text
    assert "NOTIFY_SOCKET" not in text
    assert f"DISPLAY={launcher.server.display}" in text
    assert f"DESKTOP_STARTUP_ID={first['startup_id']}" in text


@pytest.mark.slow
@needs_root
def test_applications_may_gain_privileges_only_when_that_is_asked_for() -> None:
    with running_launcher(None, "--new-privs") as launcher:
        launcher.entry("spy", launcher.script("grep NoNewPrivs /proc/self/status > r; mv r report; exec sleep 60\n"))
        lines = Lines(launcher, "spy")
        report = launcher.directory / "home" / "report"
        assert until(report.exists)
        assert report.read_text().split() == ["NoNewPrivs:", "0"]
        lines.close()


@pytest.mark.slow
def test_the_x_server_may_go_and_come_back(launcher: RunningLauncher) -> None:
    launcher.entry("one", "sleep 60")
    os.kill(launcher.server.pid, signal.SIGKILL)
    answer = launcher.ask(b"list\n")
    assert (answer["ok"], answer["kind"]) == (False, "no_display")
    assert launcher.client.connects()
    number = launcher.server.number
    Path(f"/tmp/.X{number}-lock").unlink(missing_ok=True)
    again = subprocess.Popen(
        ["Xvfb", launcher.server.display, "-screen", "0", "640x480x24", "-noreset", "-nolisten", "tcp"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert until(lambda: launcher.ask(b"list\n")["ok"])
    finally:
        again.terminate()
        again.wait()


def test_the_client_of_no_launcher_says_what_to_do() -> None:
    client = LauncherClient("/nowhere/launcher.sock")
    assert not client.connects()
    with pytest.raises(SetupError, match=r"does not answer at /nowhere/launcher\.sock \(No such file or directory\)"):
        client.listing()
