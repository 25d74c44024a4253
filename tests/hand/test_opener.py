"""Which opener a desktop has, whose environment an application gets, and what is refused before anything starts."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.x_windows import make_entry

from deskhand.hand import launch_environment, opener, state
from deskhand.hand.errors import ActionFailed, Unsupported
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder that is the whole PATH: what is in it is what is installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    install(folder, "app")
    return folder


def install(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def env_of(folder: Path, desktop: str | None = None) -> dict[str, str]:
    env = {"PATH": str(folder), "HOME": "/home/somebody"}
    return env if desktop is None else {**env, "XDG_CURRENT_DESKTOP": desktop}


@pytest.mark.parametrize(
    ("desktop", "manager", "name"),
    [
        ("XFCE", "Xfwm4", "exo-open"),
        (None, "Xfwm4", "exo-open"),
        ("GNOME", "GNOME Shell", "gio launch"),
        ("ubuntu:GNOME", "GNOME Shell", "gio launch"),
        ("MATE", "Marco", "gio launch"),
        (None, "Metacity (Marco)", "gio launch"),
        ("LXQt", "Openbox", "gio launch"),
        ("Openbox", "Openbox", "Exec line"),
        ("", "Openbox", "Exec line"),
        (None, "Openbox", "Exec line"),
        (None, None, "Exec line"),
        ("i3", "i3", "Exec line"),
    ],
)
def test_the_opener_is_the_desktops_own(
    programs: Path, tmp_path: Path, desktop: str | None, manager: str | None, name: str
) -> None:
    install(programs, "exo-open", "gio", "dex")
    entry = make_entry(tmp_path, "one", "app")
    env = env_of(programs, desktop)
    way = opener.choose(entry, env, manager)
    assert way.name == name == opener.describe(env, manager)
    if name == "Exec line":
        assert way.argv == ("app",)
        assert way.direct
    else:
        assert way.argv[-1] == entry.path
        assert not way.direct


def test_the_next_opener_is_taken_when_one_is_missing(programs: Path, tmp_path: Path) -> None:
    entry = make_entry(tmp_path, "one", "app")
    assert opener.choose(entry, env_of(programs, "XFCE")).name == "Exec line"
    install(programs, "dex")
    assert opener.choose(entry, env_of(programs, "XFCE")).name == "dex"
    install(programs, "gio")
    assert opener.choose(entry, env_of(programs, "XFCE")).name == "gio launch"


def test_the_exec_line_keeps_its_directory(programs: Path, tmp_path: Path) -> None:
    entry = make_entry(tmp_path, "one", 'app "two words" %U --open=%f %c', "Path=/var/tmp", name="A name")
    way = opener.choose(entry, env_of(programs))
    assert way.argv == ("app", "two words", "--open=", "A name")
    assert way.directory == "/var/tmp"
    assert opener.choose(make_entry(tmp_path, "two", "app"), env_of(programs)).directory == "/home/somebody"


@pytest.mark.parametrize("desktop", [None, "XFCE"])
def test_a_program_that_is_not_there_is_refused(programs: Path, tmp_path: Path, desktop: str | None) -> None:
    install(programs, "exo-open")
    with pytest.raises(ActionFailed, match="one can not be launched: its program 'nosuch' is not there"):
        opener.choose(make_entry(tmp_path, "one", "nosuch %U"), env_of(programs, desktop))


def test_an_exec_line_that_can_not_be_run_is_refused(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(ActionFailed, match=r"one can not be launched: .*%y is no field code"):
        opener.choose(make_entry(tmp_path, "one", "app %y"), env_of(programs))


# ---- terminals


@pytest.mark.parametrize(
    ("terminal", "before"),
    [
        ("xterm", ("-e",)),
        ("xfce4-terminal", ("--disable-server", "-x")),
        ("gnome-terminal", ("--wait", "--")),
        ("mate-terminal", ("--disable-factory", "-x")),
        ("qterminal", ("-e",)),
        ("konsole", ("-e",)),
        ("x-terminal-emulator", ("-e",)),
    ],
)
@pytest.mark.parametrize("desktop", [None, "XFCE", "GNOME"])
def test_a_terminal_that_is_there(
    programs: Path, tmp_path: Path, terminal: str, before: tuple[str, ...], desktop: str | None
) -> None:
    install(programs, "exo-open", "gio", terminal)
    way = opener.choose(make_entry(tmp_path, "one", 'app "a b"', "Terminal=true"), env_of(programs, desktop))
    assert way.argv == (str(programs / terminal), *before, "app", "a b")
    assert way.name == f"Exec line in {terminal}"


def test_the_desktops_own_terminal_comes_first(programs: Path, tmp_path: Path) -> None:
    install(programs, "xterm", "xfce4-terminal", "mate-terminal", "qterminal")
    entry = make_entry(tmp_path, "one", "app", "Terminal=true")
    for desktop, terminal in (("XFCE", "xfce4-terminal"), ("MATE", "mate-terminal"), ("LXQt", "qterminal")):
        assert opener.choose(entry, env_of(programs, desktop)).name == f"Exec line in {terminal}"


def test_no_terminal_is_an_error_that_names_some(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"runs in a terminal and none is installed: install one of .*xterm"):
        opener.choose(make_entry(tmp_path, "one", "app", "Terminal=true"), env_of(programs, "XFCE"))


# ---- the session bus


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A session bus that can start ``org.example.Known``; the environment to reach it."""
    services = tmp_path / "data" / "dbus-1" / "services"
    services.mkdir(parents=True)
    (services / "org.example.Known.service").write_text("[D-BUS Service]\nName=org.example.Known\nExec=/bin/false\n")
    env = {**os.environ, "XDG_DATA_DIRS": str(tmp_path / "data"), "XDG_DATA_HOME": str(tmp_path / "none")}
    process = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"], env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield {**env, "DBUS_SESSION_BUS_ADDRESS": process.stdout.readline().strip()}
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_a_name_the_bus_can_start_is_activated(bus: dict[str, str], tmp_path: Path) -> None:
    entry = make_entry(tmp_path, "org.example.Known", "true", "DBusActivatable=true")
    way = opener.choose(entry, {**bus, "DESKTOP_STARTUP_ID": "x_TIME1"}, "Openbox")
    assert way.name == "D-Bus activation"
    assert "org.example.Known" in way.argv
    assert "/org/example/Known" in way.argv
    assert "{'desktop-startup-id': <'x_TIME1'>}" in way.argv
    assert way.fallback is not None
    assert way.fallback.argv == ("true",)
    done = subprocess.run(way.argv, env=bus, capture_output=True, timeout=30, check=False)
    assert done.returncode != 0  # its program is /bin/false: the failure shows


