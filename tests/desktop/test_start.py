"""Starting desktops: what is up afterwards, as whom, with which environment; and what a failed start leaves."""

from __future__ import annotations

import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from deskhand.desktop import DesktopState, list_desktops, parse_size, processes, start_desktop, stop_desktop
from deskhand.desktop.readiness import supporting_window
from deskhand.hand.errors import NoDisplay, SetupError
from deskhand.hand.state import find_desktop, process_mark
from deskhand.hand.x11 import Connection, core

from .conftest import Start, fake, nothing_left_of, run_on, wait_for

pytestmark = pytest.mark.slow


def connect(desktop: DesktopState) -> Connection:
    return Connection.open(desktop.display, desktop.xauthority)


def test_openbox_is_up_and_down_leaves_nothing(start: Start) -> None:
    desktop = start("openbox", size=(1024, 700))
    with connect(desktop) as connection:
        geometry = core.get_geometry(connection, connection.root)
        assert (geometry.width, geometry.height) == (1024, 700)
        assert supporting_window(connection)
        pixels = core.get_image(connection, connection.root, 0, 0, 1024, 700).data
        assert pixels != pixels[:4] * (len(pixels) // 4)
    stop_desktop(desktop.display)
    nothing_left_of(desktop)
    assert find_desktop(desktop.display) is None


@pytest.mark.slow
def test_xfce_is_painted_and_awake(xfce: DesktopState) -> None:
    with connect(xfce) as connection:
        types: set[str] = set()
        for window in core.get_property(connection, connection.root, connection.atom("_NET_CLIENT_LIST")).cardinals():
            kinds = core.get_property(connection, window, connection.atom("_NET_WM_WINDOW_TYPE")).cardinals()
            types.update(connection.atom_name(kind) for kind in kinds)
        assert types == {"_NET_WM_WINDOW_TYPE_DESKTOP", "_NET_WM_WINDOW_TYPE_DOCK"}, "a dialog of a first run?"
        # GetScreenSaver (X11 Protocol): the timeout in seconds, 0 when it never comes
        assert int.from_bytes(connection.call(108, 0)[8:10], sys.byteorder) == 0
        assert core.get_selection_owner(connection, connection.atom("_NET_WM_CM_S0")) == 0, "compositing is on"
    assert (xfce.session, xfce.current_desktop, xfce.state) == ("xfce", "XFCE", "ready")
    names = {process.name for process in processes.processes_of(xfce.id).values()}
    assert {"xfwm4", "xfdesktop", "xfce4-panel", "xfsettingsd"} <= names
    assert not {name for name in names if "saver" in name or "power" in name or "lock" in name}


@pytest.mark.slow
def test_xfce_settings_reach_toolkits(xfce: DesktopState) -> None:
    def value(channel: str, path: str) -> str:
        child = run_on(xfce, ["xfconf-query", "-c", channel, "-p", path])
        return child.communicate(timeout=20)[0].strip()

    assert value("xfwm4", "/general/use_compositing") == "false"
    assert value("xsettings", "/Gtk/EnableAnimations") == "false"
    assert value("xfce4-session", "/general/SaveOnExit") == "false"


@pytest.mark.slow
def test_gtk_applications_neither_animate_nor_fade(xfce: DesktopState) -> None:
    script = (
        "import gi; gi.require_version('Gtk', '3.0'); from gi.repository import Gtk;"
        "s = Gtk.Settings.get_default(); print(s.props.gtk_enable_animations, s.props.gtk_overlay_scrolling)"
    )
    child = run_on(xfce, ["/usr/bin/python3", "-c", script])
    said = child.communicate(timeout=60)[0]
    if child.returncode != 0:
        pytest.skip("python3-gi and GTK 3 are not installed")
    assert said.strip() == "False False"


def test_each_desktop_has_its_own_of_everything(start: Start) -> None:
    one, two = start(), start()
    for name in ("display", "home", "runtime_dir", "dbus_address", "xauthority", "id", "directory"):
        assert getattr(one, name) != getattr(two, name)
    cookie = Path(one.xauthority).read_bytes()
    assert cookie != Path(two.xauthority).read_bytes()
    stop_desktop(one.display)
    nothing_left_of(one)
    with connect(two) as connection:
        assert supporting_window(connection)
    found = find_desktop(two.display)
    assert found is not None
    assert found["id"] == two.id


def test_the_wrong_cookie_is_refused(start: Start, tmp_path: Path) -> None:
    desktop = start()
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(NoDisplay, match="refuses"):
        Connection.open(desktop.display, str(empty))
    with connect(desktop):
        pass


def test_cookie_and_runtime_directory_are_private(start: Start) -> None:
    desktop = start()
    for path, mode in ((desktop.xauthority, 0o600), (desktop.runtime_dir, 0o700), (desktop.home, 0o700)):
        facts = os.stat(path)
        assert (facts.st_mode & 0o777, facts.st_uid) == (mode, desktop.uid)


def test_session_environment_is_only_what_is_meant(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "sk-1")
    monkeypatch.setenv("LC_TIME", "C.UTF-8")
    # Descriptors: one that a careless caller left inheritable.
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        desktop = start()
        assert desktop.env["LC_TIME"] == "C.UTF-8"
        assert "SECRET_API_KEY" not in desktop.env
        found = processes.processes_of(desktop.id)
        assert len(found) >= 4
        target = os.readlink(f"/proc/self/fd/{writer}")
        for pid in found:
            assert b"sk-1" not in Path(f"/proc/{pid}/environ").read_bytes()
            held = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
            assert target not in held, f"{found[pid].name} holds a descriptor of ours"
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_runs_the_desktop_as_desk(start: Start) -> None:
    desktop = start()
    desk = pwd.getpwnam("desk")
    assert (desktop.user, desktop.uid) == ("desk", desk.pw_uid)
    supervisor = desktop.processes["supervisor"][0]
    for pid, process in processes.processes_of(desktop.id).items():
        if pid == supervisor:
            continue
        status = Path(f"/proc/{pid}/status").read_text()
        fields = {line.split(":")[0]: line.split()[1:] for line in status.splitlines() if line}
        assert fields["Uid"] == [str(desk.pw_uid)] * 4, process
        assert fields["Gid"] == [str(desk.pw_gid)] * 4, process
        assert fields["Groups"] == [str(desk.pw_gid)], process
        assert int(fields["CapEff"][0], 16) == 0, process


@pytest.fixture
def known_id(monkeypatch: pytest.MonkeyPatch) -> str:
    """The id that the next desktop gets, to look for what is left of one that did not start."""
    known = uuid.uuid4()
    monkeypatch.setattr("deskhand.desktop.start.uuid.uuid4", lambda: known)
    return str(known)


def nothing_left(mark: str) -> bool:
    return (
        processes.processes_of(mark) == {}
        and mark not in {desktop["id"] for desktop in list_desktops()}
        and mark[:8] not in os.listdir(base_directory())
    )


def test_a_part_that_is_not_installed_is_named(start: Start, known_id: str, open_directory: Path) -> None:
    for name in ("Xvfb", "dbus-daemon", "sh"):
        (open_directory / name).symlink_to(f"/usr/bin/{name}")
    with pytest.raises(SetupError, match="part session: startxfce4 is not installed") as caught:
        start("xfce", environment={"PATH": str(open_directory)}, timeout=30)
    assert "install it (Debian: xfce4)" in str(caught.value)
    assert caught.value.facts["part"] == "session"
    assert nothing_left(known_id)


@pytest.mark.parametrize(
    ("program", "part"), [("Xvfb", "X server"), ("dbus-daemon", "session bus"), ("openbox", "session")]
)
def test_a_part_that_ends_is_named_with_the_tail_of_its_log(
    start: Start, known_id: str, open_directory: Path, program: str, part: str
) -> None:
    path = fake(open_directory, program, "echo something went wrong with $PPID >&2\nexit 7\n")
    with pytest.raises(SetupError) as caught:
        start("openbox", environment={"PATH": path}, timeout=30)
    assert caught.value.facts["part"] == part
    assert "something went wrong with" in str(caught.value)
    assert "exit status 7" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert nothing_left(known_id)


def test_a_part_that_never_comes_up_ends_at_the_deadline(start: Start, known_id: str, open_directory: Path) -> None:
    path = fake(open_directory, "openbox", "echo waiting for nothing\nexec sleep 1000\n")
    with pytest.raises(SetupError, match="_NET_SUPPORTING_WM_CHECK within 2 s; its log ends: waiting for nothing"):
        start("openbox", environment={"PATH": path}, timeout=2)
    assert nothing_left(known_id)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_start_leaves_nothing(open_directory: Path, number: signal.Signals) -> None:
    path = fake(open_directory, "openbox", "exec sleep 1000\n")
    script = (
        "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(1));"
        "from deskhand.desktop import start_desktop;"
        f"start_desktop('openbox', environment={{'PATH': {path!r}}})"
    )
    starter = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    try:
        mark = wait_for(lambda: next((d["id"] for d in list_desktops() if d["env"].get("PATH") == path), None))
        wait_for(lambda: any(process.name == "sleep" for process in processes.processes_of(mark).values()))
    finally:
        starter.send_signal(number)
    assert starter.wait(30) != 0
    wait_for(lambda: nothing_left(mark))


def test_a_lock_file_that_names_a_live_process_is_no_server(start: Start) -> None:
    number = free_number()
    lock, path = Path(f"/tmp/.X{number}-lock"), f"/tmp/.X11-unix/X{number}"
    Path("/tmp/.X11-unix").mkdir(mode=0o1777, exist_ok=True)
    lock.write_text(f"{os.getpid():10d}\n")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)  # a socket file that nobody listens on, as kill -9 leaves it
    try:
        desktop = start()
        assert not lock.exists()
        assert not os.path.lexists(path) or desktop.display == f":{number}"
    finally:
        lock.unlink(missing_ok=True)


