"""S20, S21, S22, S25, S26: desktops that last, and hands that leak nothing."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from deskhand import Session
from deskhand.desktop import DesktopState
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer
from tests.cases.ways import Way
from tests.commands import deskhand
from tests.x_windows import make_entry, zombies_of
from tests.xservers import display_of

IN_FULL = [pytest.param(50, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.long)]


def x_clients(server: XServer) -> int:
    """How many clients the X server has, this one not counted (X-Resource, XResQueryClients)."""
    with Connection.open(server.display, server.xauthority) as conn:
        extension = conn.extension("X-Resource")
        assert extension is not None
        return int(struct.unpack_from("=I", conn.call(extension.major, 1), 8)[0]) - 1


def children(pid: int) -> set[int]:
    """Every process below ``pid``."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    found, grown = set(), {pid}
    while grown:
        grown = {one for one, parent in parents.items() if parent in grown and one not in found}
        found |= grown
    return found


def of_another_display(pid: int, server: XServer) -> bool:
    """A process of a desktop that other tests share comes and goes as it likes."""
    found = display_of(pid)
    return found is not None and found != server.display


class Counts:
    """What must not grow from before to after."""

    def __init__(self, way: Way, server: XServer) -> None:
        self.way = way
        self.server = server
        self.before = self.now()

    def now(self) -> dict[str, int]:
        return {
            "X clients": x_clients(self.server),
            "threads": threading.active_count(),
            "descriptors": self.way.descriptors(),
            "processes": sum(not of_another_display(pid, self.server) for pid in children(os.getpid())),
            "zombies": len(zombies_of(os.getpid())),
        }

    def stay(self) -> None:
        """What ends by itself when its window has gone is given a while."""
        deadline = time.monotonic() + 10
        while self.grown() and time.monotonic() < deadline:
            time.sleep(0.05)  # processes of other sessions end without telling us
        assert not self.grown()

    def grown(self) -> dict[str, tuple[int, int]]:
        """What there is more of than before: name to (before, now)."""
        now = self.now()
        return {name: (count, now[name]) for name, count in self.before.items() if now[name] > count}


async def used(session: Session) -> Session:
    """A session that has opened what it opens once: computerd's connection for pictures, a second one to computerd."""
    for _ in range(3):
        assert (await session.screenshot()).ok
    return session


# ---- S26: connections


@pytest.mark.parametrize("count", IN_FULL)
def test_s26_pictures_leave_nothing_open(way: Way, openbox_display: XServer, count: int) -> None:
    async def run(count: int) -> None:
        async with Session(way.backend(openbox_display)) as session:
            await used(session)
            counts = Counts(way, openbox_display)
            for _ in range(count):
                assert (await session.screenshot()).ok
            counts.stay()

    asyncio.run(run(1))
    outside = Counts(way, openbox_display)
    asyncio.run(run(count))
    outside.stay()


@pytest.mark.parametrize("count", [pytest.param(10, marks=pytest.mark.slow), pytest.param(300, marks=pytest.mark.long)])
def test_s26_a_call_a_process_leaves_no_connection(display: XServer, tmp_path: Path, count: int) -> None:
    """The server's limit is 256 clients."""
    words = ("screenshot", "-o", str(tmp_path / "a.png"))
    assert deskhand(display, *words).status == 0
    before = x_clients(display)
    for _ in range(count):
        assert deskhand(display, *words).status == 0
    assert x_clients(display) == before


def test_s26_sessions_that_come_and_go_leave_nothing(way: Way, openbox_display: XServer) -> None:
    async def run(times: int) -> None:
        for _ in range(times):
            async with Session(way.backend(openbox_display)) as session:
                assert (await session.screenshot()).ok

    asyncio.run(run(2))
    counts = Counts(way, openbox_display)
    asyncio.run(run(30))
    counts.stay()


# ---- S25: zombies


@pytest.mark.parametrize("count", IN_FULL)
def test_s25_launches_leave_nothing_behind(way: Way, desktop: XServer, applications: Path, count: int) -> None:
    make_entry(applications, "light", way.window("--title", "Light", "--pid"))
    batch = {
        "actions": [{"action": "launch", "app": "light"}, {"action": "quit", "app": "light", "timeout": 20}],
        "settle": {"mode": "none"},
    }

    async def run(count: int) -> None:
        async with Session(way.backend(desktop)) as session:
            await used(session)
            assert (await session.act(batch)).ok
            counts = Counts(way, desktop)
            for _ in range(count):
                outcome = await session.act(batch)
                assert outcome.ok, outcome.error
            counts.stay()

    asyncio.run(run(1))
    outside = Counts(way, desktop)
    asyncio.run(run(count))
    outside.stay()


