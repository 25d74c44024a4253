"""S1, S15, S16, S17, S19, S25: a launch says ok only when a window was seen, of the right entry, run as it says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deskhand.testing import XServer, window_manager, xvfb
from tests.cases.ways import Way
from tests.commands import act, deskhand
from tests.own_desktop import own
from tests.toolkits import PYTHON
from tests.x_windows import make_entry

# One by one they are quick; together they take minutes.
pytestmark = pytest.mark.slow


FORCE = {"action": "quit", "force": True}


def program(directory: Path, name: str, text: str) -> Path:
    """An executable file."""
    path = directory / name
    path.write_text(text)
    path.chmod(0o755)
    return path


# ---- S1: ok although nothing started


@pytest.mark.parametrize(
    ("exec_line", "said"),
    [
        ('sh -c "exit 9"', "exit status 9"),
        ('sh -c "echo why it failed >&2; exit 1"', "why it failed"),
        ('sh -c "kill -SEGV $$$$"', "SIGSEGV"),
        ('sh -c "sleep 0.2; exit 3"', "exit status 3"),
        ("/no/such/program", "/no/such/program"),
        ("no-such-program-anywhere", "no-such-program-anywhere"),
    ],
)
def test_s1_an_early_death_is_an_error_that_says_how(
    desktop: XServer, applications: Path, exec_line: str, said: str
) -> None:
    make_entry(applications, "bad", exec_line.replace("$$$$", "\\$\\$"))
    answer = deskhand(desktop, "launch", "bad", "--json")
    assert answer.status in (2, 3), answer
    assert not answer.json["ok"]
    assert said in answer.error


def test_s1_one_that_ends_well_without_a_window_is_no_success(desktop: XServer, applications: Path) -> None:
    make_entry(applications, "quiet", "true")
    make_entry(applications, "stays", "sleep 60")
    for name in ("quiet", "stays"):
        answer = act(desktop, {"action": "launch", "app": name, "timeout": 0.7}, {"action": "key", "keys": "a"})
        assert answer.status == 3, answer
        assert [r["status"] for r in answer.json["results"]] == ["failed", "skipped"]
        assert "no window" in answer.error
    assert act(desktop, {**FORCE, "app": "stays"}).status == 0


def test_s1_a_name_that_is_none_is_an_error_with_near_names(way: Way, desktop: XServer, applications: Path) -> None:
    make_entry(applications, "calc", way.window(), name="Calculator")
    answer = deskhand(desktop, "launch", "Calculater", "--json")
    assert (answer.status, answer.json["sent"]) == (2, "none")
    assert "Calculator" in answer.error
    assert deskhand(desktop, "windows", "--json").json == []


def test_s1_success_is_a_window_that_is_there(way: Way, desktop: XServer, applications: Path) -> None:
    make_entry(applications, "late", way.window("--title", "Late", "--delay", "0.5"), name="Late one")
    told = deskhand(desktop, "launch", "late one", "--json").json
    (window,) = deskhand(desktop, "windows", "--json").json
    assert told["window"]["id"] == window["id"]
    assert told["focused"]


# ---- S15: field codes, %% and quoting


def test_s15_arguments_arrive_as_the_specification_says(
    way: Way, desktop: XServer, applications: Path, tmp_path: Path
) -> None:
    log = tmp_path / "args"
    script = program(
        tmp_path, "args.sh", f'#!/bin/sh\nprintf "%s\\n" "$@" > "{log}"\nexec {way.window("--title", "x")}\n'
    )
    line = f'{script} --p 100%% "two words" %c %i %k --open=%f %U "a\\\\$b" %%F'
    entry = make_entry(applications, "args", line, "Icon=pic", name="The Name")
    answer = deskhand(desktop, "launch", "args", "--json")
    assert answer.status == 0, answer
    assert log.read_text().splitlines() == [
        "--p", "100%", "two words", "The Name", "--icon", "pic", entry.path, "--open=", "a$b", "%F",
    ]  # fmt: skip


def test_s15_nothing_is_given_to_a_shell(way: Way, desktop: XServer, applications: Path, tmp_path: Path) -> None:
    name = f"$(touch {tmp_path}/one) `touch {tmp_path}/two` ; touch {tmp_path}/three"
    make_entry(applications, "evil", way.window("--title", "x") + " --wm-class %c", name=name)
    assert deskhand(desktop, "launch", "evil", "--json").status == 0
    assert not {"one", "two", "three"} & set(os.listdir(tmp_path))


# ---- S16: Terminal=true


def test_s16_a_terminal_program_gets_a_terminal_and_a_window(
    desktop: XServer, applications: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "tty"
    make_entry(
        applications, "term", f'sh -c "test -t 0 && touch {mark}; sleep 30"', "Terminal=true", name="In a terminal"
    )
    answer = deskhand(desktop, "launch", "term", "--json", "--timeout", "20")
    assert answer.status == 0, answer
    assert act(desktop, {"action": "wait", "seconds": 0.3}).status == 0
    assert mark.exists()
    assert act(desktop, {**FORCE, "app": "term"}).status == 0


def test_s16_without_any_terminal_the_error_names_what_is_missing(way: Way, applications: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("sh", "sleep", "openbox"):
        path = next(p for p in (f"/usr/bin/{name}", f"/bin/{name}") if os.path.exists(p))
        (tmp_path / "bin" / name).symlink_to(path)
    make_entry(applications, "term", f'sh -c "touch {tmp_path}/ran"', "Terminal=true")
    with xvfb() as display:
        server = way.reach(display, own(display, applications, PATH=str(tmp_path / "bin")))
        # The window manager's environment is the desktop's.
        with window_manager(server):
            answer = deskhand(server, "launch", "term", "--json")
    assert answer.status in (2, 3)
    assert (answer.json["sent"], answer.json["ok"]) == ("none", False)
    assert "terminal" in answer.error
    assert "xterm" in answer.error or "install" in answer.error
    assert not (tmp_path / "ran").exists()


# ---- S17: overrides


def test_s17_the_first_file_with_an_id_wins_before_anything_is_filtered(
    way: Way, desktop: XServer, applications: Path, tmp_path: Path
) -> None:
    system = tmp_path / "system" / "applications"
    system.mkdir(parents=True)
    for directory, name in ((system, "System"), (applications, "User")):
        for id in ("both", "hidden", "nodisplay", "elsewhere"):
            lines = {
                ("User", "hidden"): ["Hidden=true"],
                ("User", "nodisplay"): ["NoDisplay=true"],
                ("User", "elsewhere"): ["OnlyShowIn=KDE;"],
            }.get((name, id), [])
            make_entry(directory, id, way.window("--title", f"{name} {id}"), *lines, name=f"{name} {id}")
    assert [app["name"] for app in deskhand(desktop, "apps", "--json").json] == ["User both"]
    for gone in ("hidden", "User hidden", "System hidden", "System both"):
        assert deskhand(desktop, "launch", gone, "--json").status == 2, gone
    # What is only not listed can still be opened by its id.
    for id in ("both", "nodisplay"):
        assert deskhand(desktop, "launch", id, "--json").json["window"]["title"] == f"User {id}"


# ---- S19: D-Bus activation

SERVICE = """
import sys, gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
application = Gtk.Application(application_id="org.example.BusApp")
def activate(app):
    window = Gtk.ApplicationWindow(application=app, title="by the bus")
    window.show_all()