def test_a_name_the_bus_does_not_know_is_run_by_its_exec_line(bus: dict[str, str], tmp_path: Path) -> None:
    entry = make_entry(tmp_path, "org.example.Unknown", "true", "DBusActivatable=true")
    way = opener.choose(entry, bus, "Openbox")
    assert (way.name, way.argv) == ("Exec line", ("true",))
    assert way.note == ("the session bus has no service org.example.Unknown to activate, and its Exec line was run")


def test_without_a_bus_and_without_exec_it_can_not_be_launched(tmp_path: Path) -> None:
    entry = make_entry(tmp_path, "org.example.BusOnly", None, "DBusActivatable=true")
    with pytest.raises(Unsupported, match="can only be activated on the session bus, and the desktop has no session"):
        opener.choose(entry, {"PATH": os.environ["PATH"]}, "Openbox")


# ---- the environment


def test_no_token_and_no_key_goes_along() -> None:
    env = {
        "HOME": "/h", "PATH": "/bin", "LANG": "C", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "XDG_RUNTIME_DIR": "/r",
        "OPENAI_API_KEY": "1", "GITHUB_TOKEN": "1", "aws_secret_access_id": "1", "DB_PASSWORD": "1", "PGPASSWD": "1",
        "DESKHAND_LEASE": "1", "COMPUTERD_LAUNCHER": "1", "DESKHAND_DESKTOP": "id", "DESKTOP_STARTUP_ID": "old",
        "XDG_ACTIVATION_TOKEN": "1", "PYTHONPATH": "/p", "LISTEN_FDS": "1", "DESKHAND_LAUNCH": "1",
    }  # fmt: skip
    assert set(launch_environment.without_secrets(env)) == {
        "HOME", "PATH", "LANG", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DESKHAND_DESKTOP",
    }  # fmt: skip


