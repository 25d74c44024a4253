# ruff: noqa: F811  (fixtures of another file)
"""What the launcher tells of a launch, line by line, and what outlives what."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from deskhand.computerd.launcher.client import LauncherClient
from deskhand.hand import launched_process, state
from deskhand.hand.errors import ActionFailed, SetupError
from deskhand.hand.hand import Hand
from deskhand.hand.x11 import Connection, core
from tests.computerd.launchers import (
    Lines,
    RunningLauncher,
    act,
    computerd,  # noqa: F401
    hand,  # noqa: F401
    launcher,  # noqa: F401
)
from tests.x_windows import zombies_of
from tests.xservers import until


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
    # Its keeper may still be ending when we leave; the next who asks finds nothing left.
    assert until(lambda: launcher.ask(b"launched\n")["launches"] == [])
    assert launcher.records() == []


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
    # Fewer are no fault: the launcher may still have been closing what the fixture asked it by when we counted.
    assert until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= descriptors)
    assert until(lambda: len(os.listdir(f"/proc/{pid}/task")) == 1)
    assert until(lambda: launcher.ask(b"launched\n")["launches"] == [])
    assert launcher.records() == []


def children_of(pid: int) -> list[int]:
    return [one for one, parent in launched_process.parents().items() if parent == pid]


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
