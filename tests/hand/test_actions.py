"""The action model: the kinds, their defaults, and that pydantic can build on them."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.hand import actions
from deskhand.hand.envelope import parse_action
from deskhand.hand.errors import BatchRefused

#: One of each kind, with nothing but what must be there, and the defaults it gets.
SMALLEST: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"action": "click"}, {"x": None, "y": None, "button": "left", "count": 1, "modifiers": []}),
    ({"action": "move", "x": 1, "y": 2}, {}),
    ({"action": "mouse_down"}, {"x": None, "y": None, "button": "left"}),
    ({"action": "mouse_up"}, {"x": None, "y": None, "button": "left"}),
    ({"action": "drag", "path": [[1, 2], [3, 4]]}, {"path": [(1, 2), (3, 4)], "button": "left", "modifiers": []}),
    ({"action": "scroll", "dy": 3}, {"x": None, "y": None, "dx": 0, "unit": "notches", "modifiers": []}),
    ({"action": "type", "text": "é"}, {"secret": False, "method": "keys"}),
    ({"action": "key", "keys": "ctrl+c"}, {"repeat": 1}),
    ({"action": "hold_key", "keys": "a", "seconds": 0.5}, {}),
    ({"action": "key_down", "keys": "shift"}, {}),
    ({"action": "key_up", "keys": "shift"}, {}),
    ({"action": "wait", "seconds": 0}, {}),
    ({"action": "wait_window", "title": "x"}, {"app": None, "focused": False, "timeout": 10}),
    ({"action": "launch", "app": "x"}, {"keep_open": False, "timeout": 10}),
    ({"action": "quit", "app": "x"}, {"window": None, "force": False, "timeout": 5}),
    ({"action": "focus", "window": 1}, {}),
    ({"action": "close", "window": 1}, {}),
    ({"action": "resize", "window": 1, "width": 5}, {"x": None, "y": None, "height": None}),
    ({"action": "clipboard_set", "text": ""}, {}),
    ({"action": "clipboard_get"}, {}),
    ({"action": "zoom", "region": [0, 0, 5, 5]}, {}),
    ({"action": "cursor_position"}, {}),
    ({"action": "screenshot"}, {}),
]


def values(action: Any) -> dict[str, Any]:
    return {field.name: getattr(action, field.name) for field in fields(action)}


@pytest.mark.parametrize(("given_as", "defaults"), SMALLEST, ids=lambda value: str(value.get("action", "")))
def test_the_smallest_form_gets_its_defaults(given_as: dict[str, Any], defaults: dict[str, Any]) -> None:
    assert values(parse_action(given_as)) == {**given_as, **defaults}


def test_these_are_all_kinds() -> None:
    assert [smallest["action"] for smallest, _ in SMALLEST] == list(actions.KINDS)


def test_an_action_can_not_be_changed_after_it_was_checked() -> None:
    action = parse_action({"action": "move", "x": 1, "y": 2})
    with pytest.raises(AttributeError):
        action.x = 5000  # type: ignore[misc, union-attr]


def test_secret_text_is_not_in_what_is_printed() -> None:
    assert "hunter2" not in repr(parse_action({"action": "type", "text": "hunter2", "secret": True}))
    assert "hunter2" in repr(parse_action({"action": "type", "text": "hunter2"}))


@pytest.mark.parametrize(
    ("scroll", "notches"),
    [
        ({"dy": 3}, (0, 3)),
        ({"dx": -2}, (-2, 0)),
        ({"dy": 3.0}, (0, 3)),
        ({"dy": 120, "unit": "pixels"}, (0, 1)),
        ({"dy": -151, "unit": "pixels"}, (0, -2)),
        ({"dx": 1, "dy": -1, "unit": "pixels"}, (1, -1)),
        ({"dy": 10_000, "unit": "pixels"}, (0, 100)),
    ],
)
def test_scrolling_is_counted_in_notches(scroll: dict[str, Any], notches: tuple[int, int]) -> None:
    action = parse_action({"action": "scroll", **scroll})
    assert isinstance(action, actions.Scroll)
    assert action.notches() == notches


class TestPydantic:
    """What is built on the dataclasses: the schema of the tools and their validators."""

    @pytest.fixture
    def adapter(self) -> Any:
        pydantic = pytest.importorskip("pydantic")
        from typing import Annotated

        return pydantic.TypeAdapter(Annotated[actions.Action, pydantic.Field(discriminator="action")])

    def test_the_schema_has_every_kind_and_every_field(self, adapter: Any) -> None:
        schema = adapter.json_schema()
        kinds = schema["discriminator"]["mapping"]
        assert set(kinds) == set(actions.KINDS)
        for name, kind in actions.KINDS.items():
            described = schema["$defs"][kinds[name].rpartition("/")[2]]
            assert set(described["properties"]) == {field.name for field in fields(kind)}
            assert described["description"]
        json.dumps(schema)

    @pytest.mark.parametrize("smallest", [smallest for smallest, _ in SMALLEST], ids=lambda s: str(s["action"]))
    def test_it_reads_what_the_hand_reads(self, adapter: Any, smallest: dict[str, Any]) -> None:
        assert adapter.validate_json(json.dumps(smallest)) == parse_action(smallest)


#: Values a model might send for a number, a name or a list.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 1 << 63]),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=5),
    st.lists(st.lists(st.floats(), max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
FIELDS = sorted({field.name for kind in actions.KINDS.values() for field in fields(kind)} - {"action"})


@settings(max_examples=1500)
@given(smallest=st.sampled_from([smallest for smallest, _ in SMALLEST]), field=st.sampled_from(FIELDS), value=ODD)
def test_any_value_in_any_field_is_kept_or_refused_in_one_line(
    smallest: dict[str, Any], field: str, value: Any
) -> None:
    try:
        action = parse_action({**smallest, field: value}, 7)
    except BatchRefused as error:
        refusal = error
    else:
        kept = getattr(action, field)
        assert kept == value or [tuple(point) for point in value] == kept
        assert isinstance(kept, bool) == isinstance(value, bool)
        return
    assert (refusal.index, refusal.sent) == (7, "none")
    assert str(refusal).startswith("action 7")
    assert "\n" not in str(refusal)
    assert len(str(refusal)) < 500