application.connect("activate", activate)
application.run([sys.argv[0], "--gapplication-service"])
"""


@pytest.fixture
def bus(way: Way, applications: Path, tmp_path: Path) -> Iterator[XServer]:
    """openbox with a session bus of its own."""
    services = tmp_path / "system" / "dbus-1" / "services"
    services.mkdir(parents=True)
    service = tmp_path / "service.py"
    service.write_text(SERVICE)
    (services / "org.example.BusApp.service").write_text(
        f"[D-BUS Service]\nName=org.example.BusApp\nExec={PYTHON} {service}\n"
    )
    command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
    with xvfb() as display:
        env = own(display, applications)
        daemon = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, **way.as_desktop)
        assert daemon.stdout is not None
        address = daemon.stdout.readline().strip()
        server = way.reach(display, {**env, "DBUS_SESSION_BUS_ADDRESS": address})
        try:
            with window_manager(server):
                yield server
        finally:
            daemon.terminate()
            daemon.communicate()


def test_s19_an_entry_is_activated_on_the_bus(bus: XServer, applications: Path, tmp_path: Path) -> None:
    if subprocess.run([PYTHON, "-c", "import gi; gi.require_version('Gtk', '3.0')"], check=False).returncode:
        pytest.skip(f"{PYTHON} has no GTK 3")
    make_entry(applications, "org.example.BusApp", f"touch {tmp_path}/by-exec", "DBusActivatable=true", name="Bus app")
    answer = deskhand(bus, "launch", "bus app", "--json", "--timeout", "20")
    assert answer.status == 0, answer
    assert answer.json["window"]["title"] == "by the bus"
    assert not (tmp_path / "by-exec").exists()


@pytest.mark.parametrize("with_bus", [True, False])
def test_s19_without_a_service_its_exec_line_is_used_and_that_is_said(
    way: Way, request: pytest.FixtureRequest, applications: Path, with_bus: bool
) -> None:
    server: XServer = request.getfixturevalue("bus" if with_bus else "desktop")
    make_entry(applications, "org.example.NoService", way.window("--title", "by exec"), "DBusActivatable=true")
    answer = deskhand(server, "launch", "org.example.NoService", "--json")
    assert answer.status == 0, answer
    assert answer.json["window"]["title"] == "by exec"
    assert answer.json["note"]


@pytest.mark.parametrize("with_bus", [True, False])
def test_s19_without_a_service_and_an_exec_line_it_is_an_error(
    request: pytest.FixtureRequest, applications: Path, with_bus: bool
) -> None:
    server: XServer = request.getfixturevalue("bus" if with_bus else "desktop")
    make_entry(applications, "org.example.Nothing", None, "DBusActivatable=true")
    answer = deskhand(server, "launch", "org.example.Nothing", "--json", "--timeout", "3")
    assert answer.status in (2, 3), answer
    assert not answer.json["ok"]