def test_the_window_managers_process_tells_the_environment(display: XServer, tmp_path: Path) -> None:
    from deskhand.testing import window_manager

    marked = XServer(
        display.display,
        None,
        display.pid,
        {**display.env, "XDG_CURRENT_DESKTOP": "Openbox", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/b", "A_TOKEN": "1"},
    )
    with window_manager(marked, "openbox"), Connection.open(display.display) as conn:
        found = launch_environment.find(conn, display.display)
        assert found.source == "window manager"
        assert found.window_manager == "Openbox"
        assert found.account is None
        assert found.env["DISPLAY"] == display.display
        assert found.env["DBUS_SESSION_BUS_ADDRESS"] == "unix:path=/b"
        assert "A_TOKEN" not in found.env
        assert opener.session_environment(conn, display.display) == found.env
        assert opener.desktop_names(found.env, found.window_manager) == []


def test_where_entries_are_is_ours_when_the_window_manager_has_no_word(
    display: XServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deskhand.testing import window_manager

    lookup = ("XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CURRENT_DESKTOP")
    env = {name: value for name, value in display.env.items() if name not in lookup}
    of_session = "/usr/share"  # openbox looks for its theme there
    marked = XServer(display.display, None, display.pid, {**env, "XDG_DATA_DIRS": of_session})
    for name in lookup:
        monkeypatch.setenv(name, "/ours")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/of/another/desktop")
    with window_manager(marked, "openbox"), Connection.open(display.display) as conn:
        found = launch_environment.find(conn, display.display)
    assert found.source == "window manager"
    assert [found.env[name] for name in lookup] == ["/ours", of_session, "/ours"]
    assert found.env.get("DBUS_SESSION_BUS_ADDRESS") == env.get("DBUS_SESSION_BUS_ADDRESS")


def test_without_a_window_manager_it_is_our_own(display: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "1")
    monkeypatch.setenv("SOMETHING", "else")
    with Connection.open(display.display) as conn:
        found = launch_environment.find(conn, display.display, "/some/cookie")
    assert (found.source, found.account, found.window_manager) == ("own", None, None)
    assert found.env["SOMETHING"] == "else"
    assert "SOME_KEY" not in found.env
    assert found.env["XAUTHORITY"] == "/some/cookie"


def test_the_state_file_of_a_desktop_comes_first(display: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"uid": 12345, "user": "desk", "xauthority": "/x", "env": {"HOME": "/d", "A_SECRET": "1", "PATH": "/p"}}
    monkeypatch.setattr(state, "find_desktop", lambda name: facts if name == display.display else None)
    with Connection.open(display.display) as conn:
        if os.geteuid() == 0:
            found = launch_environment.find(conn, display.display)
            assert found.source == "desktop"
            assert found.account is not None
            assert found.account.uid == 12345
            assert (found.env["HOME"], found.env["XAUTHORITY"], found.env["PATH"]) == ("/d", "/x", "/p")
            assert "A_SECRET" not in found.env
        monkeypatch.setattr(os, "geteuid", lambda: 777)
        with pytest.raises(Unsupported, match="belongs to the user desk: launch as that user or as root"):
            launch_environment.find(conn, display.display)