def test_s25_one_that_is_launched_and_dies_is_reaped(way: Way, desktop: XServer, applications: Path) -> None:
    make_entry(applications, "dies", 'sh -c "exit 3"')
    batch = {"actions": [{"action": "launch", "app": "dies"}]}

    async def run() -> None:
        async with Session(way.backend(desktop)) as session:
            await used(session)
            counts = Counts(way, desktop)
            for _ in range(5):
                assert not (await session.act(batch)).ok
            counts.stay()

    asyncio.run(run())


def test_s25_the_command_leaves_the_application_and_nothing_of_its_own(
    way: Way, desktop: XServer, applications: Path
) -> None:
    """What was launched lives on when the command has ended, and nobody becomes a zombie."""
    make_entry(applications, "light", way.window("--title", "Light", "--pid"))
    told = deskhand(desktop, "launch", "light", "--json").json
    pid = told["pid"]
    assert Path(f"/proc/{pid}").exists()
    descriptors = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert not [path for path in descriptors if path.startswith("pipe:")], "our pipes were inherited"
    assert deskhand(desktop, "act", "quit", "light").status == 0
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)  # it is no child of ours
    assert not Path(f"/proc/{pid}").exists()


# ---- S20, S21, S22: a desktop of its own


@pytest.mark.slow
def test_s20_a_lock_file_whose_pid_is_another_process_keeps_no_desktop_from_starting() -> None:
    number = next(n for n in range(200) if not os.path.exists(f"/tmp/.X{n}-lock") and not socket_of(n).exists())
    lock = Path(f"/tmp/.X{number}-lock")
    lock.write_text(f"{os.getpid():10d}\n")
    try:
        up = deskhand(None, "desktop", "up", "--session", "openbox", "--json")
        assert up.status == 0, up
        assert deskhand(None, "desktop", "down", up.json["display"]).status == 0
    finally:
        if lock.exists() and lock.read_text().strip() == str(os.getpid()):
            lock.unlink()


def socket_of(number: int) -> Path:
    return Path(f"/tmp/.X11-unix/X{number}")


def test_s21_the_server_does_not_reset_when_its_last_client_leaves(display: XServer) -> None:
    if subprocess.run(["which", "setxkbmap"], capture_output=True, check=False).returncode:
        pytest.skip("setxkbmap is not installed")
    subprocess.run(["setxkbmap", "de"], env=display.env, check=True)
    assert deskhand(display, "act", "move", "7", "8").status == 0
    query = subprocess.run(["setxkbmap", "-query"], env=display.env, capture_output=True, text=True, check=True)
    assert "de" in query.stdout
    assert deskhand(display, "act", "cursor_position").text == "7 8"


def query(desktop: DesktopState) -> str:
    return subprocess.run(["xset", "q"], env=desktop.env, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_s22_nothing_blanks_or_locks_the_screen(xfce: DesktopState) -> None:
    said = query(xfce)
    assert "timeout:  0" in said
    assert "DPMS is Enabled" not in said
    assert "Monitor is Off" not in said
    names = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if xfce.id.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    names.add(Path(f"/proc/{name}/comm").read_text().strip())
            except OSError:
                continue
    assert names
    assert not [name for name in names if "saver" in name or "lock" in name or "power-man" in name]


@pytest.mark.long
def test_s22_a_quarter_of_an_hour_of_idling_changes_no_picture(xfce: DesktopState, tmp_path: Path) -> None:
    """The panel is left out: it has a clock."""
    words = ["screenshot", "--display", xfce.display, "--region", "0,100,1280,700", "--json"]
    before = deskhand(None, *words, "-o", str(tmp_path / "before.png")).json
    time.sleep(900)
    after = deskhand(None, *words, "-o", str(tmp_path / "after.png")).json
    assert after["hash"] == before["hash"]
    assert "timeout:  0" in query(xfce)
