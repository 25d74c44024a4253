"""What dies in the image, what comes back, what ends it, and what it says then."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.image.computers import Computer, wait_for
from tests.image.conftest import Start
from tests.image.containers import EngineContainer
from tests.image.entries import Entries

#: Keys that are down, and the pointer's buttons, as the X server has them.
HELD = """
import json, os
from deskhand.hand.x11 import Connection, core
with Connection.open(":0") as connection:
    keys = len(core.query_keymap(connection))
    buttons = core.query_pointer(connection, connection.root).mask & 0x1F00
print(json.dumps({"keys": keys, "buttons": buttons}))
"""
XVFB = "exec Xvfb :5 -screen 0 {size}x24 -noreset -nolisten tcp -auth /tmp/cookie >/tmp/xvfb.log 2>&1"
#: What the entrypoint makes, for a display of the test's own.
COOKIES = """
import os, pwd
from deskhand.desktop import xserver
desk, computerd = pwd.getpwnam("desk"), pwd.getpwnam("computerd")
for path, uid, gid, mode in (
    ("/run/launcher", desk.pw_uid, computerd.pw_gid, 0o750),
    ("/run/computerd", computerd.pw_uid, computerd.pw_gid, 0o700),
    ("/tmp/.X11-unix", 0, 0, 0o1777),
):
    os.mkdir(path)
    os.chown(path, uid, gid)
    os.chmod(path, mode)
