"""What the page is made of: an action in words, where a mark stands, and traces of every shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand.errors import SetupError
from deskhand.trace import TraceRecorder, write_page
from deskhand.trace.marks import Space, View, marks_of, zoomed_region
from deskhand.trace.steps import Steps, read_events
from deskhand.trace.words import action_in_words


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"action": "click", "x": 640, "y": 412}, "click (640, 412)"),
        ({"action": "click", "x": 0, "y": 0, "count": 2}, "double click (0, 0)"),
        ({"action": "click", "button": "right", "modifiers": ["ctrl"]}, "right click at the pointer with ctrl"),
        ({"action": "click", "x": 1, "y": 2, "count": 9}, "9× click (1, 2)"),
        ({"action": "drag", "path": [[1, 2], [3, 4], [5, 6]]}, "drag (1, 2) → (5, 6) over 1 more"),
        ({"action": "drag", "path": [[1, 2]], "button": "middle"}, "middle drag (1, 2) → (1, 2)"),
        ({"action": "drag", "path": "x"}, 'drag "x"'),
        ({"action": "scroll", "x": 5, "y": 6, "dy": 3}, "scroll down 3 (5, 6)"),
        ({"action": "scroll", "dx": -2, "dy": -1}, "scroll up 1 and left 2 at the pointer"),
        ({"action": "scroll", "dy": 200, "unit": "pixels"}, "scroll down 200 px at the pointer"),
        ({"action": "type", "text": "hello\tyou\n"}, 'type "hello\\tyou\\n"'),
        ({"action": "type", "text": "hunter2", "secret": True}, "type a secret"),
        ({"action": "type", "text": "a", "method": "paste"}, 'type "a" by pasting'),
        ({"action": "key", "keys": "ctrl++", "repeat": 3}, "press ctrl++ ×3"),
        ({"action": "hold_key", "keys": "shift", "seconds": 2}, "hold shift for 2 s"),
        ({"action": "wait_window", "title": "Save", "focused": True}, 'wait for a window title "Save", focused'),
        ({"action": "launch", "app": "Mousepad"}, "launch Mousepad"),
        ({"action": "quit", "app": "xterm", "force": True}, "quit xterm by force"),
        ({"action": "close", "window": 255}, "close window 0xff"),
        ({"action": "zoom", "region": [1, 2, 3, 4]}, "zoom (1, 2) – (3, 4)"),
        ({"action": "screenshot"}, "take a picture"),
        ({"action": "fly", "to": 1}, '{"action": "fly", "to": 1}'),
        (["click"], '["click"]'),
        (None, "null"),
    ],
)
def test_an_action_in_words(action: Any, words: str) -> None:
    assert action_in_words(action) == words


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["click", "drag"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = ["click", "drag", "scroll", "type", "key", "zoom", "quit", "close", "resize", "wait_window", "hold_key", "move"]
FIELDS = ["x", "y", "count", "button", "modifiers", "path", "dx", "dy", "text", "keys", "repeat", "region", "window"]
any_action = st.builds(
    lambda name, fields: {**fields, "action": name},
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(FIELDS), anything, max_size=6),
)


@given(action=any_action | anything)
@settings(max_examples=400, deadline=None)
def test_no_action_is_too_odd_for_words(action: Any) -> None:
    words = action_in_words(action)
    assert len(words) <= 100
    assert "\n" not in words


@given(
    actions=st.lists(any_action | anything, max_size=3),
    space=anything,
    more=st.dictionaries(
        st.sampled_from(["ok", "results", "moving", "settle", "window", "picture", "error", "sent"]), anything
    ),
)
@settings(max_examples=200, deadline=None)
def test_no_batch_is_too_odd_for_the_page(tmp_path_factory: Any, actions: Any, space: Any, more: Any) -> None:
    directory = tmp_path_factory.mktemp("odd")
    trace = TraceRecorder(directory, goal="g")
    for envelope in ({"actions": actions, "space": space}, {"actions": space}):
        trace.batch(envelope, more, b"x", "png", 0, 0)
    trace.finish("done")
    assert len(Steps(*read_events(directory / "trace.jsonl")).steps) == 3


@pytest.mark.parametrize(
    ("space", "asked", "point"),
    [
        ("screen", (0, 0), (0.5, 0.5)),
        ("screen", (1279, 799), (1279.5, 799.5)),
        ({"picture": [640, 400]}, (320, 200), (640.5, 400.5)),
        ({"grid": 999}, (999, 999), (1279.5, 799.5)),
        ({"grid": 1000}, (0, 1000), (0.5, 799.5)),
    ],
)
def test_a_position_of_every_space_on_the_picture(
    space: Any, asked: tuple[int, int], point: tuple[float, float]
) -> None:
    envelope = {"actions": [{"action": "click", "x": asked[0], "y": asked[1]}]}
    (mark,) = marks_of(envelope, {}, Space(space, (1280, 800)), View())
    assert mark["points"] == [pytest.approx(point)]
    assert mark["status"] == "none"


def test_the_place_that_was_reported_wins() -> None:
    envelope = {"actions": [{"action": "click"}, {"action": "move", "x": 1, "y": 1}, {"action": "type", "text": ""}]}
    answer = {"results": [{"status": "ok", "point": [10, 20]}, {"status": "failed", "point": [30, 40]}]}
    marks = marks_of(envelope, answer, Space("screen", None), View(left=10, top=0, scale=2))
    assert [(mark["n"], mark["points"], mark["status"]) for mark in marks] == [
        (1, [(1.0, 41.0)], "ok"),
        (2, [(41.0, 81.0)], "failed"),
    ]


def test_without_a_screen_size_nothing_is_drawn_at_a_guess() -> None:
    envelope = {"actions": [{"action": "click", "x": 1, "y": 1}, {"action": "zoom", "region": [0, 0, 9, 9]}]}
    assert marks_of(envelope, {}, Space({"grid": 999}, None), View()) == []


def test_the_region_of_a_zoom_is_what_the_next_marks_stand_on(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g", facts={"screen": [1280, 800]})
    zoom = {"actions": [{"action": "zoom", "region": [50, 50, 100, 150]}], "space": {"grid": 1000}}
    facts = {"width": 256, "height": 160, "scale": 2.0}
    trace.batch(zoom, {"ok": True, "results": [{"status": "ok"}], "picture": facts}, b"zoomed", "png", 0, 0)
    trace.batch({"actions": [{"action": "click", "x": 100, "y": 100}]}, {"ok": True}, None, "png", 0, 0)
    trace.batch({"actions": [{"action": "click", "x": 9, "y": 9}]}, {"ok": True}, None, "png", 0, 0, before=b"all")
    steps = Steps(*read_events(tmp_path / "trace.jsonl")).steps
    left, top = 50 * 1279 / 1000, 50 * 799 / 1000
    assert steps[1]["marks"][0]["points"] == [pytest.approx(((100.5 - left) * 2, (100.5 - top) * 2))]
    assert steps[2]["marks"][0]["points"] == [(9.5, 9.5)]


def test_a_zoom_that_failed_shows_the_whole_screen() -> None:
    envelope = {"actions": [{"action": "zoom", "region": [0, 0, 9, 9]}]}
    assert zoomed_region(envelope, {"results": [{"status": "failed"}]}, Space("screen", None)) is None
    assert zoomed_region(envelope, {"results": [{"status": "ok"}]}, Space("screen", None)) == [0, 0, 9, 9]


def test_words_stand_with_the_step_that_follows(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    trace.say("one")
    trace.say("two")
    trace.batch({"actions": []}, {"ok": False, "sent": "none", "error": "an empty batch"}, None, "png", 0, 0)
    trace.say("at the end")
    steps = Steps(*read_events(tmp_path / "trace.jsonl")).steps
    assert [(step["kind"], step["said"], step["badge"]) for step in steps] == [
        ("batch", ["one", "two"], "refused"),
        ("say", ["at the end"], "none"),
    ]


def test_a_huge_batch_and_a_huge_answer_are_cut_in_the_page_only(tmp_path: Path) -> None:
    trace = TraceRecorder(tmp_path, goal="g")
    many = {"actions": [{"action": "click", "x": 1, "y": 1}] * 10_000}
    trace.batch(many, {"ok": False, "sent": "none", "error": "more than 100 actions"}, None, "png", 0, 0)
    trace.tool("read", {"text": "x" * 1_000_000, "list": list(range(50_000))})
    page = trace.finish("failed")
    assert page.stat().st_size < 250_000
    assert (tmp_path / "trace.jsonl").stat().st_size > 1_500_000
    step = Steps(*read_events(tmp_path / "trace.jsonl")).steps[0]
    assert len(step["actions"]) == 100
    assert step["more_actions"] == 9_900


def test_a_directory_without_a_trace_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="holds no trace"):
        write_page(tmp_path)
