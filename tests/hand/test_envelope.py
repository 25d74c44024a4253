"""The envelope of a batch: what is taken, and what is refused with a sentence that helps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand.actions import KINDS
from deskhand.hand.envelope import Batch, PictureWish, SettleWish, parse_batch
from deskhand.hand.errors import BatchRefused
from deskhand.hand.resident import read_request

LOOK = {"action": "screenshot"}


def refusal(request: Any) -> str:
    with pytest.raises(BatchRefused) as caught:
        parse_batch(request)
    assert caught.value.sent == "none"
    text = str(caught.value)
    assert "\n" not in text
    return text


def one_line(error: BatchRefused) -> None:
    assert "\n" not in str(error)
    assert len(str(error)) < 1000


def test_the_defaults() -> None:
    batch = parse_batch({"actions": [LOOK]})
    assert (batch.space, batch.picture) == ("screen", None)
    assert batch.settle == SettleWish("quiet", 2.0, False)
    assert (batch.expect.sequence, batch.expect.window) == (None, None)


def test_everything_that_can_be_said() -> None:
    batch = parse_batch(
        {
            "actions": [LOOK],
            "space": {"picture": [640, 400]},
            "expect": {"sequence": 3, "window": 0xFFFFFFFF},
            "settle": {"mode": "fixed", "timeout": 0.5, "strict": True},
            "picture": {"format": "jpeg", "max_edge": 800, "region": [0, 0, 5, 5], "cursor": True},
        }
    )
    assert isinstance(batch, Batch)
    assert batch.picture == PictureWish("jpeg", 800, [0, 0, 5, 5], True)
    assert batch.settle == SettleWish("fixed", 0.5, True)
    assert (batch.expect.sequence, batch.expect.window) == (3, 0xFFFFFFFF)


def test_a_picture_can_be_asked_for_in_one_word() -> None:
    assert parse_batch({"actions": [LOOK], "picture": True}).picture == PictureWish()
    assert parse_batch({"actions": [LOOK], "picture": {}}).picture == PictureWish()
    assert parse_batch({"actions": [LOOK], "picture": False}).picture is None


@pytest.mark.parametrize("request_", [None, [], "click", 5, True, [LOOK]])
def test_a_batch_is_an_object(request_: Any) -> None:
    assert "a batch is an object" in refusal(request_)


@pytest.mark.parametrize("actions", [None, {}, "click", 3, ()])
def test_actions_are_a_list(actions: Any) -> None:
    assert "needs a list of actions" in refusal({"actions": actions})


def test_a_batch_without_actions_says_so() -> None:
    assert "needs a list of actions" in refusal({})


@pytest.mark.parametrize("count", [0, 101, 10_000])
def test_a_batch_has_1_to_100_actions(count: int) -> None:
    assert f"1 to 100 actions, not {count}" in refusal({"actions": [LOOK] * count})


def test_100_actions_are_taken() -> None:
    assert len(parse_batch({"actions": [LOOK] * 100}).actions) == 100


@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (None, "must be an object"),
        ("click", "must be an object"),
        ({}, "must be an object"),
        ({"action": None}, "must be an object"),
        ({"action": 5}, "must be an object"),
        ({"action": ["click"]}, "must be an object"),
        ({"action": "clik"}, "there is no action 'clik': did you mean 'click'?"),
        ({"action": "frobnicate"}, "use one of click, move"),
        ({"action": "x" * 300}, "there is no action 'xxx"),
        ({"action": "Click"}, "did you mean 'click'?"),
        ({"action": "click", "buton": "left"}, "has no field 'buton': did you mean 'button'?"),
        ({"action": "screenshot", "x": 1}, "has no field 'x': it takes none"),
        ({"action": "zoom", "region": [1, 2, 3]}, "region must have 4 items, not 3"),
        ({"action": "click", "x\ny": 1}, "has no field"),
        ({"action": "click", "x": 5}, "needs both x and y"),
        ({"action": "click", "y": 5}, "needs both x and y"),
        ({"action": "click", "x": 5, "y": None}, "needs both x and y"),
        ({"action": "move"}, "needs x"),
        ({"action": "move", "x": 5}, "needs y"),
        ({"action": "move", "x": None, "y": 5}, "x must be a number"),
        ({"action": "move", "x": float("nan"), "y": 5}, "x must be from"),
        ({"action": "move", "x": float("inf"), "y": 5}, "x must be from"),
        ({"action": "move", "x": 10**400, "y": 5}, "x must be from"),
        ({"action": "move", "x": "5", "y": 5}, "x must be a number"),
        ({"action": "move", "x": True, "y": 5}, "x must be a number"),
        ({"action": "move", "x": [5], "y": 5}, "x must be a number"),
        ({"action": "click", "button": "LEFT"}, "button must be one of left, middle, right, back, forward"),
        ({"action": "click", "button": 1}, "button must be one of"),
        ({"action": "click", "button": ["left"]}, "button must be one of"),
        ({"action": "click", "button": None}, "button must be one of"),
        ({"action": "click", "count": 0}, "count must be from 1 to 3, not 0"),
        ({"action": "click", "count": 4}, "count must be from 1 to 3, not 4"),
        ({"action": "click", "count": 1.5}, "count must be a whole number, not 1.5"),
        ({"action": "click", "count": True}, "count must be a number"),
        ({"action": "click", "modifiers": "ctrl"}, "modifiers must be a list"),
        ({"action": "click", "modifiers": [1]}, "modifiers must be a string"),
        ({"action": "click", "modifiers": ["ctrl"] * 9}, "modifiers must have 0 to 8 items"),
        ({"action": "drag", "path": []}, "path must have 2 to 1000 items, not 0"),
        ({"action": "drag", "path": [[1, 2]]}, "path must have 2 to 1000 items, not 1"),
        ({"action": "drag", "path": [[1, 2]] * 1001}, "path must have 2 to 1000 items"),
        ({"action": "drag", "path": [[1, 2], [3]]}, "path must hold [x, y] pairs"),
        ({"action": "drag", "path": [[1, 2], {"x": 3, "y": 4}]}, "path must hold [x, y] pairs"),
        ({"action": "drag", "path": [[1, 2], [3, "4"]]}, "path must be a number"),
        ({"action": "drag", "path": "12"}, "path must be a list"),
        ({"action": "scroll"}, "needs dx or dy"),
        ({"action": "scroll", "dy": 0}, "needs dx or dy"),
        ({"action": "scroll", "dy": 101}, "dx and dy must be from -100 to 100 notches"),
        ({"action": "scroll", "dy": 1.5}, "whole notches"),
        ({"action": "scroll", "dy": 10_001, "unit": "pixels"}, "dy must be from -10000 to 10000"),
        ({"action": "scroll", "dy": 1, "unit": "lines"}, "unit must be one of notches, pixels"),
        ({"action": "type"}, "needs text"),
        ({"action": "type", "text": ""}, "text must have 1 to 100000 characters, not 0"),
        ({"action": "type", "text": "x" * 100_001}, "text must have 1 to 100000 characters"),
        ({"action": "type", "text": 5}, "text must be a string"),
        ({"action": "type", "text": "x", "secret": "yes"}, "secret must be true or false"),
        ({"action": "type", "text": "x", "method": "magic"}, "method must be one of keys, paste"),
        ({"action": "key", "keys": ""}, "keys must have 1 to 200 characters"),
        ({"action": "key", "keys": ["ctrl", "c"]}, "keys must be a string"),
        ({"action": "key", "keys": "a", "repeat": 0}, "repeat must be from 1 to 100"),
        ({"action": "key", "keys": "a", "repeat": 101}, "repeat must be from 1 to 100"),
        ({"action": "hold_key", "keys": "a"}, "needs seconds"),
        ({"action": "hold_key", "keys": "a", "seconds": 61}, "seconds must be from 0 to 60"),
        ({"action": "wait", "seconds": -1}, "seconds must be from 0 to 60, not -1"),
        ({"action": "wait", "seconds": float("nan")}, "seconds must be from 0 to 60"),
        ({"action": "wait_window"}, "needs title or app"),
        ({"action": "wait_window", "title": "x", "timeout": 61}, "timeout must be from 0 to 60"),
        ({"action": "launch"}, "needs app"),
        ({"action": "launch", "app": ""}, "app must have 1 to 255 characters, not 0"),
        ({"action": "launch", "app": "x" * 256}, "app must have 1 to 255 characters, not 256"),
        ({"action": "launch", "app": "x", "timeout": 0}, "timeout must be from 0.1 to 60"),
        ({"action": "quit"}, "needs app or window"),
        ({"action": "quit", "app": "x", "window": 5}, "needs app or window, one of them"),
        ({"action": "focus", "window": 0}, "window must be from 1 to 4294967295, not 0"),
        ({"action": "focus", "window": "5"}, "window must be a number"),
        ({"action": "focus", "window": 1 << 32}, "window must be from 1 to 4294967295"),
        ({"action": "resize", "window": 5}, "needs one of x, y, width, height"),
        ({"action": "resize", "window": 5, "width": 0}, "width must be from 1 to 32767"),
        ({"action": "clipboard_set"}, "needs text"),
        ({"action": "zoom", "region": [1, 2, 3, None]}, "region must be a number"),
    ],
)
def test_a_wrong_action_is_named_with_what_it_should_be(action: Any, sentence: str) -> None:
    with pytest.raises(BatchRefused) as caught:
        parse_batch({"actions": [LOOK, action]})
    assert caught.value.index == 1
    assert str(caught.value).startswith("action 1")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("space", "window", "space must be"),
        ("space", None, "space must be"),
        ("space", {"picture": [0, 100]}, "space must be"),
        ("space", {"picture": [100]}, "space must be"),
        ("space", {"picture": [100.5, 100]}, "space must be"),
        ("space", {"picture": [True, 100]}, "space must be"),
        ("space", {"picture": [70_000, 100]}, "space must be"),
        ("space", {"grid": 0}, "space must be"),
        ("space", {"grid": "999"}, "space must be"),
        ("space", {"grid": 999, "picture": [10, 10]}, "space must be"),
        ("space", {}, "space must be"),
        ("space", ["screen"], "space must be"),
        ("settle", "quiet", "settle must be an object"),
        ("settle", {"mode": "still"}, "mode must be one of quiet, fixed, none"),
        ("settle", {"mode": ["quiet"]}, "mode must be one of"),
        ("settle", {"timeout": 61}, "timeout must be from 0 to 60"),
        ("settle", {"timeout": float("inf")}, "timeout must be from 0 to 60"),
        ("settle", {"timeout": None}, "timeout must be a number"),
        ("settle", {"strict": 1}, "strict must be true or false"),
        ("settle", {"quiet": 1}, "settle has no field 'quiet'"),
        ("picture", "png", "picture must be true, false or an object"),
        ("picture", 1, "picture must be true, false or an object"),
        ("picture", {"format": "gif"}, "format must be one of png, jpeg, webp"),
        ("picture", {"format": ["png"]}, "format must be one of"),
        ("picture", {"max_edge": 15}, "max_edge must be from 16 to 16384"),
        ("picture", {"max_edge": 100.5}, "max_edge must be a whole number"),
        ("picture", {"region": [1, 2, 3]}, "region must be [x0, y0, x1, y1]"),
        ("picture", {"region": "all"}, "region must be [x0, y0, x1, y1]"),
        ("picture", {"region": [0, 0, 5, float("nan")]}, "region must be from"),
        ("picture", {"region": [-1, 0, 5, 5]}, "region must be from 0"),
        ("picture", {"size": 5}, "picture has no field 'size'"),
        ("expect", 7, "expect must be an object"),
        ("expect", {"sequence": -1}, "sequence must be from 0"),
        ("expect", {"sequence": 1.5}, "sequence must be a whole number"),
        ("expect", {"window": 0}, "window must be from 1"),
        ("expect", {"windows": 5}, "did you mean 'window'?"),
        ("action", [], "the batch has no field 'action': did you mean 'actions'?"),
        ("", 1, "the batch has no field"),
    ],
)
def test_a_wrong_envelope_is_refused(field: str, value: Any, sentence: str) -> None:
    assert sentence in refusal({"actions": [LOOK], field: value})


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["screen", "actions", "click", "picture", 10**400, -0.0]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(st.sampled_from(["action", "actions", "space", "picture", "settle", "expect", "x", "text"])),
            inner,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=500)
@given(JSON)
def test_no_json_raises_anything_but_a_refusal(request: Any) -> None:
    try:
        parse_batch(request)
    except BatchRefused as error:
        one_line(error)


@pytest.mark.slow
@settings(max_examples=500)
@given(
    st.fixed_dictionaries(
        {"actions": st.lists(st.fixed_dictionaries({"action": st.sampled_from(sorted(KINDS))}, optional={"x": JSON}))},
        optional={"space": JSON, "settle": JSON, "picture": JSON, "expect": JSON},
    )
)
def test_nothing_that_looks_like_a_batch_does_either(request: Any) -> None:
    try:
        parse_batch(request)
    except BatchRefused as error:
        one_line(error)


class TestReading:
    """From bytes to a request."""

    def refusal(self, data: bytes) -> str:
        with pytest.raises(BatchRefused) as caught:
            read_request(data)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300
        return str(caught.value)

    @pytest.mark.parametrize("data", [b"", b" \n", b"{", b'{"actions": [}', b"\xff\xfe", b"click 1 2", b"{}{}"])
    def test_what_is_not_json(self, data: bytes) -> None:
        assert "the request is not JSON" in self.refusal(data)

    def test_a_number_too_long_for_this_python(self) -> None:
        try:
            request = read_request(b'{"actions": [{"action": "wait", "seconds": 1' + b"0" * 10_000 + b"}]}")
        except BatchRefused:
            return  # Python 3.9.14, 3.10.7 and later do not even read it
        assert "seconds must be from 0 to 60" in refusal(request)

    @pytest.mark.parametrize("bracket", [b"[", b'{"a":'])
    def test_deep_nesting(self, bracket: bytes) -> None:
        assert "JSON" in self.refusal(bracket * 200_000)

    def test_a_field_named_twice_is_not_guessed_at(self) -> None:
        assert "names the field 'x' twice" in self.refusal(
            b'{"actions": [{"action": "click", "x": 1, "x": 900, "y": 5}]}'
        )

    def test_a_request_longer_than_any_may_be(self) -> None:
        assert "longer than 8 MiB" in self.refusal(b" " * (9 << 20))

    def test_nan_and_infinity_are_read_and_then_refused(self) -> None:
        for word in ("NaN", "Infinity", "-Infinity", "1e999"):
            request = read_request(b'{"actions": [{"action": "wait", "seconds": ' + word.encode() + b"}]}")
            assert "seconds must be from 0 to 60" in refusal(request)

    @given(st.binary(max_size=200))
    def test_any_bytes(self, data: bytes) -> None:
        try:
            read_request(data)
        except BatchRefused as error:
            one_line(error)

    @given(JSON)
    def test_what_json_writes_is_read(self, value: Any) -> None:
        text = json.dumps(value)
        if len(text) < 4000:
            assert json.dumps(read_request(text.encode())) == text
