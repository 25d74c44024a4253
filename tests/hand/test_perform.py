"""Every kind of action, carried out on a real desktop, and the facts its result carries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.probes import Probe, keycode, pressed, probe_window
from tests.toolkits import ToolkitWindow, toolkit_window

from deskhand.hand import perform
from deskhand.hand.actions import KINDS
from deskhand.hand.hand import Hand
from deskhand.testing import XServer


@pytest.fixture
def hand(openbox_display: XServer) -> Iterator[Hand]:
    with Hand(openbox_display.display) as hand:
        yield hand
    assert pressed(openbox_display) == []


@pytest.fixture
def probe(openbox_display: XServer) -> Iterator[Probe]:
    with probe_window(openbox_display, "probe", "400x300+100+100") as probe:
        yield probe


@pytest.fixture
def text(openbox_display: XServer, tmp_path: Path) -> Iterator[ToolkitWindow]:
    with toolkit_window(openbox_display, "gtk", tmp_path / "log") as window:
        yield window


def act(hand: Hand, *actions: dict[str, Any]) -> list[dict[str, Any]]:
    answer, _ = hand.act({"actions": list(actions)})
    assert answer["ok"], answer
    return list(answer["results"])


def window_of(hand: Hand, title: str) -> dict[str, Any]:
    return next(window for window in hand.windows() if window["title"] == title)


def test_every_kind_has_its_handler() -> None:
    assert set(perform._HANDLERS) == set(KINDS)


def test_a_chord(hand: Hand, probe: Probe) -> None:
    (result,) = act(hand, {"action": "key", "keys": "ctrl+shift+t"})
    assert result["title"] == "probe"
    assert result["window"] == window_of(hand, "probe")["id"]
    assert [event["keysym"] for event in probe.all("key")] == ["Control_L", "Shift_L", "T"]
    assert [event["keysym"] for event in probe.all("up")] == ["T", "Shift_L", "Control_L"]


def test_a_repeated_key(hand: Hand, probe: Probe) -> None:
    act(hand, {"action": "key", "keys": "Return", "repeat": 5})
    assert [event["keysym"] for event in probe.all("key")] == ["Return"] * 5


def test_a_held_key_repeats_and_says_so(hand: Hand, probe: Probe) -> None:
    (result,) = act(hand, {"action": "hold_key", "keys": "x", "seconds": 1.2})
    assert result["repeats"] is True
    keys = [event for event in probe.all("key") if event["keysym"] == "x"]
    assert len(keys) > 1
    assert probe.all("up")[-1]["time"] - keys[0]["time"] >= 1200


def test_keys_that_stay_down_over_batches(openbox_display: XServer, hand: Hand, probe: Probe) -> None:
    (result,) = act(hand, {"action": "key_down", "keys": "shift"})
    assert result["pressed"] == ["Shift_L"]
    act(hand, {"action": "key", "keys": "a"}, {"action": "click", "x": 200, "y": 200})
    (press,) = probe.all("press")
    assert press["state"] & 1
    assert [event["keysym"] for event in probe.all("key")] == ["Shift_L", "A"]
    assert pressed(openbox_display) == [f"key {keycode(openbox_display, 0xFFE1)}"]
    (result,) = act(hand, {"action": "key_up", "keys": "shift"})
    assert result["released"] == ["Shift_L"]
    assert pressed(openbox_display) == []


def test_a_drag_over_batches(hand: Hand, probe: Probe) -> None:
    act(hand, {"action": "mouse_down", "x": 150, "y": 200})
    act(hand, {"action": "move", "x": 250, "y": 300})
    act(hand, {"action": "mouse_up"})
    assert [event["at"] for event in probe.all("press", "release")] == [[150, 200], [250, 300]]
    assert [event["state"] & 0x100 for event in probe.all("motion") if event["at"] == [250, 300]] == [0x100]


@pytest.mark.parametrize("content", ["-1.5 x", "--help", "$(id) $HOME `x` 'a' \"b\" \\ %s", "line1\nline2\tend"])
def test_text_is_exact(hand: Hand, text: ToolkitWindow, content: str) -> None:
    (result,) = act(hand, {"action": "type", "text": content})
    assert result["title"] == "gtk text"
    assert result["typed"] == len(content)
    assert text.shows(content), text.text


def test_text_by_the_clipboard_when_asked(hand: Hand, text: ToolkitWindow) -> None:
    (result,) = act(hand, {"action": "type", "text": "Grüße, 世界", "method": "paste"})
    assert result["method"] == "paste"
    assert text.shows("Grüße, 世界"), text.text


def test_secret_text_is_in_no_answer(hand: Hand, text: ToolkitWindow) -> None:
    for method in ("keys", "paste"):
        results = act(hand, {"action": "type", "text": "hunter2", "secret": True, "method": method})
        assert "hunter2" not in str(results)
    assert text.shows("hunter2hunter2"), text.text


def test_the_clipboard(hand: Hand) -> None:
    get = {"action": "clipboard_get"}
    results = act(hand, get, {"action": "clipboard_set", "text": "α\nβ"}, get)
    assert (results[0]["text"], results[2]["text"]) == (None, "α\nβ")


def test_windows_are_focused_resized_and_closed(openbox_display: XServer, hand: Hand, probe: Probe) -> None:
    with probe_window(openbox_display, "second", "200x200+600+100"):
        first = window_of(hand, "probe")["id"]
        (focused,) = act(hand, {"action": "focus", "window": first})
        assert (focused["window"], focused["focused"]) == (first, True)
        assert window_of(hand, "probe")["active"]
        (key,) = act(hand, {"action": "key", "keys": "a"})
        assert key["window"] == first
        resize = {"action": "resize", "window": first, "x": 300, "y": 310, "width": 222, "height": 111}
        (resized,) = act(hand, resize)
        assert resized["window"]["rect"] == window_of(hand, "probe")["rect"]
        assert resized["window"]["rect"][2:] == [222, 111]
        (closed,) = act(hand, {"action": "close", "window": first})
        assert (closed["window"], closed["closed"]) == (first, True)
        assert [window["title"] for window in hand.windows()] == ["second"]


@pytest.mark.parametrize("action", [{"action": "focus"}, {"action": "close"}, {"action": "resize", "width": 300}])
def test_a_window_that_is_not_there(hand: Hand, action: dict[str, Any]) -> None:
    answer, _ = hand.act({"actions": [{**action, "window": 0x7FFFFFFF}]})
    assert answer["results"][0]["status"] == "failed"
    assert answer["sent"] == "none"
    assert "\n" not in answer["results"][0]["error"]


def test_waiting_for_a_window_that_is_there_already(hand: Hand, probe: Probe) -> None:
    (result,) = act(hand, {"action": "wait_window", "title": "probe", "timeout": 0, "focused": True})
    assert result["window"]["id"] == window_of(hand, "probe")["id"]


def test_where_the_pointer_is(hand: Hand) -> None:
    results = act(hand, {"action": "move", "x": 0, "y": 0}, {"action": "cursor_position"})
    assert results[1]["point"] == [0, 0]