def test_the_lock_file_and_socket_of_a_live_server_stay(start: Start) -> None:
    number = free_number()
    path = f"/tmp/.X11-unix/X{number}"
    lock = Path(f"/tmp/.X{number}-lock")
    Path("/tmp/.X11-unix").mkdir(mode=0o1777, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(1)
        lock.write_text("         1\n")
        try:
            desktop = start()
            assert desktop.display != f":{number}"
            stop_desktop(desktop.display)
            assert lock.exists()
            assert os.path.exists(path)
        finally:
            lock.unlink()
            os.unlink(path)


@pytest.mark.parametrize(
    "text", ["", "1280", "1280x", "x800", "1280x800x24", "-1x5", "0x0", "١٢x٣٤", "1e3x800", "99999x9"]
)
def test_a_bad_size_is_refused(text: str) -> None:
    with pytest.raises(SetupError):
        parse_size(text)


def test_sizes_and_sessions() -> None:
    assert parse_size("1280x800") == (1280, 800)
    with pytest.raises(SetupError, match="choose one of xfce, openbox, mate, lxqt, gnome"):
        start_desktop("kde")


def test_the_state_can_be_printed(start: Start) -> None:
    desktop = start()
    facts = json.loads(json.dumps(desktop.as_dict()))
    assert facts["display"] == desktop.display
    assert process_mark(desktop.processes["X server"][0]) == desktop.id
    assert facts["env"]["DESKHAND_DESKTOP"] == desktop.id


def base_directory() -> str:
    return "/var/lib/deskhand" if os.geteuid() == 0 else f"/tmp/deskhand-{os.geteuid()}"


def free_number() -> int:
    taken = {name[1:] for name in os.listdir("/tmp/.X11-unix")} if os.path.isdir("/tmp/.X11-unix") else set()
    return next(n for n in range(170, 400) if str(n) not in taken and not os.path.exists(f"/tmp/.X{n}-lock"))
