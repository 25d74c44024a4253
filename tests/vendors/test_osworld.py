from __future__ import annotations

import asyncio
from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.hand.key_names import parse_chord
from deskhand.vendors.base import Finish
from deskhand.vendors.osworld import OSWorld
from deskhand.vendors.running import run_turn
from tests.vendors.examples import SCREEN, click, key
from tests.vendors.outcomes import PretendSession, outcome


def actions(reply: Any, **options: Any) -> list[dict[str, Any]]:
    turn = OSWorld(SCREEN, **options).read(reply)
    return [
        {name: value for name, value in action.items() if (name, value) != ("repeat", 1)}
        for part in turn.parts
        for action in part.envelope["actions"]
    ]


def run(reply: Any, session: PretendSession) -> tuple[list[dict[str, Any]], Finish | None]:
    return asyncio.run(run_turn(OSWorld(SCREEN), reply, session))


CLICK = {"action_type": "CLICK", "x": 10.9, "y": 20, "button": "right"}
TEXT = """I open the menu.
```json
{"action_type": "CLICK", "x": 10.9, "y": 20, "button": "right"}
```
and choose
```
{"action_type": "PRESS", "parameters": {"key": "down"}}
```"""


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        {"choices": [{"message": {"role": "assistant", "content": TEXT}}]},
        [CLICK, {"action_type": "PRESS", "parameters": {"key": "down"}}],
        '```json\n[{"action_type": "CLICK", "x": 10.9, "y": 20, "button": "right"},'
        ' {"action_type": "PRESS", "key": "down"}]\n```',
    ],
    ids=["text", "completion", "objects", "list"],
)
def test_the_forms_of_a_reply(reply: Any) -> None:
    assert actions(reply) == [click(10, 20, "right"), key("down")]


def test_what_it_says_beside() -> None:
    assert OSWorld(SCREEN).read(TEXT).say == "I open the menu.\n\nand choose"


def test_one_object_without_a_block() -> None:
    assert actions('{"action_type": "DOUBLE_CLICK", "x": 1, "y": 2}') == [click(1, 2, count=2)]


@pytest.mark.parametrize("form", ["{}", "```{}```", "```\n{}\n```"])
def test_the_words_that_are_no_objects(form: str) -> None:
    assert actions(form.format("WAIT")) == [{"action": "wait", "seconds": 2}]
    assert run(form.format("DONE"), PretendSession())[1] == Finish("the model says that it is done")
    assert run(form.format("FAIL"), PretendSession())[1] == Finish("the model gave up", success=False)


def test_a_scroll_of_many_notches() -> None:
    assert [action["dy"] for action in actions({"action_type": "SCROLL", "dx": 0, "dy": -250})] == [100, 100, 50]


def test_positions_of_the_screen() -> None:
    turn = OSWorld((3840, 2160), positions="screen").read({"action_type": "MOVE_TO", "x": 3839, "y": 2159})
    assert turn.parts[0].envelope["space"] == "screen"
    with pytest.raises(ValueError, match="positions"):
        OSWorld(SCREEN, positions="model")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("I am not sure.", "holds no action"),
        ("", "holds no action"),
        (None, "holds no action"),
        ([], "holds no action"),
        ("```json\n{'action_type': 'CLICK'}\n```", "not JSON"),
        ("```json\n" + "[" * 100_000 + "```", "not JSON"),
        ("```json\n5\n```", "must be a JSON object"),
        (["CLICK"], "must be a JSON object"),
        ({"action_type": "PRESS", "parameters": {"key": "a"}, "key": "b"}, "not in both"),
        ({"action_type": "PRESS", "parameters": "a"}, "not in both"),
        ([{"action_type": "DONE"}, CLICK], "nothing may follow"),
        ({"action_type": 5}, "names no action"),
    ],
)
def test_what_is_refused(reply: Any, words: str) -> None:
    with pytest.raises(BatchRefused, match=words):
        OSWorld(SCREEN).read(reply)


def test_the_answer_names_the_action_that_failed() -> None:
    reply = [CLICK, {"action_type": "TYPING", "text": "x"}]
    (message,), finish = run(reply, PretendSession(outcome("ok", "failed", error="no window has the focus")))
    assert finish is None
    assert message["role"] == "user"
    assert message["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert message["content"][1]["text"] == "TYPING 2: Error: no window has the focus"
    assert run(CLICK, PretendSession())[0][0]["content"][1]["text"] == "Done."


@pytest.mark.parametrize(
    "name", ["\t", "\n", "\r", " ", "!", "+", "altleft", "apps", "del", "f24", "num0", "pgdn", "prtsc", "winleft"]
)
def test_keys_have_pyautoguis_names(name: str) -> None:
    (action,) = actions({"action_type": "PRESS", "key": name})
    assert parse_chord(action["keys"])
