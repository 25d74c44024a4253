"""Preflight: a batch with an error sends nothing, whatever the error and wherever it stands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.probes import RawWindow, pressed

from deskhand.hand.actions import KINDS
from deskhand.hand.answering import NO_DISPLAY, REFUSED, answer
from deskhand.hand.envelope import parse_batch
from deskhand.hand.errors import BatchRefused
from deskhand.hand.hand import Hand
from deskhand.hand.preflight import prepare
from deskhand.testing import XServer, xvfb

GOOD: list[dict[str, Any]] = [
    {"action": "move", "x": 5, "y": 5},
    {"action": "click", "x": 9, "y": 9},
    {"action": "key", "keys": "a"},
    {"action": "type", "text": "abc"},
    {"action": "scroll", "dy": 1},
    {"action": "drag", "path": [[1, 1], [9, 9]]},
    {"action": "key_down", "keys": "shift"},
]
#: What only preflight can find, and a part of its sentence. The screen has 1280x800 pixels.
BAD: list[tuple[dict[str, Any], str]] = [
    ({"action": "click", "x": 1280, "y": 5}, "(1280, 5) is outside the 1280x800 screen: use x 0-1279, y 0-799"),
    ({"action": "click", "x": 5, "y": -1}, "(5, -1) is outside the 1280x800 screen"),
    ({"action": "move", "x": 1e9, "y": 5}, "(1000000000, 5) is outside"),
    ({"action": "move", "x": 1279.6, "y": 5}, "(1279.6, 5) is outside"),
    ({"action": "mouse_down", "x": 5, "y": 800}, "is outside"),
    ({"action": "mouse_up", "x": 5, "y": 800}, "is outside"),
    ({"action": "scroll", "x": 5000, "y": 5, "dy": 1}, "is outside"),
    ({"action": "drag", "path": [[1, 1], [5000, 5]]}, "is outside"),
    ({"action": "zoom", "region": [0, 0, 1281, 5]}, "is not inside the 1280x800 screen"),
    ({"action": "zoom", "region": [5, 5, 5, 9]}, "is not inside the 1280x800 screen"),
    ({"action": "key", "keys": "ctrl+nosuch"}, "nosuch"),
    ({"action": "key", "keys": "ctrl+"}, "ctrl+"),
    ({"action": "key", "keys": "--no-such"}, "--no-such"),
    ({"action": "hold_key", "keys": "nosuch", "seconds": 1}, "nosuch"),
    ({"action": "key_down", "keys": "nosuch"}, "nosuch"),
    ({"action": "key_up", "keys": "nosuch"}, "nosuch"),
    ({"action": "click", "modifiers": ["nosuch"]}, "nosuch"),
    ({"action": "scroll", "dy": 1, "modifiers": ["ctrl+nosuch"]}, "nosuch"),
    ({"action": "click", "modifiers": ["ctrl", "Return"]}, "Return is no modifier"),
    ({"action": "drag", "path": [[1, 1], [5, 5]], "modifiers": ["capslock"]}, "Caps_Lock is no modifier"),
    ({"action": "type", "text": "a\x1b[31m"}, "character 2 of the text is a control character"),
    ({"action": "type", "text": "a\ud800"}, "character 2 of the text is half of a surrogate pair"),
    ({"action": "clipboard_set", "text": "ab\udfff"}, "character 3 of the text is half of a surrogate pair"),
    ({"action": "launch", "app": "gnome-calculator-h6"}, "unknown application 'gnome-calculator-h6'"),
    ({"action": "launch", "app": "../x"}, "../x"),
    ({"action": "launch", "app": "--help"}, "--help"),
    ({"action": "launch", "app": "a\nb"}, "launch"),
    ({"action": "quit", "app": "../x"}, "../x"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[XServer]:
    with xvfb() as server:
        yield server
        assert pressed(server) == []


@pytest.fixture(scope="module")
def hand(server: XServer) -> Iterator[Hand]:
    with Hand(server.display) as hand:
        yield hand


@pytest.fixture(scope="module")
def window(server: XServer) -> Iterator[RawWindow]:
    with RawWindow(server) as window:
        yield window


@pytest.mark.parametrize(("bad", "sentence"), BAD)
@pytest.mark.parametrize("before", [0, 3])
def test_a_wrong_action_is_refused_and_nothing_is_sent(
    hand: Hand, window: RawWindow, bad: dict[str, Any], sentence: str, before: int
) -> None:
    window.forget()
    actions = [*GOOD[:before], bad, *GOOD[3:]]
    reply = answer(hand, {"actions": actions})
    assert (reply.status, reply.answer["ok"], reply.answer["sent"]) == (REFUSED, False, "none")
    assert reply.answer["index"] == before
    assert sentence in reply.answer["error"]
    assert "\n" not in reply.answer["error"]
    statuses = [result["status"] for result in reply.answer["results"]]
    assert statuses == ["skipped"] * before + ["failed"] + ["skipped"] * (len(actions) - before - 1)
    assert window.all() == []


def test_every_position_is_checked_in_the_batchs_space(hand: Hand, window: RawWindow) -> None:
    window.forget()
    for space, bad in (({"picture": [640, 400]}, [640, 5]), ({"grid": 999}, [1000, 5]), ({"grid": 1000}, [5, 1001])):
        request = {"actions": [{"action": "click", "x": bad[0], "y": bad[1]}], "space": space}
        with pytest.raises(BatchRefused, match="is outside the"):
            hand.act(request)
    assert window.all() == []


@pytest.mark.parametrize("picture", [{"region": [0, 0, 1281, 5]}, {"region": [5, 5, 5, 5]}])
def test_the_pictures_region_is_checked(hand: Hand, window: RawWindow, picture: dict[str, Any]) -> None:
    window.forget()
    with pytest.raises(BatchRefused, match=r"picture: the region .* is not inside"):
        hand.act({"actions": [GOOD[1]], "picture": picture})
    assert window.all() == []


def test_an_unknown_application_names_the_near_ones(server: XServer, tmp_path: Path) -> None:
    entries = tmp_path / "applications"
    entries.mkdir()
    (entries / "org.example.Sketch.desktop").write_text("[Desktop Entry]\nType=Application\nName=Sketch\nExec=true\n")
    environment = {"XDG_DATA_HOME": str(tmp_path), "XDG_DATA_DIRS": os.devnull, "HOME": str(tmp_path)}
    batch = parse_batch({"actions": [{"action": "launch", "app": "Sketh"}]})
    with pytest.raises(BatchRefused, match=r"^action 0 \(launch\): unknown application 'Sketh'.*Sketch") as caught:
        prepare(batch, (1280, 800), None, environment)
    assert caught.value.facts["near"]
    (step,) = prepare(
        parse_batch({"actions": [{"action": "launch", "app": "sketch"}]}), (1280, 800), None, environment
    ).steps
    assert step.entry is not None
    assert step.entry.id == "org.example.Sketch"


def test_bad_input_is_refused_where_there_is_no_display_at_all() -> None:
    hand = Hand(":4711")
    assert answer(hand, {"actions": []}).status == REFUSED
    assert answer(hand, {"actions": [{"action": "key", "keys": 5}]}).status == REFUSED
    assert answer(hand, {"actions": [GOOD[0]]}).status == NO_DISPLAY


#: Any action with random values in some fields, in most cases a wrong one.
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.lists(st.integers(), max_size=4)
)
WILD = st.builds(
    lambda kind, fields: {"action": kind, **fields},
    st.sampled_from(sorted(KINDS)),
    st.dictionaries(st.sampled_from(["x", "y", "keys", "text", "path", "dy", "app", "region", "window", "z"]), VALUES),
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.filter_too_much])
@given(wild=st.lists(WILD, max_size=4), place=st.integers(0, 4), bad=st.sampled_from([bad for bad, _ in BAD]))
def test_one_wrong_action_among_any_others_is_enough(
    hand: Hand, window: RawWindow, wild: list[dict[str, Any]], place: int, bad: dict[str, Any]
) -> None:
    assume(place <= len(wild))
    window.forget()
    with pytest.raises(BatchRefused) as caught:
        hand.act({"actions": [*wild[:place], bad, *wild[place:]]})
    assert caught.value.sent == "none"
    assert window.all() == []
