"""Real screen lockers, and what looks a little like one."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.xservers import until

from deskhand.hand.screen_lock import ScreenLock, locked_on_bus
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, window_manager, xvfb

#: A bus name, and what its GetActive answers; or logind's hint. Debian's Python has the bindings of D-Bus.
SERVICE = """
import sys
from gi.repository import Gio, GLib
name, kind, value = sys.argv[1:4]
bus = Gio.bus_get_sync(Gio.BusType.SYSTEM if kind == "hint" else Gio.BusType.SESSION)
if kind == "hint":
    interface, path = "org.freedesktop.login1.Session", "/org/freedesktop/login1/session/auto"
    body = "<property name='LockedHint' type='b' access='read'/>"
else:
    interface, path = name, "/" + name.replace(".", "/")
    body = "<method name='GetActive'><arg type='b' direction='out'/></method>"
node = Gio.DBusNodeInfo.new_for_xml(f"<node><interface name='{interface}'>{body}</interface></node>")
true = value == "true"
bus.register_object(
    path,
    node.interfaces[0],
    lambda *call: call[-1].return_value(GLib.Variant("(b)", (true,))),
    lambda *call: GLib.Variant("b", true),
    None,
)
loop = GLib.MainLoop()
Gio.bus_own_name_on_connection(bus, name, 0, lambda *_: print("ready", flush=True), lambda *_: loop.quit())
loop.run()
"""


@pytest.fixture
def server() -> Iterator[XServer]:
    with xvfb() as server, window_manager(server):
        yield server


@pytest.fixture
def conn(server: XServer) -> Iterator[Connection]:
    with Connection.open(server.display) as opened:
        yield opened


@contextmanager
def running(argv: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    process = subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        try:
            os.killpg(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        process.wait(20)


@pytest.mark.parametrize("argv", [["i3lock", "-n"], ["xsecurelock"]], ids=["i3lock", "xsecurelock"])
def test_lockers(server: XServer, conn: Connection, argv: list[str]) -> None:
    lock = ScreenLock(conn)
    assert lock.seen() is None
    with running(argv, {**server.env, "XSECURELOCK_SAVER": "saver_blank"}):
        assert until(lock.seen, 20) == "a window covers it and holds the keyboard"
    until(lambda: lock.seen() is None, 20)


@pytest.mark.slow
def test_xscreensaver(server: XServer, conn: Connection, tmp_path: Path) -> None:
    user = _as_nobody()
    lock = ScreenLock(conn)
    env = {**server.env, "HOME": "/nonexistent"}
    with running([*user, "xscreensaver", "-no-splash"], env):

        def locked() -> str | None:
            subprocess.run([*user, "xscreensaver-command", "-lock"], env=env, capture_output=True)
            return lock.seen()

        assert until(locked, 20) == "a window covers it and holds the keyboard"


@pytest.mark.slow
def test_mate_screensaver(server: XServer, conn: Connection, tmp_path: Path) -> None:
    """By its window, and by its word on the bus. Xfce's and Cinnamon's are made from it."""
    user = _as_nobody()
    if shutil.which("mate-screensaver") is None or shutil.which("dbus-daemon") is None:
        pytest.skip("mate-screensaver is not installed")
    with session_bus(tmp_path, user) as address:
        env = {**server.env, "HOME": "/nonexistent", "DBUS_SESSION_BUS_ADDRESS": address}
        with running([*user, "mate-screensaver", "--no-daemon"], env):
            lock = ScreenLock(conn)

            def locked() -> str | None:
                subprocess.run([*user, "mate-screensaver-command", "--lock"], env=env, capture_output=True)
                return lock.seen()

            assert until(locked, 20) == "a window covers it and holds the keyboard"


def test_xtrlock(server: XServer, conn: Connection, tmp_path: Path) -> None:
    """It shows nothing. It wants a password to be set, so its own copy of the shadow file has one."""
    if shutil.which("xtrlock") is None or os.geteuid() != 0:
        pytest.skip("xtrlock is not installed, or the password file can not be covered")
    shadow = tmp_path / "shadow"
    password = "root:$6$abcdefgh$" + "a" * 86 + ":19000:0:99999:7:::\n"
    shadow.write_text(password)
    command = f'mount --bind "{shadow}" /etc/shadow && exec xtrlock'
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespace can be made here")
    lock = ScreenLock(conn)
    with running(["unshare", "-m", "sh", "-c", command], server.env) as process:
        assert until(lambda: lock.seen() or process.poll() is not None, 20) == "xtrlock holds the keyboard"
    until(lambda: lock.seen() is None, 20)


def test_what_is_no_lock(server: XServer, conn: Connection) -> None:
    """A menu grabs and is small; a full-screen window without a grab is a film."""
    lock = ScreenLock(conn)
    with Connection.open(server.display) as other:
        small = core.create_window(other, 10, 10, 200, 300, background=0xFFFFFF)
        core.map_window(other, small)
        assert _grab_keyboard(other, small) == 0
        assert lock.keyboard_grabbed()
        assert lock.seen() is None
        core.ungrab_keyboard(other)
        whole = core.create_window(other, 0, 0, 1280, 800, background=0)
        core.map_window(other, whole)
        other.sync()
        assert not lock.keyboard_grabbed()
        assert lock.seen() is None
        assert _grab_keyboard(other, whole) == 0
        assert lock.seen() == "a window covers it and holds the keyboard"


def test_asking_grabs_nothing(server: XServer, conn: Connection) -> None:
    lock = ScreenLock(conn)
    assert not lock.keyboard_grabbed()
    with Connection.open(server.display) as other:
        window = core.create_window(other, 0, 0, 10, 10)
        core.map_window(other, window)
        assert _grab_keyboard(other, window) == 0


@pytest.mark.parametrize(("value", "locked"), [(1, None), (0, "another session has the console")])
def test_the_console(server: XServer, conn: Connection, value: int, locked: str | None) -> None:
    core.change_property(conn, conn.root, conn.atom("XFree86_has_VT"), 19, 32, struct.pack("=I", value))  # INTEGER
    assert ScreenLock(conn).seen() == locked


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("name", ["org.gnome.ScreenSaver", "org.freedesktop.ScreenSaver"])
def test_on_the_session_bus(tmp_path: Path, name: str, value: str) -> None:
    with session_bus(tmp_path) as address:
        env = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent"}
        assert locked_on_bus(env) is None
        with service(env, name, "saver", value):
            assert locked_on_bus(env) == (f"{name} says so" if value == "true" else None)


@pytest.mark.parametrize("value", ["true", "false"])
def test_what_logind_knows(tmp_path: Path, value: str) -> None:
    with session_bus(tmp_path) as address:
        env = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": address}
        env.pop("DBUS_SESSION_BUS_ADDRESS", None)
        with service(env, "org.freedesktop.login1", "hint", value):
            assert locked_on_bus(env) == ("its login session is marked as locked" if value == "true" else None)


def test_without_any_bus() -> None:
    assert locked_on_bus({"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent", "PATH": os.environ["PATH"]}) is None
    assert locked_on_bus({"PATH": "/nonexistent"}) is None


@contextmanager
def session_bus(tmp_path: Path, user: list[str] | None = None) -> Iterator[str]:
    """A bus of its own; gives its address."""
    if shutil.which("dbus-daemon") is None or shutil.which("gdbus") is None:
        pytest.skip("dbus-daemon or gdbus is not installed")
    argv = [*(user or []), "dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().decode().strip()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()


@contextmanager
def service(env: dict[str, str], name: str, kind: str, value: str) -> Iterator[None]:
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "from gi.repository import Gio"], capture_output=True).returncode:
        pytest.skip("Debian's python3-gi is not installed")
    process = subprocess.Popen([python, "-c", SERVICE, name, kind, value], env=env, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.terminate()
        process.communicate()


def _grab_keyboard(conn: Connection, window: int) -> int:
    return conn.call(31, 0, struct.pack("=IIBB2x", window, 0, 1, 1))[1]


def _as_nobody() -> list[str]:
    """Some lockers do not lock for root."""
    if os.geteuid() != 0:
        return []
    return ["runuser", "-u", "nobody", "--"]
