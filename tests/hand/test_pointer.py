"""The pointer: what a window receives of clicks, drags and scrolling."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.probes import RawWindow, pressed, probe_window
from tests.xservers import until

from deskhand.hand.errors import ActionFailed
from deskhand.hand.hand import Hand
from deskhand.hand.pointer import _steps
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, window_manager
from deskhand.testing.received import Received, fixture_window

BUTTON_BITS = {1: 0x100, 2: 0x200, 3: 0x400}
SHIFT, CONTROL = 0x1, 0x4


@pytest.fixture
def screen(display: XServer) -> Iterator[XServer]:
    """An X server on which nothing is pressed when the test has ended."""
    yield display
    assert pressed(display) == []


@pytest.fixture
def managed(display: XServer) -> Iterator[tuple[Hand, Received, int]]:
    """A hand, a window that tells what it receives, and the pid of the window manager."""
    with (
        window_manager(display, "openbox") as manager,
        fixture_window(display) as window,
        Hand(display.display, display.xauthority) as hand,
    ):
        window.forget()
        yield hand, window, manager


@contextmanager
def held_back(hand: Hand, manager: int) -> Iterator[None]:
    """The window manager is stopped, and goes on once the server has frozen the pointer at a press."""
    os.kill(manager, signal.SIGSTOP)
    over = threading.Event()

    def go_on() -> None:
        try:
            with Connection.open(hand.display.name, hand.display.xauthority) as conn:
                until(lambda: core.query_pointer(conn).mask & BUTTON_BITS[1] or over.is_set())
            over.wait(0.3)  # room for a hand that does not wait: what it sends now goes astray
        finally:
            os.kill(manager, signal.SIGCONT)

    waiting = threading.Thread(target=go_on)
    waiting.start()
    try:
        yield
    finally:
        over.set()
        waiting.join()


@pytest.fixture
def hand(screen: XServer) -> Iterator[Hand]:
    with Hand(screen.display, screen.xauthority) as hand:
        yield hand


def act(hand: Hand, *actions: dict[str, Any], **envelope: Any) -> list[dict[str, Any]]:
    """Do it without waiting for anything; every action must work."""
    answer, _ = hand.act({"actions": list(actions), "settle": {"mode": "none"}, **envelope})
    assert answer["ok"], answer
    return list(answer["results"])


class TestABusyWindowManager:
    """It freezes the pointer at each press, and what comes after a press waits in the server until it has looked."""

    def test_each_click_is_where_it_was_meant(self, managed: tuple[Hand, Received, int]) -> None:
        hand, window, manager = managed
        for n in (10, 20, 30):
            with held_back(hand, manager):
                act(hand, {"action": "click", "x": n, "y": n, "count": 2})
                assert [event["at"] for event in window.all("press")][-2:] == [[n, n]] * 2
        assert [event["at"] for event in window.all("press")] == [[n, n] for n in (10, 20, 30) for _ in range(2)]

    def test_a_drag_passes_every_point(self, managed: tuple[Hand, Received, int]) -> None:
        hand, window, manager = managed
        path = [[100, 100], [300, 100], [300, 250], [120, 180]]
        with held_back(hand, manager):
            act(hand, {"action": "drag", "path": path})
        told = window.all("press", "release", "motion")
        kinds = [event["is"] for event in told]
        start, end = kinds.index("press"), kinds.index("release")
        assert (told[start]["at"], told[end]["at"]) == (path[0], path[-1])
        passed = [event["at"] for event in told[start:end]]
        assert [point for point in passed if point in path[1:]] == path[1:]
        assert len(passed) > 10

    def test_a_press_and_a_move(self, managed: tuple[Hand, Received, int]) -> None:
        hand, window, manager = managed
        with held_back(hand, manager):
            act(
                hand,
                {"action": "mouse_down", "x": 50, "y": 60},
                {"action": "move", "x": 90, "y": 60},
                {"action": "mouse_up"},
            )
        assert [(e["is"], e["at"]) for e in window.all("press", "release")] == [
            ("press", [50, 60]),
            ("release", [90, 60]),
        ]

    def test_one_that_hangs_is_an_error(self, managed: tuple[Hand, Received, int]) -> None:
        hand, window, manager = managed
        os.kill(manager, signal.SIGSTOP)
        try:
            answer, _ = hand.act({"actions": [{"action": "click", "x": 50, "y": 60}], "settle": {"mode": "none"}})
        finally:
            os.kill(manager, signal.SIGCONT)
        assert answer["sent"] == "part"
        assert "down 3 s after its release: the window manager keeps the click back" in answer["results"][0]["error"]
        window.until("release")
        assert [(e["is"], e["at"]) for e in window.all("press", "release")] == [
            ("press", [50, 60]),
            ("release", [50, 60]),
        ]


@pytest.mark.parametrize(("button", "number"), [("left", 1), ("middle", 2), ("right", 3), ("back", 8), ("forward", 9)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_button_and_count(screen: XServer, hand: Hand, button: str, number: int, count: int) -> None:
    with RawWindow(screen) as window:
        (result,) = act(hand, {"action": "click", "x": 300, "y": 200, "button": button, "count": count})
        events = window.all("press", "release")
    assert result["point"] == [300, 200]
    assert [(event.kind, event.detail) for event in events] == [("press", number), ("release", number)] * count
    assert {event.at for event in events} == {(300, 200)}


def test_a_click_without_a_position_is_where_the_pointer_is(screen: XServer, hand: Hand) -> None:
    with RawWindow(screen) as window:
        moved, clicked = act(hand, {"action": "move", "x": 11, "y": 22}, {"action": "click"})
        assert moved["point"] == clicked["point"] == [11, 22]
        assert [event.at for event in window.all("press")] == [(11, 22)]


@pytest.mark.parametrize("point", [(0, 0), (1279, 0), (0, 799), (1279, 799)])
def test_the_corners_are_ordinary_points(screen: XServer, hand: Hand, point: tuple[int, int]) -> None:
    with RawWindow(screen) as window:
        for _ in range(2):
            act(hand, {"action": "click", "x": point[0], "y": point[1]}, {"action": "click", "x": 50, "y": 50})
        assert [event.at for event in window.all("press")] == [point, (50, 50)] * 2


def test_modifiers_are_down_for_the_click_alone(screen: XServer, hand: Hand) -> None:
    with RawWindow(screen) as window:
        act(hand, {"action": "click", "x": 5, "y": 5, "modifiers": ["ctrl", "shift"]}, {"action": "click"})
        first, second = window.all("press")
    assert (first.state & 0xFF, second.state & 0xFF) == (SHIFT | CONTROL, 0)


def test_a_modifier_held_before_is_held_after_a_click_with_it(screen: XServer, hand: Hand) -> None:
    with RawWindow(screen) as window:
        act(
            hand,
            {"action": "key_down", "keys": "ctrl"},
            {"action": "click", "x": 5, "y": 5, "modifiers": ["ctrl", "shift"]},
            {"action": "click"},
            {"action": "key_up", "keys": "ctrl"},
            {"action": "click"},
        )
        states = [event.state & 0xFF for event in window.all("press")]
    assert states == [SHIFT | CONTROL, CONTROL, 0]


def test_press_and_release_are_8_ms_of_server_time_apart(screen: XServer, hand: Hand) -> None:
    with RawWindow(screen) as window:
        for number in range(40):
            act(hand, {"action": "click", "x": number, "y": 5, "count": 1 + number % 3}, {"action": "mouse_down"},
                {"action": "mouse_up"})  # fmt: skip
        events = window.all("press", "release")
    presses, releases = events[::2], events[1::2]
    assert {event.kind for event in presses} == {"press"}
    assert len(presses) == len(releases) >= 80
    assert min(releases[n].time - presses[n].time for n in range(len(presses))) >= 8


def test_a_toolkit_takes_a_double_click_for_one(openbox_display: XServer) -> None:
    with probe_window(openbox_display) as probe, Hand(openbox_display.display) as hand:
        for number, count in enumerate((1, 2, 3)):
            act(hand, {"action": "click", "x": 100 + 100 * number, "y": 120, "count": count})
        clicks = [(event["is"], event["at"][0]) for event in probe.all("press", "double", "triple")]
    assert clicks.count(("press", 100)) == 1
    assert [click for click in clicks if click[0] != "press"] == [("double", 200), ("double", 300), ("triple", 300)]


def test_a_left_handed_mapping_is_seen_through(screen: XServer) -> None:
    subprocess.run(["xmodmap", "-e", "pointer = 3 2 1"], env=screen.env, check=True, capture_output=True, timeout=30)
    with RawWindow(screen) as window, Hand(screen.display) as hand:
        act(hand, {"action": "click", "x": 5, "y": 5}, {"action": "click", "button": "right"})
        assert [event.detail for event in window.all("press")] == [1, 3]
        act(hand, {"action": "drag", "path": [[5, 5], [50, 50]]}, {"action": "mouse_down"})
        assert pressed(screen) == ["button 1"]
        act(hand, {"action": "mouse_up"})


def test_a_button_nothing_is_mapped_to(screen: XServer, hand: Hand) -> None:
    numbers = subprocess.run(["xmodmap", "-pp"], env=screen.env, check=True, capture_output=True, timeout=30).stdout
    count = len([line for line in numbers.decode().splitlines() if line.split()[:1] and line.split()[0].isdigit()])
    script = "pointer = " + " ".join(["1", "2", "0", *map(str, range(4, count + 1))])
    subprocess.run(["xmodmap", "-e", script], env=screen.env, check=True, capture_output=True, timeout=30)
    answer, _ = hand.act({"actions": [{"action": "click", "button": "right"}, {"action": "click"}]})
    first, second = answer["results"]
    assert first["status"] == "failed"
    assert "no button of this display's pointer acts as button 3" in first["error"]
    assert (second["status"], answer["sent"]) == ("skipped", "none")


class TestDrag:
    def test_it_presses_at_the_start_moves_and_releases_at_the_end(self, screen: XServer, hand: Hand) -> None:
        with RawWindow(screen) as window:
            (result,) = act(hand, {"action": "drag", "path": [[60, 90], [300, 250]]})
            events = window.all()
        assert result["path"] == [[60, 90], [300, 250]]
        kinds = [event.kind for event in events]
        press, release = events[kinds.index("press")], events[kinds.index("release")]
        assert (press.at, release.at) == ((60, 90), (300, 250))
        dragged = [event for event in events if event.kind == "motion" and event.state & 0x100]
        assert len(dragged) >= 10
        assert [event.at for event in dragged] == sorted(event.at for event in dragged)
        assert dragged[-1].at == (300, 250)
        assert press.time < dragged[0].time < dragged[-1].time <= release.time

    def test_a_toolkit_sees_the_drag(self, openbox_display: XServer) -> None:
        with probe_window(openbox_display) as probe, Hand(openbox_display.display) as hand:
            act(hand, {"action": "drag", "path": [[60, 90], [300, 250]]})
            (press,), (release,) = probe.all("press"), probe.all("release")
            moves = [event for event in probe.all("motion") if event["state"] & 0x100]
        assert (press["at"], release["at"]) == ([60, 90], [300, 250])
        assert len(moves) >= 5

    @pytest.mark.parametrize(("button", "number"), [("middle", 2), ("right", 3)])
    def test_with_another_button_and_a_modifier(self, screen: XServer, hand: Hand, button: str, number: int) -> None:
        path = [[10, 10], [60, 10]]
        with RawWindow(screen) as window:
            act(hand, {"action": "drag", "path": path, "button": button, "modifiers": ["shift"]})
            dragged = [event for event in window.all("motion") if event.state & BUTTON_BITS[number]]
        assert len(dragged) >= 10
        assert all(event.state & SHIFT for event in dragged)

    def test_through_every_point_of_the_path(self, screen: XServer, hand: Hand) -> None:
        path = [[100, 100], [400, 100], [400, 400], [100, 400], [100, 100]]
        with RawWindow(screen) as window:
            act(hand, {"action": "drag", "path": path})
            seen = [list(event.at) for event in window.all("press", "motion", "release")]
        at = 0
        for point in path:
            at = seen.index(point, at)

    def test_a_deadline_shorter_than_the_drag_is_none_of_its_business(self, screen: XServer) -> None:
        path = [[10 * n, 10 * n % 700] for n in range(60)]
        with RawWindow(screen) as window, Hand(screen.display, timeout=0.2) as hand:
            act(hand, {"action": "drag", "path": path}, {"action": "scroll", "dy": 100})
            assert len([event for event in window.all("press") if event.detail == 5]) == 100

    @pytest.mark.parametrize("points", [2, 3, 7, 11, 50])
    def test_there_are_ten_steps_or_more_on_any_path(self, points: int) -> None:
        path = [(700 * n, 300 * n) for n in range(points)]
        steps = _steps(path)
        assert len(steps) >= 10
        assert [step for step in steps if step in path] == path[1:]

    def test_a_path_that_stays_where_it_is(self, screen: XServer, hand: Hand) -> None:
        with RawWindow(screen) as window:
            act(hand, {"action": "drag", "path": [[50, 50], [50, 50]]})
            assert [event.at for event in window.all("press", "release")] == [(50, 50)] * 2


class TestScroll:
    @pytest.mark.parametrize(
        ("scroll", "button", "times"),
        [
            ({"dy": 3}, 5, 3),
            ({"dy": -1}, 4, 1),
            ({"dx": -2}, 6, 2),
            ({"dx": 4}, 7, 4),
            ({"dy": 250, "unit": "pixels"}, 5, 2),
            ({"dy": -5, "unit": "pixels"}, 4, 1),
            ({"dy": 100}, 5, 100),
        ],
    )
    def test_notches_are_presses_of_the_wheels_buttons(
        self, screen: XServer, hand: Hand, scroll: dict[str, Any], button: int, times: int
    ) -> None:
        with RawWindow(screen) as window:
            (result,) = act(hand, {"action": "scroll", "x": 40, "y": 50, **scroll})
            events = window.all("press", "release")
        assert [(event.kind, event.detail) for event in events] == [("press", button), ("release", button)] * times
        assert {event.at for event in events} == {(40, 50)}
        assert sum(map(abs, result["notches"])) == times

    def test_both_ways_at_once_and_a_modifier(self, screen: XServer, hand: Hand) -> None:
        with RawWindow(screen) as window:
            act(hand, {"action": "scroll", "dx": 1, "dy": -2, "modifiers": ["ctrl"]})
            presses = window.all("press")
        assert [event.detail for event in presses] == [4, 4, 7]
        assert all(event.state & CONTROL for event in presses)

    def test_the_space_does_not_scale_the_notches(self, screen: XServer, hand: Hand) -> None:
        with RawWindow(screen) as window:
            act(hand, {"action": "scroll", "x": 100, "y": 100, "dy": 3}, space={"picture": [320, 200]})
            presses = window.all("press")
        assert [event.detail for event in presses] == [5] * 3
        assert presses[0].at == (401, 402)


class TestMoving:
    def test_to_where_it_is_already(self, screen: XServer, hand: Hand) -> None:
        for _ in range(2):
            (result,) = act(hand, {"action": "move", "x": 77, "y": 88})
            assert result["point"] == [77, 88]

    def test_a_space_of_another_size(self, screen: XServer, hand: Hand) -> None:
        spot = {"action": "move", "x": 319, "y": 0}
        (result,) = act(hand, spot, space={"picture": [320, 200]})
        assert result["point"] == [1279, 0]
        (result,) = act(hand, {"action": "move", "x": 1000, "y": 500}, space={"grid": 1000})
        assert result["point"] == [1279, 400]

    def test_a_confined_pointer_is_an_error(self, screen: XServer, hand: Hand) -> None:
        with RawWindow(screen) as window:
            confine(window)
            answer, _ = hand.act({"actions": [{"action": "click", "x": 500, "y": 500}, {"action": "click"}]})
            assert window.all("press") == []
        first, second = answer["results"]
        assert "the pointer went to (" in first["error"]
        assert "and not to (500, 500)" in first["error"]
        assert (first["status"], second["status"], answer["sent"]) == ("failed", "skipped", "part")

    def test_the_calls_themselves_say_it_too(self, screen: XServer, hand: Hand) -> None:
        with RawWindow(screen) as window:
            confine(window)
            with pytest.raises(ActionFailed, match="another program confines or moves it"):
                hand.display.pointer.move((500, 500))


def confine(window: RawWindow) -> None:
    """Grab the pointer and confine it to a small window (X Window System Protocol, GrabPointer)."""
    import struct

    from deskhand.hand.x11 import core

    small = core.create_window(window.conn, 10, 10, 40, 40)
    core.map_window(window.conn, small)
    body = struct.pack("=IHBBIII", small, 0, 1, 1, small, 0, 0)
    assert window.conn.call(26, 0, body)[1] == 0
    window.forget()
