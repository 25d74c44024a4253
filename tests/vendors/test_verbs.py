"""Every verb of every vendor: what it becomes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.hand.envelope import parse_batch
from deskhand.vendors import ADAPTERS, load
from deskhand.vendors.anthropic import VERBS as ANTHROPIC_VERBS
from tests.vendors.examples import PYAUTOGUI, SCREEN, VENDORS

CASES = [(vendor, verb) for vendor, facts in VENDORS.items() for verb in facts.examples]


def actions_of(vendor: str, reply: Any) -> list[dict[str, Any]]:
    turn = VENDORS[vendor].make().read(reply)
    for part in turn.parts:
        parse_batch(part.envelope)
    return [action for part in turn.parts for action in part.envelope["actions"]]


def refusal(vendor: str, reply: Any) -> str:
    with pytest.raises(BatchRefused) as caught:
        VENDORS[vendor].make().read(reply)
    text = str(caught.value)
    assert "\n" not in text
    assert "Traceback" not in text
    return text


@pytest.mark.parametrize("vendor", VENDORS)
def test_examples_cover_every_verb(vendor: str) -> None:
    facts = VENDORS[vendor]
    expected = set(facts.make().verbs) if not vendor.startswith("anthropic") else set(ANTHROPIC_VERBS)
    if vendor == "anthropic_20250124":
        expected -= {"zoom"}
    assert set(facts.examples) == expected
    assert set(PYAUTOGUI) == set(load("pyautogui")(SCREEN).verbs)


@pytest.mark.parametrize(("vendor", "verb"), CASES)
def test_verb_becomes_its_actions(vendor: str, verb: str) -> None:
    facts = VENDORS[vendor]
    given, expected = facts.examples[verb]

    found = actions_of(vendor, facts.reply(verb, given))

    assert [{k: v for k, v in a.items() if (k, v) != ("repeat", 1)} for a in found] == expected
    assert {action["action"] for action in found} <= set(facts.make().verbs[verb].gives if verb != "zoom" else ["zoom"])


@pytest.mark.parametrize(("vendor", "verb"), CASES)
def test_unknown_field_is_refused(vendor: str, verb: str) -> None:
    facts = VENDORS[vendor]
    text = refusal(vendor, facts.reply(verb, {**facts.examples[verb][0], "nonsense": 1}))
    assert text.startswith(verb)
    assert "nonsense" in text


WRONG: dict[type, list[Any]] = {
    str: [3, True, {"a": 1}, ["a"]],
    int: ["1", True, {"a": 1}, [1], -1e12, float("nan")],
    float: ["1", True, {"a": 1}, [1]],
    bool: ["yes", 1, {"a": 1}],
    list: ["ctrl", 3, True, {"a": 1}, [], [True], [{"b": {}}]],
}


@pytest.mark.parametrize(("vendor", "verb"), CASES)
def test_wrong_type_of_every_field_is_refused(vendor: str, verb: str) -> None:
    facts = VENDORS[vendor]
    given = facts.examples[verb][0]
    for name in given:
        for wrong in WRONG[type(given[name])]:
            if name == "keys" and vendor.startswith("openai") and verb != "keypress" and wrong == []:
                continue  # nothing is held
            assert refusal(vendor, facts.reply(verb, {**given, name: wrong})), (name, wrong)


@pytest.mark.parametrize(("vendor", "verb"), CASES)
def test_missing_field_is_refused_unless_the_table_says_optional(vendor: str, verb: str) -> None:
    facts = VENDORS[vendor]
    given = facts.examples[verb][0]
    takes = facts.make().verbs[verb].takes if verb != "zoom" else "region"
    words = takes.replace("start_box", "point").split()
    needed = {word for word in words if not word.endswith("?") and "=" not in word}
    for name in given:
        rest = {key: value for key, value in given.items() if key != name}
        label = {"start_box": "start_point" if "end_box" in given else "point", "end_box": "end_point"}.get(name, name)
        if label in needed:
            assert "missing" in refusal(vendor, facts.reply(verb, rest)), name
        else:
            actions_of(vendor, facts.reply(verb, rest))


@pytest.mark.parametrize("vendor", VENDORS)
def test_unknown_verb_is_refused_with_the_nearest(vendor: str) -> None:
    facts = VENDORS[vendor]
    text = refusal(vendor, facts.reply("klick", {})).lower()
    assert "klick" in text
    assert "click" in text
    assert "use one of" in refusal(vendor, facts.reply("zzzzzz", {}))


@pytest.mark.parametrize(
    ("vendor", "verb", "given", "words"),
    [
        (
            "anthropic_toolset",
            "left_click",
            {"coordinate": [1280, 20]},
            "(1280, 20) is outside the 1280x800 picture: use",
        ),
        ("anthropic_toolset", "left_click", {"coordinate": [-1, 20]}, "outside"),
        ("anthropic_toolset", "left_click", {"coordinate": [1.5, 20]}, "whole number"),
        ("anthropic_toolset", "left_click", {"coordinate": ["1", 20]}, "coordinate must be a whole number"),
        ("anthropic_toolset", "left_click", {"coordinate": [1]}, "list of 2"),
        ("anthropic_toolset", "left_click", {"text": "ctlr"}, "unknown key 'ctlr'"),
        ("anthropic_toolset", "key", {"text": "Down Down"}, "join the keys"),
        ("anthropic_toolset", "key", {"text": "a", "repeat": 0}, "from 1 to 100"),
        ("anthropic_toolset", "wait", {"duration": 61}, "from 0 to 60"),
        ("anthropic_toolset", "scroll", {"scroll_direction": "sideways", "scroll_amount": 1}, "up, down, left, right"),
        ("anthropic_toolset", "scroll", {"scroll_direction": "up", "scroll_amount": 0}, "from 1 to 100"),
        ("anthropic_toolset", "zoom", {"region": [10, 10, 10, 20]}, "is not inside"),
        ("anthropic_toolset", "type", {"text": "a\x07"}, "control character"),
        ("anthropic_20250124", "zoom", {"region": [0, 0, 10, 10]}, "no action 'zoom'"),
        ("anthropic_20250124", "left_click", {"text": "ctrl", "key": "shift"}, "use text"),
        ("openai", "click", {"button": "middle", "x": 1, "y": 2}, "left, right, wheel, back, forward"),
        ("openai", "scroll", {"x": 1, "y": 2, "scroll_x": 0, "scroll_y": 0}, "both 0"),
        ("openai", "drag", {"path": [{"x": 1, "y": 2}]}, "two or more"),
        ("openai", "drag", {"path": [{"x": 1, "y": 2}, {"x": 1}]}, "path[1]: y is missing"),
        ("openai", "keypress", {"keys": []}, "at least one"),
        ("openai_preview", "click", {"button": "left", "x": 1, "y": 768}, "outside the 1280x768 picture"),
        ("gemini_browser", "click", {"x": 1000, "y": 2}, "use x 0-999"),
        ("gemini_browser", "scroll", {"x": 1, "y": 2, "direction": "down", "magnitude_in_pixels": 0}, "from 1 to"),
        ("qwen", "left_click", {"coordinate": [1001, 2]}, "use x 0-1000"),
        ("qwen", "scroll", {"pixels": 0}, "nothing would move"),
        ("qwen", "terminate", {"status": "maybe"}, "success, failure"),
        ("ui_tars", "click", {"point": "here"}, "<point>x y</point>"),
        ("ui_tars", "click", {"point": "<point>5000 200</point>"}, "outside"),
        ("ui_tars", "hotkey", {"key": "ctrl nokey"}, "unknown key 'nokey'"),
        ("osworld", "CLICK", {"x": 10}, "y is missing"),
        ("osworld", "CLICK", {"x": 1280, "y": 5}, "outside the 1280x800 picture"),
        ("osworld", "CLICK", {"button": "LEFT"}, "left, right, middle"),
        ("osworld", "CLICK", {"num_clicks": 4}, "from 1 to 3"),
        ("osworld", "SCROLL", {}, "nothing would move"),
        ("osworld", "PRESS", {"key": "ctrl+c"}, "use HOTKEY"),
        ("osworld", "HOTKEY", {"keys": ["ctrl", "nokey"]}, "unknown key 'nokey'"),
    ],
)
def test_refusals_say_what_to_do(vendor: str, verb: str, given: dict[str, Any], words: str) -> None:
    assert words in refusal(vendor, VENDORS[vendor].reply(verb, given))


def test_a_reply_is_refused_whole_and_names_the_call() -> None:
    from tests.vendors.examples import tool_use

    reply = [tool_use("left_click", {"coordinate": [1, 2]}, 0), tool_use("left_click", {"coordinate": [1]}, 1)]
    with pytest.raises(BatchRefused) as caught:
        VENDORS["anthropic_toolset"].make().read(reply)
    assert caught.value.index == 1


def test_every_adapter_loads() -> None:
    for name in ADAPTERS:
        assert load(name)(SCREEN).source
    with pytest.raises(ValueError, match="use one of anthropic"):
        load("acme")
