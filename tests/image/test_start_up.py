"""S23: the session's bus and runtime directory are its own, however the container is started; or it says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.image.computers import Computer
from tests.image.conftest import Start
from tests.image.entries import desk_environment

#: The window manager's name (EWMH, _NET_SUPPORTING_WM_CHECK), and the windows on the root that a person sees by class.
SEEN = """
import json
from deskhand.hand.x11 import Connection, core
with Connection.open() as conn:
    def number(window, name):
        return core.get_property(conn, window, conn.atom(name)).value[:4]
    check = int.from_bytes(number(conn.root, "_NET_SUPPORTING_WM_CHECK"), "little")
    same = int.from_bytes(number(check, "_NET_SUPPORTING_WM_CHECK"), "little")
    name = core.get_property(conn, check, conn.atom("_NET_WM_NAME")).value.decode()
    classes = set()
    def walk(window):
        for child in core.query_tree(conn, window)[2]:
            if core.get_window_attributes(conn, child).map_state == 2:
                classes.update(core.get_property(conn, child, core.ATOM_WM_CLASS).value.decode().split("\\0"))
                walk(child)
    walk(conn.root)
print(json.dumps({"name": name, "same": check == same != 0, "classes": sorted(classes)}))
"""


def seen(computer: Computer) -> Any:
    return computer.python(SEEN, environment=desk_environment(computer))


@pytest.mark.parametrize(
    "given",
    [{}, {"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere/bus", "XDG_RUNTIME_DIR": "/nowhere", "DISPLAY": ":99"}],
    ids=["nothing", "another's"],
)
def test_s23_a_whole_desktop_within_thirty_seconds(start: Start, given: dict[str, str]) -> None:
    computer = start(environment=given)
    computer.wait_until_healthy(30)
    variables = computer.run("cat", f"/proc/{computer.pid_of('local/bin/entrypoint')}/environ")
    assert [name for name in ("DBUS_SESSION", "XDG_RUNTIME_DIR") if name in variables] == (
        ["DBUS_SESSION", "XDG_RUNTIME_DIR"] if given else []
    ), "the test starts it as it says"
    shown = seen(computer)
    assert (shown["name"], shown["same"]) == ("Xfwm4", True)
    assert {"xfce4-panel", "xfdesktop"} <= set(shown["classes"])
    environment = desk_environment(computer)
    runtime = environment["XDG_RUNTIME_DIR"]
    assert computer.run("stat", "-c", "%U %a", runtime) == "desk 700"
    words = [f"{name}={value}" for name, value in environment.items()]
    ask = [
        "dbus-send",
        "--session",
        "--print-reply",
        "--dest=org.freedesktop.DBus",
        "/",
        "org.freedesktop.DBus.ListNames",
    ]
    assert "org.xfce.Xfconf" in computer.run("env", "-i", *words, *ask, user="desk")


def test_the_session_keeps_no_opengl_in_memory(computer: Computer) -> None:
    """The first GTK program of a display asks for its visuals (GDK_VISUALS) by loading all of Mesa."""
    assert "/libgtk-3" in computer.run("cat", f"/proc/{computer.pid_of('xfce4-session')}/maps", user="desk")
    for part in ("xfce4-session", "xfce4-panel", "xfdesktop", "xfwm4"):
        assert "/dri/" not in computer.run("cat", f"/proc/{computer.pid_of(part)}/maps", user="desk"), part


@pytest.mark.parametrize(
    ("program", "part", "said"),
    [("dbus-daemon", "session bus", "no bus today"), ("xfwm4", "session", "no window manager")],
)
def test_s23_a_desktop_that_does_not_come_up_says_which_part_and_why(
    start: Start, tmp_path: Path, program: str, part: str, said: str
) -> None:
    fake = tmp_path / program
    fake.write_text(f"#!/bin/sh\necho {said} >&2\nexit 3\n")
    fake.chmod(0o755)
    computer = start(volumes=[(fake, f"/usr/bin/{program}")], environment={"DESKHAND_START_WITHIN": "15"})
    assert computer.wait_for_end() == 1
    assert f"the desktop ends: {part}: " in computer.log()
    assert said in computer.log(), "the tail of its own log"
