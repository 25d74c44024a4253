"""``screenshot``, ``windows``, ``apps``, ``launch`` and ``doctor``: their fixed forms."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from PIL import Image

from deskhand.hand.x11 import Connection
from deskhand.testing import XServer
from tests.commands import deskhand
from tests.own_desktop import own
from tests.x_windows import command, make_entry, x_window


@pytest.mark.slow
def test_a_screenshot_is_the_screen_in_a_file(display: XServer, tmp_path: Path) -> None:
    for name, form in (("a.png", "PNG"), ("b.JPG", "JPEG"), ("c.webp", "WEBP"), ("d", "PNG")):
        answer = deskhand(display, "screenshot", "-o", str(tmp_path / name), "--json")
        told = answer.json
        assert {"format", "width", "height", "scale", "sequence", "time", "hash", "path", "display"} <= set(told)
        assert (told["path"], told["display"]) == (str(tmp_path / name), display.display)
        with Image.open(tmp_path / name) as picture:
            assert (picture.format, picture.size) == (form, (1280, 800))
    part = deskhand(
        display, "screenshot", "-o", str(tmp_path / "e.png"), "--region", "10,20,110,70", "--max-edge", "50"
    )
    assert (part.status, part.output) == (0, b"")
    with Image.open(tmp_path / "e.png") as picture:
        assert picture.size == (50, 25)


def test_a_screenshot_under_the_name_of_another_format_is_refused(display: XServer, tmp_path: Path) -> None:
    for arguments in (["screenshot"], ["act", "--json", "cursor_position"]):
        answer = deskhand(display, *arguments, "-o", str(tmp_path / "a.gif"))
        assert (answer.status, "can not be made" in answer.error) == (2, True)
    assert not list(tmp_path.iterdir())


def test_a_screenshot_to_a_pipe(display: XServer) -> None:
    answer = deskhand(display, "screenshot", "-o", "/dev/stdout")
    with Image.open(io.BytesIO(answer.output)) as picture:
        assert picture.size == (1280, 800)


@pytest.mark.slow
def test_a_region_that_is_not_there_writes_nothing(display: XServer, tmp_path: Path) -> None:
    for region in ("0,0,1281,5", "5,5,5,9", "-1,0,5,5", "a,b,c,d", "9" * 5000 + ",0,1,1"):
        assert deskhand(display, "screenshot", "-o", str(tmp_path / "a.png"), f"--region={region}").status == 2
    assert deskhand(display, "screenshot", "-o", str(tmp_path / "none" / "a.png")).status == 1
    assert os.listdir(tmp_path) == []


def test_windows(openbox_display: XServer) -> None:
    assert deskhand(openbox_display, "windows", "--json").json == []
    with (
        Connection.open(openbox_display.display) as conn,
        x_window(conn, openbox_display, "Eine é\u2028日本 window", "--pid") as window,
    ):
        (found,) = deskhand(openbox_display, "windows", "--json").json
        assert (found["id"], found["title"]) == (window, "Eine é\u2028日本 window")
        assert len(found["rect"]) == 4
        assert {"app_id", "pid"} <= set(found)
        assert str(window) in deskhand(openbox_display, "windows").text


def test_apps_are_listed_with_and_without_a_display(display: XServer, applications: Path) -> None:
    make_entry(applications, "b", "true", name="Bé")
    make_entry(applications, "a", "true", name="An app")
    make_entry(applications, "hidden", "true", "NoDisplay=true")
    (applications / "broken.desktop").write_bytes(b"\xff\xfe[")
    for server in (display, None):
        answer = deskhand(own(server, applications), "apps", "--json")
        assert answer.json == [
            {"id": "a", "name": "An app", "path": str(applications / "a.desktop")},
            {"id": "b", "name": "Bé", "path": str(applications / "b.desktop")},
        ]
    assert deskhand(own(display, applications), "apps").text == "An app  (a)\nBé  (b)"
    said = deskhand(own(None, applications), "apps", "--verbose", verbose=True)
    assert f"searched: {applications}" in said.error


def test_a_directory_whose_name_is_no_text(display: XServer, tmp_path: Path) -> None:
    directory = os.fsencode(tmp_path) + b"/d\xff/applications"
    os.makedirs(directory)
    with open(directory + b"/x.desktop", "w") as file:
        file.write("[Desktop Entry]\nType=Application\nName=X\nExec=true\n")
    env = {**own(None, tmp_path / "a" / "b"), "XDG_DATA_HOME": os.fsdecode(os.path.dirname(directory))}
    (found,) = deskhand(env, "apps", "--json").json
    assert found["path"] == f"{tmp_path}/d?/applications/x.desktop"


def test_launch_tells_of_the_window(desktop: XServer, applications: Path) -> None:
    make_entry(applications, "win", command("--title", "The window", "--pid"), name="A Window")
    env = desktop.env
    answer = deskhand(env, "launch", "a window", "--json")
    assert answer.status == 0, answer
    told = answer.json
    assert (told["ok"], told["sent"], told["id"], told["name"]) == (True, "all", "win", "A Window")
    assert told["window"]["title"] == "The window"
    assert told["results"][0]["status"] == "ok"
    (window,) = deskhand(env, "windows", "--json").json
    assert window["id"] == told["window"]["id"]
    assert deskhand(env, "act", "quit", "win").status == 0
    assert deskhand(env, "windows", "--json").json == []


@pytest.mark.parametrize(
    "name", ["--help", "-h", "../x", "/bin/sh", "x" * 256, "", "no such", "a\nb", "$(id)", "win;id"]
)
def test_a_name_that_is_none_starts_nothing(display: XServer, applications: Path, name: str) -> None:
    make_entry(applications, "win", command("--title", "x"))
    answer = deskhand(own(display, applications), "launch", "--json", "--", name)
    assert answer.status == 2, answer
    assert (answer.json["ok"], answer.json["sent"]) == (False, "none")


def test_near_and_ambiguous_names(display: XServer, applications: Path) -> None:
    make_entry(applications, "one", "true", name="Editor")
    make_entry(applications, "two", "true", name="Editor")
    make_entry(applications, "fox", "true", name="Firefox ESR")
    env = own(display, applications)
    assert "Firefox ESR" in deskhand(env, "launch", "Fierfox").error
    twice = deskhand(env, "launch", "Editor", "--json")
    assert twice.status == 2
    assert "one" in twice.error
    assert "two" in twice.error


def test_a_launch_without_a_window_is_status_3(desktop: XServer, applications: Path) -> None:
    make_entry(applications, "dies", 'sh -c "echo the reason >&2; exit 9"')
    make_entry(applications, "silent", "sleep 30")
    env = desktop.env
    died = deskhand(env, "launch", "dies", "--json")
    assert died.status == 3
    assert "exit status 9" in died.error
    assert "the reason" in died.error
    silent = deskhand(env, "launch", "silent", "--timeout", "0.5", "--json")
    assert silent.status == 3
    assert "no window" in silent.error
    assert (
        deskhand(env, "act", "--json", stdin={"actions": [{"action": "quit", "app": "silent", "force": True}]}).status
        == 0
    )


def test_doctor(openbox_display: XServer) -> None:
    answer = deskhand(openbox_display, "doctor", "--json")
    assert answer.status == 0
    found = {finding["what"]: finding for finding in answer.json}
    assert {finding["state"] for finding in answer.json} <= {"ok", "limited"}
    assert found["display"]["text"].startswith(f"{openbox_display.display}, 1280x800")
    assert found["window manager"]["text"].lower() == "openbox"
    for name in ("XTEST", "MIT-SHM", "DAMAGE", "XKEYBOARD", "XFIXES", "applications", "opener", "python", "Xvfb"):
        assert name in found
    assert "display" in deskhand(openbox_display, "doctor").text
