"""Whatever a model sends, it is read or refused in words; no other error, and nothing that the hand would not take."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.errors import BatchRefused
from deskhand.hand.envelope import parse_batch
from deskhand.vendors import load
from deskhand.vendors.base import Adapter, Turn
from deskhand.vendors.running import run_turn
from tests.vendors.examples import SCREEN, VENDORS
from tests.vendors.outcomes import PretendSession

pytestmark = pytest.mark.slow

numbers = st.one_of(st.integers(-(10**12), 10**12), st.floats(), st.sampled_from([0, 1, 5, 100]))
scalars = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=12), st.sampled_from(["up", "ctrl+a", "left"]))
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
#: Field names that some vendor knows, so that the values get as far as they can.
NAMES = sorted({name for facts in VENDORS.values() for given_, _ in facts.examples.values() for name in given_})


def read_or_refused(adapter: Adapter, reply: Any) -> Turn | BatchRefused:
    try:
        return adapter.read(reply)
    except BatchRefused as error:
        return error


def check(adapter: Adapter, reply: Any) -> None:
    found = read_or_refused(adapter, reply)
    if isinstance(found, BatchRefused):
        assert str(found)
        assert "\n" not in str(found)
        return
    for part in found.parts:
        parse_batch(part.envelope)
        assert len(part.owners) == len(part.envelope["actions"])


@pytest.mark.parametrize("vendor", VENDORS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_fields_of_any_verb(vendor: str, data: st.DataObject) -> None:
    facts = VENDORS[vendor]
    verb = data.draw(st.sampled_from(sorted(facts.examples)))
    fields = dict(facts.examples[verb][0])
    fields.update(data.draw(st.dictionaries(st.sampled_from(sorted(fields) or NAMES), json_values, max_size=3)))
    adapter = facts.make()
    reply = facts.reply(verb, fields)
    check(adapter, reply)
    asyncio.run(run_turn(adapter, reply, PretendSession()))


@pytest.mark.parametrize("vendor", [*VENDORS, "pyautogui"])
@settings(max_examples=150, deadline=None)
@given(reply=json_values)
def test_any_value_as_a_reply(vendor: str, reply: Any) -> None:
    adapter = VENDORS[vendor].make() if vendor in VENDORS else load(vendor)(SCREEN)
    asyncio.run(run_turn(adapter, reply, PretendSession()))


arguments = st.lists(st.one_of(scalars, st.lists(scalars, max_size=3)), max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(load("pyautogui")(SCREEN).verbs)), arguments, st.text(max_size=10))
def test_any_arguments_of_pyautogui(name: str, values: list[Any], junk: str) -> None:
    code = f"pyautogui.{name}({', '.join(map(repr, values))})"
    for text in (code, code + junk, junk):
        check(load("pyautogui")(SCREEN), text)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    "value", [nested(500), 10**400, -(10**400), float("inf"), ["x"], {"a": 1}], ids=lambda value: type(value).__name__
)
def test_a_value_that_no_field_takes_is_answered(vendor: str, value: Any) -> None:
    facts = VENDORS[vendor]
    for verb, (fields, _) in facts.examples.items():
        for name in [*fields, "text"]:
            reply = facts.reply(verb, {**fields, name: value})
            adapter = facts.make()
            check(adapter, reply)
            results, _ = asyncio.run(run_turn(adapter, reply, PretendSession()))
            assert results


@pytest.mark.parametrize("vendor", [name for name in VENDORS if name != "osworld"])  # its verbs are made of text
@pytest.mark.parametrize("verb", [["x"], {"a": 1}, None, 5], ids=str)
def test_a_verb_that_is_no_text_is_answered(vendor: str, verb: Any) -> None:
    facts = VENDORS[vendor]
    reply = facts.reply(verb, {})
    results, _ = asyncio.run(run_turn(facts.make(), reply, PretendSession()))
    assert results or not facts.make().calls(reply)


@pytest.mark.parametrize(
    "code", ["pyautogui.click(" + "a+" * 900 + "a)", "a" + ".b" * 900 + "()", "a" + "[0]" * 900 + "()"]
)
def test_code_that_is_nested_deep_is_refused(code: str) -> None:
    assert isinstance(read_or_refused(load("pyautogui")(SCREEN), code), BatchRefused)
