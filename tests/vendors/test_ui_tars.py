from __future__ import annotations

import asyncio
from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.hand.coordinates import Space
from deskhand.vendors.base import Finish
from deskhand.vendors.running import run_turn
from deskhand.vendors.ui_tars import UiTars
from tests.vendors.examples import SCREEN
from tests.vendors.outcomes import PretendSession, outcome


def actions(text: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = UiTars(SCREEN, **options).read(text).parts[0].envelope["actions"]
    return found


def test_thought_and_action() -> None:
    turn = UiTars(SCREEN).read("Thought: press it.\nAction: click(point='<point>644 400</point>')")
    assert turn.say == "Thought: press it."
    assert turn.parts[0].envelope["space"] == {"picture": [1288, 812]}
    x, y = Space(turn.parts[0].envelope["space"], SCREEN).point(1287, 811)
    assert (x, y) == (1279, 799)


def test_thousandths() -> None:
    turn = UiTars(SCREEN, positions="thousandths").read("Action: click(start_box='(1000,0)')")
    assert turn.parts[0].envelope["space"] == {"grid": 1000}


def test_several_actions() -> None:
    text = "Action: click(point='(1,2)')\n\ntype(content='a b\\n')\n\nhotkey(key='ctrl s')"
    assert [action["action"] for action in actions(text)] == ["click", "type", "key"]


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("type(content='it\\'s')", "it's"),
        ("type(content='it's so')", "it's so"),
        ('type(content="say \\"hi\\"\\n")', 'say "hi"\n'),
        ("type(content='don't\\tgo\\n')", "don't\tgo\n"),
        ("type(content='two\nlines')", "two\nlines"),
        ("type(content='Грüße (1)')", "Грüße (1)"),
        ("type(content='Action: none, Action: wait()')", "Action: none, Action: wait()"),
    ],
)
def test_text_with_quotes_and_newlines(written: str, typed: str) -> None:
    assert actions(f"Action: {written}") == [{"action": "type", "text": typed}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I am done", "holds no action"),
        ("Action: ", "nothing follows"),
        ("Action: click(100, 200)", "is not an action"),
        ("Action: __import__('os').system('x')", "is not an action"),
        ("Action: click(point=open('x'))", "every argument must be"),
        ("Action: click(point='<point>1 2</point>'", "can not be read"),
        ("Action: click(point='<point>1 2</point>', point='<point>3 4</point>')", "point is given twice"),
        ("Action: jump(point='<point>1 2</point>')", "no action 'jump'"),
        ("Action: finished(content='x')\n\nwait()", "nothing may follow"),
        ("Action: " + "(" * 50_000, "can not be read"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(BatchRefused, match=words) as caught:
        UiTars(SCREEN).read(text)
    assert "\n" not in str(caught.value)


def test_results_are_one_message() -> None:
    session = PretendSession(outcome("failed", error="no window"))
    messages, finish = asyncio.run(run_turn(UiTars(SCREEN), "Action: wait()", session))
    assert finish is None
    assert messages[0]["content"][0]["type"] == "image_url"
    assert messages[0]["content"][1]["text"] == "Error: no window"
    refused, _ = asyncio.run(run_turn(UiTars(SCREEN), "no action", PretendSession()))
    assert refused[0]["content"][0]["text"].startswith("Error: the reply holds no action")


def test_ends() -> None:
    ended = asyncio.run(run_turn(UiTars(SCREEN), "Action: finished(content='all good')", PretendSession()))[1]
    assert ended == Finish("all good")
    asked = asyncio.run(run_turn(UiTars(SCREEN), "Action: call_user()", PretendSession()))[1]
    assert asked == Finish("the model asks for a person", success=False)


def test_wrong_arguments_of_the_adapter() -> None:
    with pytest.raises(ValueError, match="thousandths or resized"):
        UiTars(SCREEN, positions="pixels")
