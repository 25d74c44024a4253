"""S7, S9, S10, S11, S12, S13, S14, S29: pictures, positions, waiting, scrolling and dragging, through the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deskhand.hand.x11 import Connection
from deskhand.testing import XServer, window_manager, xvfb
from tests.cases.ways import Way
from tests.commands import act, deskhand
from tests.probes import RawWindow, probe_window
from tests.toolkits import toolkit_window
from tests.x_windows import make_entry, x_window
from tests.xservers import own_number

# One by one they are quick; together they take minutes.
pytestmark = pytest.mark.slow


# ---- S7: an old picture is returned as new


def test_s7_two_pictures_to_one_path_with_a_change_between_differ(openbox_display: XServer, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    seen = []
    with Connection.open(openbox_display.display) as conn:
        for words in (["screenshot", "-o", str(path)], ["act", "-o", str(path), "screenshot"]):
            assert deskhand(openbox_display, *words).status == 0
            seen.append(path.read_bytes())
            with x_window(conn, openbox_display, "new"):
                assert deskhand(openbox_display, *words).status == 0
                seen.append(path.read_bytes())
    assert len(set(seen)) == 2
    assert seen[0] == seen[2] != seen[1]
    assert os.listdir(tmp_path) == ["a.png"]


@pytest.mark.parametrize("how", ["no server", "a server that hangs", "no directory"])
def test_s7_a_picture_that_fails_is_an_error_and_gives_no_other(tmp_path: Path, how: str) -> None:
    with xvfb(number=own_number()) as display:
        if how == "a server that hangs":
            os.kill(display.pid, signal.SIGSTOP)
        if how == "no server":
            os.kill(display.pid, signal.SIGTERM)
            os.waitid(os.P_PID, display.pid, os.WEXITED | os.WNOWAIT)
        no_picture_comes(display, tmp_path, how)


def no_picture_comes(display: XServer, tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"the old one")
    target = str(tmp_path / "none" / "a.png" if how == "no directory" else path)
    act_ = deskhand(display, "act", "--timeout", "0.5", "-o", target, "--json", "screenshot")
    assert act_.status == (3 if how == "no directory" else 5)
    assert not act_.json["ok"]
    assert "picture" not in act_.json
    screenshot = deskhand(display, "screenshot", "-o", target, "--json")
    assert screenshot.status == (1 if how == "no directory" else 5)
    assert screenshot.output == b""
    assert path.read_bytes() == b"the old one"
    assert os.listdir(tmp_path) == ["a.png"]


def test_s7_each_picture_says_which_it_is(display: XServer) -> None:
    first, second = (act(display, {"action": "screenshot"}).json["picture"] for _ in range(2))
    assert second["sequence"] > first["sequence"]
    assert second["time"] > first["time"]
    assert second["hash"] == first["hash"], "nothing has changed"


# ---- S9: positions


@pytest.mark.parametrize(("x", "y"), [(0, 0), (1279, 719), (1279, 0), (640, 360)])
def test_s9_a_position_in_a_scaled_picture_is_the_pixel_it_shows(way: Way, x: int, y: int) -> None:
    with xvfb(width=2560, height=1440) as large:
        server = way.reach(large)
        space = {"picture": [1280, 720]}
        answer = act(server, {"action": "click", "x": x, "y": y}, space=space)
        assert answer.status == 0, answer
        px, py = answer.json["results"][0]["point"]
        assert abs(px - x * 2) <= 1
        assert abs(py - y * 2) <= 1
        if (x, y) == (1279, 719):
            assert px >= 2558
            assert py >= 1438


@pytest.mark.parametrize(
    ("space", "x", "y"),
    [
        ({"picture": [1280, 720]}, 1280, 10),
        ({"picture": [1280, 720]}, 10, 720),
        ({"picture": [1280, 720]}, -1, 0),
        ({"grid": 999}, 1000, 0),
        ({"grid": 1000}, 1001, 0),
        ("screen", 1280, 0),
        ("screen", 0, 800),
        ("screen", -0.6, 0),
    ],
)
@pytest.mark.parametrize("action", ["click", "drag", "scroll", "zoom"])
def test_s9_outside_the_space_is_refused_with_the_range(
    display: XServer, action: str, space: object, x: float, y: float
) -> None:
    wrong: dict[str, Any] = {"x": x, "y": y}
    if action == "drag":
        wrong = {"path": [[0, 0], [x, y]]}
    if action == "scroll":
        wrong["dy"] = 1
    if action == "zoom":
        wrong = {"region": [0, 0, x + 5, y + 5]} if min(x, y) >= 0 else {"region": [x, y, 5, 5]}
    answer = act(display, {"action": "move", "x": 1, "y": 1}, {"action": action, **wrong}, space=space)
    assert (answer.status, answer.json["sent"]) == (2, "none"), answer
    assert "use " in answer.error
    assert act(display, {"action": "cursor_position"}).json["results"][0]["point"] == [640, 400]


def test_s29_the_corner_is_an_ordinary_point(display: XServer) -> None:
    with RawWindow(display) as window:
        answer = act(
            display, {"action": "click", "x": 0, "y": 0}, {"action": "click", "x": 50, "y": 50}, {"action": "click"}
        )
        assert answer.status == 0
        assert [event.at for event in window.all("press")] == [(0, 0), (50, 50), (50, 50)]


def test_s29_no_import_needs_a_display() -> None:
    code = "import deskhand, deskhand.hand.hand, deskhand.cli.app, deskhand.session, deskhand.backends.local"
    subprocess.run([sys.executable, "-c", code], env={}, check=True)


# ---- S10, S11: waits


def test_s10_what_is_so_already_is_not_waited_for(openbox_display: XServer) -> None:
    with Connection.open(openbox_display.display) as conn, x_window(conn, openbox_display, "here") as window:
        answer = act(
            openbox_display,
            {"action": "move", "x": 5, "y": 5},
            {"action": "move", "x": 5, "y": 5},
            {"action": "wait_window", "title": "here", "timeout": 0},
            {"action": "focus", "window": window},
            {"action": "focus", "window": window},
            {"action": "wait_window", "title": "here", "focused": True, "timeout": 0},
            {"action": "resize", "window": window, "width": 310},
            {"action": "resize", "window": window, "width": 310},
        )
        assert answer.status == 0, answer


@pytest.mark.parametrize(
    "action",
    [
        {"action": "wait_window", "title": "no-such-window", "timeout": 0.2},
        {"action": "wait_window", "app": "no-such-app", "timeout": 0.2},
        {"action": "wait_window", "title": "here", "focused": True, "timeout": 0.2},
        {"action": "focus", "window": 12345678},
        {"action": "close", "window": 12345678},
        {"action": "resize", "window": 12345678, "width": 10},
        {"action": "quit", "window": 12345678, "timeout": 0.2},
    ],
)
def test_s10_what_never_comes_is_an_error(openbox_display: XServer, action: dict[str, Any]) -> None:
    with Connection.open(openbox_display.display) as conn, x_window(conn, openbox_display, "here", "--no-input"):
        answer = act(openbox_display, action, {"action": "click"})
        assert answer.status == 3, answer
        assert answer.json["results"][1]["status"] == "skipped"


def test_s11_input_after_a_launch_reaches_a_window_that_was_slow(
    way: Way, desktop: XServer, applications: Path, tmp_path: Path
) -> None:
    log = tmp_path / "gtk.log"
    script = way.fixture("gtk_text.py")
    make_entry(applications, "late", f"sh -c \"sleep 1; exec /usr/bin/python3 '{script}' '{log}'\"", name="Late")
    answer = act(desktop, {"action": "launch", "app": "late"}, {"action": "type", "text": "first"})
    assert answer.status == 0, answer
    assert '"text": "first"' in log.read_text()


def test_s11_wait_window_is_mapped_and_painted(openbox_display: XServer, tmp_path: Path) -> None:
    with toolkit_window(openbox_display, "gtk", tmp_path / "log") as window:
        answer = act(
            openbox_display,
            {"action": "wait_window", "title": "gtk text", "focused": True},
            {"action": "type", "text": "first"},
        )
        assert answer.status == 0
        assert window.shows("first")


# ---- S12: settling


def test_s12_a_blinking_caret_settles(openbox_display: XServer, tmp_path: Path) -> None:
    for kind in ("tk", "gtk"):
        with toolkit_window(openbox_display, kind, tmp_path / kind):
            told = act(openbox_display, {"action": "key", "keys": "a"}).json
            assert (told["settled"], told["settle"]) == (True, "settled"), kind


def test_s12_what_never_stops_moving_is_said_and_is_no_error(openbox_display: XServer) -> None:
    with probe_window(openbox_display, "--animate"):
        answer = act(openbox_display, {"action": "move", "x": 200, "y": 200}, picture=True)
        assert answer.status == 0
        told = answer.json
        assert told["ok"]
        assert told["settled"] is False
        assert told["settle"] in ("timeout", "animating")
        assert told["moving"]
        assert "picture" in told


# ---- S13, S14: scroll and drag


@pytest.mark.parametrize(
    ("scroll", "buttons"),
    [
        ({"dy": 3}, [5, 5, 5]),
        ({"dy": -1}, [4]),
        ({"dx": -2}, [6, 6]),
        ({"dx": 1}, [7]),
        ({"dx": 1, "dy": 1}, [5, 7]),
        ({"dy": 250, "unit": "pixels"}, [5, 5]),
        ({"dy": -3, "unit": "pixels"}, [4]),
    ],
)
def test_s13_a_notch_is_a_press_of_the_right_button(
    display: XServer, scroll: dict[str, Any], buttons: list[int]
) -> None:
    for space in ("screen", {"picture": [320, 200]}):
        with RawWindow(display) as window:
            answer = act(display, {"action": "scroll", "x": 10, "y": 10, **scroll}, space=space)
            assert answer.status == 0, answer
            assert sorted(event.detail for event in window.all("press")) == buttons
            assert len(window.all("release")) == len(buttons)


@pytest.mark.parametrize(
    "scroll", [{"dy": 101}, {"dy": 0.5}, {}, {"dy": 0}, {"dy": "3"}, {"dy": 10_001, "unit": "pixels"}]
)
def test_s13_what_is_no_number_of_notches_is_refused(display: XServer, scroll: dict[str, Any]) -> None:
    answer = act(display, {"action": "scroll", **scroll})
    assert (answer.status, answer.json["sent"]) == (2, "none")


def test_s14_a_drag_starts_where_it_says_and_moves_on_the_way(display: XServer) -> None:
    with RawWindow(display) as window:
        answer = act(
            display, {"action": "move", "x": 600, "y": 600}, {"action": "drag", "path": [[60, 90], [300, 250]]}
        )
        assert answer.status == 0
        (press,), (release,) = window.all("press"), window.all("release")
        assert (press.at, release.at) == ((60, 90), (300, 250))
        events = window.all("press", "motion", "release")
        between = events[events.index(press) + 1 : events.index(release)]
        assert len(between) >= 5
        assert all(event.state & 0x100 for event in between)
        assert [event.at for event in between] == sorted(event.at for event in between)


def test_s14_a_drag_with_corners_a_modifier_and_another_button(display: XServer) -> None:
    path = [[10, 10], [100, 10], [100, 100]]
    with RawWindow(display) as window:
        answer = act(display, {"action": "drag", "path": path, "button": "right", "modifiers": ["ctrl"]})
        assert answer.status == 0, answer
        (press,) = window.all("press")
        assert (press.detail, press.state & 4) == (3, 4)
        assert (100, 10) in [event.at for event in window.all("motion")]
        assert window.all("release")[0].at == (100, 100)


def test_s9_zoom_shows_the_region_and_changes_no_space(display: XServer, tmp_path: Path) -> None:
    path = tmp_path / "z.png"
    answer = deskhand(display, "act", "-o", str(path), "--json", "zoom", "100", "100", "300", "200")
    assert answer.status == 0
    with Image.open(path) as picture:
        assert picture.size == (200, 100)
    assert act(display, {"action": "move", "x": 1279, "y": 799}).status == 0


def test_s9_a_size_that_changes_is_seen(way: Way, display: XServer) -> None:
    """Two servers, one after the other, under the same session's name: nothing of the first is remembered."""
    assert act(display, {"action": "move", "x": 1279, "y": 799}).status == 0
    with xvfb(width=640, height=480) as server, window_manager(server):
        small = way.reach(server)
        assert act(small, {"action": "move", "x": 640, "y": 0}).status == 2
        assert act(small, {"action": "move", "x": 639, "y": 479}).status == 0