cookie = xserver.new_cookie()
xserver.write_xauthority("/tmp/cookie", cookie, 5, (desk.pw_uid, desk.pw_gid))
xserver.write_xauthority("/run/computerd/Xauthority", cookie, 5, (computerd.pw_uid, computerd.pw_gid))
print(1)
"""
SITE = "/opt/deskhand/lib/python3.11/site-packages/deskhand"


def test_healthy_within_seconds_and_the_health_check_says_so(computer: Computer) -> None:
    assert computer.health() == 200
    assert '"ok": true' in computer.run("/usr/local/bin/health")
    health = computer.request("GET", "/health", headers={"Authorization": None}).json
    assert health["screen_saver"] == "off"  # S22
    box = computer.container
    if isinstance(box, EngineContainer) and box.engine == "podman":  # the image's own, and not only the program
        assert box.call("healthcheck", "run", box.name).returncode == 0


@pytest.mark.parametrize(("part", "number"), [("computerd.launcher", "KILL"), ("computerd.launcher", "TERM")])
def test_the_launcher_is_started_again(
    computer: Computer, part: str, number: str, record_property: Callable[[str, object], None]
) -> None:
    pid = computer.pid_of(part)
    record_property("seconds until 503", computer.health_while(lambda: computer.signal(part, number), 503, 10))
    computer.wait_until_healthy(10)
    assert computer.pid_of(part) != pid
    assert computer.act({"action": "screenshot"})["ok"]


def test_an_x_server_that_does_not_answer_is_told(
    computer: Computer, record_property: Callable[[str, object], None]
) -> None:
    computer.signal("Xvfb", "STOP")
    try:
        record_property("seconds until 503", computer.wait_for_health(503, 10))
    finally:
        computer.signal("Xvfb", "CONT")
    computer.wait_until_healthy(5)
    assert computer.act({"action": "screenshot"})["ok"]


def test_applications_outlive_both_and_are_still_listed_and_input_is_released(
    computer: Computer, entries: Entries
) -> None:
    launched = computer.done({"action": "launch", "app": "org.xfce.mousepad", "timeout": 30})["results"][0]
    computer.done({"action": "key_down", "keys": "shift"}, {"action": "mouse_down", "x": 640, "y": 790})
    assert held(computer) == {"keys": 1, "buttons": 0x100}
    computer.signal("deskhand serve", "KILL")
    computer.signal("computerd.launcher", "KILL")
    computer.wait_until_healthy(15)
    wait_for(lambda: held(computer) == {"keys": 0, "buttons": 0}, 10)
    assert computer.run("ps", "-o", "user:32=", "-p", str(launched["pid"])) == "desk"
    windows = computer.request("GET", "/windows").json["windows"]
    assert launched["window"]["id"] in [window["id"] for window in windows]
    # Quitting takes only what was launched here: it is remembered.
    assert computer.done({"action": "quit", "app": "org.xfce.mousepad"})["results"][0]["outcome"] == "closed"


def held(computer: Computer) -> Any:
    return computer.python(HELD, user="computerd", environment={"XAUTHORITY": "/run/computerd/Xauthority"})


def test_the_container_ends_with_the_reason_when_the_x_server_dies(start: Start) -> None:
    computer = start()
    computer.wait_until_healthy()
    computer.signal("Xvfb", "KILL")
    assert computer.wait_for_end() == 1
    assert "the X server was ended by SIGKILL" in computer.log()


def test_the_container_ends_with_the_reason_when_the_session_dies(start: Start) -> None:
    computer = start()
    computer.wait_until_healthy()
    computer.signal("xfce4-session", "TERM")
    assert computer.wait_for_end() == 1
    assert "the session ended" in computer.log() or "the session was ended" in computer.log()


@pytest.mark.parametrize(
    ("program", "within", "said"),
    [
        ("import time\nDEFAULT_SOCKET = ''\ndef serve(*_, **__):\n    time.sleep(1000)\n", 12, "not appear in time"),
        ("raise SystemExit('no launcher today')\n", 60, "launcher.sock never appeared"),
    ],
)
def test_the_container_ends_with_the_reason_when_the_launchers_socket_never_appears(
    start: Start, tmp_path: Path, program: str, within: int, said: str
) -> None:
    fake = tmp_path / "listening.py"
    fake.write_text(program)
    computer = start(
        volumes=[(fake, f"{SITE}/computerd/launcher/listening.py")], environment={"DESKHAND_START_WITHIN": str(within)}
    )
    assert computer.wait_for_end() == 1
    assert said in computer.log()
    if "today" in program:
        assert "no launcher today" in computer.log()


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"DESKHAND_SIZE": "big"}, "'big' is no screen size"),
        ({"DESKHAND_TOKEN_FILE": "/nowhere"}, "the token file /nowhere can not be read"),
        ({"DESKHAND_START_WITHIN": "soon"}, "give seconds"),
    ],
)
def test_a_wrong_setting_ends_it_with_one_line(start: Start, environment: dict[str, str], said: str) -> None:
    computer = start(environment=environment)
    assert computer.wait_for_end() == 1
    assert said in computer.log()
    assert "Traceback" not in computer.log()


def test_a_token_that_applications_could_read_is_refused(start: Start, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-for-everybody")
    token.chmod(0o444)
    computer = start(volumes=[(token, "/etc/token")], environment={"DESKHAND_TOKEN_FILE": "/etc/token"})
    assert computer.wait_for_end() == 1
    assert "desk, and so every application, can read the token file /etc/token" in computer.log()
    assert "a-token-for-everybody" not in computer.log()


def test_a_writable_root_another_size_and_a_token_made_there(start: Start) -> None:
    computer = start(read_only=False, with_token=False, environment={"DESKHAND_SIZE": "1600x900"})
    computer.wait_until_healthy()
    assert computer.request("GET", "/info").json["size"] == [1600, 900]
    assert computer.run("stat", "-c", "%U %a", "/run/computerd/token") == "computerd 600"
    first = computer.token
    box = computer.container
    if not isinstance(box, EngineContainer):
        pytest.skip("bwrap starts nothing again")
    # Killed, and started again in the same file system: locks, sockets and states of the first life are in the way.
    box.end("KILL")
    box.wait(60)
    box.call("start", box.name)
    box.look()
    computer.forget_token()
    computer.wait_until_healthy()
    assert computer.token != first
    assert computer.act({"action": "screenshot"})["ok"]
    assert computer.run("sh", "-c", "ls /tmp/deskhand | wc -l") == "1"


def test_volumes_of_any_mode(start: Start) -> None:
    """As a cluster mounts them: writable for everybody, without the sticky bit."""
    computer = start(modes="0777")
    computer.wait_until_healthy()
    assert computer.run("stat", "-c", "%a", "/run", "/tmp").split() == ["755", "1777"]


def test_it_ends_when_asked_to(start: Start) -> None:
    computer = start()
    computer.wait_until_healthy()
    computer.act({"action": "launch", "app": "org.xfce.mousepad"})
    computer.container.end("TERM")
    assert computer.wait_for_end(20) == 0


def test_an_x_server_that_comes_back_at_another_size_is_served_again(
    start: Start, record_property: Callable[[str, object], None]
) -> None:
    """computerd and the launcher, in the image, beside an X server that this test starts, kills and starts again."""
    computer = start(command=["sleep", "3600"])
    run = computer.run
    computer.python(COOKIES, user="root")
    run("install", "-m", "600", "-o", "computerd", "/run/secrets/deskhand_token", "/run/computerd/token")

    def x_server(size: str) -> None:
        computer.begin("sh", "-c", XVFB.format(size=size), user="desk")
        wait_for(lambda: run("sh", "-c", "test -S /tmp/.X11-unix/X5 && echo there", check=False))

    def gone(pid: int) -> bool:
        return not run("ps", "-o", "pid=", "-p", str(pid), check=False)

    deskhand = "/opt/deskhand/bin/deskhand"
    x_server("1024x768")
    desk = ("env", "DISPLAY=:5", "XAUTHORITY=/tmp/cookie", "HOME=/tmp")
    computer.begin(*desk, deskhand, "launcher", "--serve-uid", "computerd", user="desk")
    serving = [deskhand, "serve", "--display", ":5", "--xauthority", "/run/computerd/Xauthority"]
    serving += ["--listen", "127.0.0.1:8765", "--token-file", "/run/computerd/token"]
    computer.begin(*serving, "--launcher", "/run/launcher/launcher.sock", user="computerd")
    computer.wait_until_healthy(30)
    pid = computer.pid_of("deskhand serve")
    assert computer.request("GET", "/info").json["size"] == [1024, 768]
    for size, number in (("1440x900", "KILL"), ("800x600", "TERM")):
        killed = computer.signal("Xvfb :5", number)
        record_property("seconds until 503", computer.wait_for_health(503, 10))
        answer = computer.act({"action": "move", "x": 1, "y": 1})
        assert not answer["ok"]
        wait_for(partial(gone, killed))
        run("rm", "-f", "/tmp/.X11-unix/X5", "/tmp/.X5-lock")
        x_server(size)
        computer.wait_until_healthy(10)
        width, height = (int(part) for part in size.split("x"))
        assert computer.request("GET", "/info").json["size"] == [width, height]
        answer = computer.done({"action": "move", "x": width - 1, "y": height - 1}, {"action": "cursor_position"})
        assert answer["results"][1]["point"] == [width - 1, height - 1]
    assert computer.pid_of("deskhand serve") == pid
