"""Ending desktops: politely, after kill -9 of any part, and when a part dies by itself."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deskhand.desktop import DesktopState, list_desktops, processes, stop_desktop
from deskhand.desktop.processes import wait_for_end
from deskhand.hand.errors import SetupError
from deskhand.hand.state import find_desktop, launched, process_start_time, record_launched

from .conftest import Start, fake, is_dead_socket, nothing_left_of, run_as, run_on, wait_for

pytestmark = pytest.mark.slow

#: An account that every system has; a session bus asks for one.
NOBODY = pwd.getpwnam("nobody").pw_uid
#: A user number that no account has: what an ordinary user can do is tried with it.
STRANGER = 48799


def status_of(desktop: DesktopState) -> dict[str, object]:
    return next(facts for facts in list_desktops() if facts["id"] == desktop.id)


def test_an_unknown_display_names_the_known_ones(start: Start) -> None:
    desktop = start()
    with pytest.raises(SetupError, match=f"is at :9999; there are: .*{desktop.display}"):
        stop_desktop(":9999")
    with pytest.raises(SetupError, match="not a display name"):
        stop_desktop("../x")
    stop_desktop(f"unix{desktop.display}.0")
    with pytest.raises(SetupError, match="no desktop that was started here"):
        stop_desktop(desktop.display)


@pytest.mark.parametrize("part", ["supervisor", "X server", "session bus", "session"])
def test_down_after_kill_9(start: Start, part: str) -> None:
    desktop = start()
    os.kill(desktop.processes[part][0], signal.SIGKILL)
    stop_desktop(desktop.display)
    nothing_left_of(desktop)


@pytest.mark.slow
def test_down_after_kill_9_of_supervisor_and_server_of_xfce(start: Start) -> None:
    desktop = start("xfce")
    for part in ("supervisor", "X server"):
        os.kill(desktop.processes[part][0], signal.SIGKILL)
    stop_desktop(desktop.display)
    nothing_left_of(desktop)


@pytest.mark.parametrize("part", ["X server", "session bus", "session"])
def test_a_part_that_dies_ends_the_desktop_and_is_told(start: Start, part: str) -> None:
    desktop = start()
    os.kill(desktop.processes[part][0], signal.SIGKILL)
    assert wait_for_end(*desktop.processes["supervisor"], 30.0)
    status = status_of(desktop)
    assert (status["state"], status["alive"]) == ("dead", False)
    assert status["reason"] == f"the {part} was ended by SIGKILL"
    assert processes.processes_of(desktop.id) == {}
    assert not is_dead_socket(f"/tmp/.X11-unix/X{desktop.display[1:]}")
    assert find_desktop(desktop.display) is None
    stop_desktop(desktop.display)
    nothing_left_of(desktop)


def test_status_tells_which_part_is_dead_when_nobody_watches(start: Start) -> None:
    desktop = start()
    assert status_of(desktop)["alive"] is True
    os.kill(desktop.processes["supervisor"][0], signal.SIGKILL)
    assert wait_for_end(*desktop.processes["supervisor"], 10.0)
    status = status_of(desktop)
    assert status["alive"] is False
    assert status["reason"] == "no longer running: supervisor"


def test_the_next_start_takes_away_what_dead_desktops_left(start: Start) -> None:
    desktop = start()
    for pid, start_time in sorted(desktop.processes.values()):
        os.kill(pid, signal.SIGKILL)
        wait_for_end(pid, start_time, 10.0)
    start()
    assert not os.path.exists(desktop.directory)


def test_programs_of_the_desktop_end_with_it(start: Start, tmp_path: Path) -> None:
    """One that ignores SIGTERM, one in a session of its own, one with a cleared environment, one that is stopped."""
    desktop = start()
    commands = [
        ["sh", "-c", "trap '' TERM; while :; do sleep 1000; done"],
        ["setsid", "sleep", "1000"],
        ["sh", "-c", "env -i sleep 1000 & sleep 1000"],
        ["sleep", "1000"],
    ]
    children = [run_on(desktop, command) for command in commands]
    try:
        children[-1].send_signal(signal.SIGSTOP)
        assert {child.pid for child in children} <= set(processes.processes_of(desktop.id))
        stop_desktop(desktop.display)
        for child in children:
            assert child.wait(10) != 0
        nothing_left_of(desktop)
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_the_record_of_launches_goes_with_the_desktop(start: Start) -> None:
    desktop = start()
    record_launched(desktop.display, {"id": "mousepad", "pid": os.getpid()})
    # The display's number may have been another server's, with an application of it that has not ended yet.
    assert "mousepad" in [record["id"] for record in launched(desktop.display)]
    stop_desktop(desktop.display)
    assert launched(desktop.display) == []


def test_the_mark_of_another_desktop_is_not_touched(start: Start) -> None:
    one, two = start(), start()
    other = subprocess.Popen(["sleep", "1000"], env=two.env)
    try:
        stop_desktop(one.display)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_orphans_are_reaped(start: Start, open_directory: Path) -> None:
    script = "(sleep 0.1 & echo $! >$TMPDIR/orphan)\nexec /usr/bin/openbox --sm-disable\n"
    desktop = start("openbox", environment={"PATH": fake(open_directory, "openbox", script)})
    orphan = int(Path(desktop.env["TMPDIR"], "orphan").read_text())
    wait_for(lambda: not os.path.exists(f"/proc/{orphan}"))


def test_the_callers_own_children_are_left_to_it(start: Start) -> None:
    desktop = start()
    child = subprocess.Popen(["sh", "-c", "exit 7"])
    wait_for(lambda: process_start_time(child.pid) is None)
    stop_desktop(desktop.display)
    assert child.wait() == 7


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_an_ordinary_user_starts_and_stops_a_desktop(open_directory: Path) -> None:
    script = (
        "import json, os\n"
        "from deskhand.desktop import start_desktop, stop_desktop, list_desktops\n"
        "from deskhand.desktop import processes\n"
        "d = start_desktop('openbox', size=(800, 600))\n"
        "pids = sorted(p for p in processes.processes_of(d.id))\n"
        "uids = sorted({os.stat(f'/proc/{p}').st_uid for p in pids})\n"
        "seen = [x['display'] for x in list_desktops() if x['id'] == d.id]\n"
        "stop_desktop(d.display)\n"
        "print(json.dumps([d.uid, d.state_file, uids, len(seen), sorted(processes.processes_of(d.id)),\n"
        "                  os.path.exists(d.directory), os.path.exists(d.state_file)]))\n"
    )
    done = run_as(NOBODY, script, home=open_directory)
    assert done.stderr == ""
    assert done.stdout.strip() == (
        f'[{NOBODY}, "/tmp/deskhand-{NOBODY}/desktops/{done.stdout.split("desktops/")[1].split(".")[0]}.json",'
        f" [{NOBODY}], 1, [], false, false]"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_an_ordinary_user_can_not_stop_roots_desktop(start: Start, open_directory: Path) -> None:
    desktop = start()
    script = "import sys; from deskhand.desktop import stop_desktop; stop_desktop(sys.argv[1])"
    done = run_as(STRANGER, script, desktop.display, home=open_directory)
    assert done.returncode != 0
    assert f"the desktop at {desktop.display} was started by root" in done.stderr
    assert find_desktop(desktop.display) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be two users")
def test_a_state_directory_of_somebody_else_is_not_trusted(open_directory: Path) -> None:
    trap = Path(f"/tmp/deskhand-{STRANGER - 1}")
    (trap / "desktops").mkdir(parents=True)
    os.chown(trap, STRANGER, STRANGER)
    try:
        script = "from deskhand.hand.state import make_own_directory as m; m('desktops')"
        done = run_as(STRANGER - 1, script, home=open_directory)
        assert f"{trap} is not a directory that only user {STRANGER - 1} may write to" in done.stderr
    finally:
        (trap / "desktops").rmdir()
        trap.rmdir()


def test_a_long_lived_starter_keeps_no_zombie() -> None:
    script = (
        "import os, sys\n"
        "from deskhand.desktop import start_desktop, stop_desktop\n"
        "d = start_desktop('openbox')\n"
        "stop_desktop(d.display)\n"
        "import threading\n"
        "[t.join(10) for t in threading.enumerate() if t.name.startswith('supervisor')]\n"
        "print([p for p in os.listdir('/proc') if p.isdigit()\n"
        "       and f'PPid:\\t{os.getpid()}\\n' in open(f'/proc/{p}/status').read()])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_memory_segments_of_dead_processes_are_removed(start: Start) -> None:
    desktop = start()
    # Makes a segment and stays: as an X client that is killed does.
    script = "import ctypes, time; print(ctypes.CDLL(None).shmget(0, 4096, 0o1600), flush=True); time.sleep(1000)"
    client = run_on(desktop, ["/usr/bin/python3", "-c", script])
    assert client.stdout is not None
    try:
        segment = client.stdout.readline().strip()
        assert segment in segments()
        # Reaped as it ends, for as a zombie it would still be somebody.
        threading.Thread(target=client.wait, daemon=True).start()
        stop_desktop(desktop.display)
        assert segment not in segments()
    finally:
        client.kill()
        client.wait()
        client.stdout.close()


def test_starting_twice_at_once() -> None:
    script = "from deskhand.desktop import start_desktop; print(start_desktop('openbox').display)"
    starters = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    shown = [starter.communicate(timeout=120)[0].strip() for starter in starters]
    try:
        assert len(set(shown)) == 3
        assert set(shown) <= {facts["display"] for facts in list_desktops() if facts["alive"]}
    finally:
        for display in shown:
            stop_desktop(display)


def segments() -> set[str]:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {line.split()[1] for line in lines}
