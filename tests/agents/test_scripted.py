"""Scripts: what may stand in one, and what is said of what may not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from deskhand import SetupError
from deskhand.agents import Done, ListApps, Observation, Script, Turn
from deskhand.agents.scripted import DEMO

BATCH = {"actions": [{"action": "wait", "seconds": 0}]}


def script(tmp_path: Path, *lines: Any) -> Script:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return Script(path)


def test_turns_in_order_and_then_done(tmp_path: Path) -> None:
    lines = [{"goal": " g "}, "", {"say": "1", "apps": True}, {"say": "2", **BATCH, "picture": True}, BATCH]

    async def run() -> None:
        agent = script(tmp_path, *lines)
        assert (agent.goal, agent.name) == ("g", "scripted:a.jsonl")
        seen = Observation("g")
        assert await agent.next(seen) == ListApps("1")
        assert await agent.next(seen) == Turn({**BATCH, "picture": True}, "2")
        assert await agent.next(seen) == Turn(BATCH)
        assert await agent.next(seen) == Done("Done.")

    asyncio.run(run())


def test_it_stops_at_the_first_failure(tmp_path: Path) -> None:
    async def run() -> None:
        turn = await script(tmp_path, BATCH, BATCH).next(Observation("g", error="it is not there"))
        assert turn == Done("The script stops: it is not there", success=False)

    asyncio.run(run())


def test_json_strings_may_hold_any_line_separator_but_a_newline(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\x85d"
    line = json.dumps({"actions": [{"action": "type", "text": text}]}, ensure_ascii=False)

    async def run() -> None:
        turn = await script(tmp_path, line).next(Observation(""))
        assert isinstance(turn, Turn)
        assert turn.batch["actions"][0]["text"] == text

    asyncio.run(run())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "Expecting"),
        ("[" * 100_000, ""),
        ("[]", "must be an object"),
        ('"goal"', "must be an object"),
        ("3", "must be an object"),
        ({"goal": 3}, "goal must be a string"),
        ({"goal": "x", **BATCH}, "do not go together"),
        ({"say": 3, **BATCH}, "say must be a string"),
        ({"say": "x"}, "needs a list of actions"),
        ({"apps": False}, "apps must be true"),
        ({"apps": True, **BATCH}, "do not go together"),
        ({"actions": []}, "1 to 100 actions"),
        ({"actions": [{"action": "fly"}]}, "there is no action"),
        ({"actions": [{"action": "key", "keys": 3}]}, "keys must be a string"),
        ({**BATCH, "colour": 1}, "colour"),
        ({"check": {"file": "x"}}, "a check is"),
        ({"check": {"file": "x", "equals": 3}}, "a check is"),
        ({"check": "x"}, "a check is"),
        ({"check": {"file": "/etc/passwd", "equals": ""}}, "below the user's home"),
        ({"check": {"file": "a/../../b", "equals": ""}}, "below the user's home"),
        ({"check": {"file": "", "equals": ""}}, "below the user's home"),
        ({"check": {"file": "x", "equals": ""}, "say": "x"}, "do not go together"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, line: Any, why: str) -> None:
    with pytest.raises(SetupError, match="line 3 of the script ") as caught:
        script(tmp_path, {"goal": "g"}, BATCH, line)
    assert why in str(caught.value)


def test_what_is_no_script(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="can not be read"):
        Script(tmp_path / "none")
    with pytest.raises(SetupError, match="can not be read"):
        Script(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(SetupError, match="can not be read"):
        Script(tmp_path / "bytes")
    with pytest.raises(SetupError, match="holds no batch"):
        script(tmp_path, {"goal": "g"}, {"check": {"file": "x", "equals": ""}})


def test_checks_look_at_the_file(tmp_path: Path) -> None:
    (tmp_path / "right").write_text("é\n", "utf-8")
    (tmp_path / "wrong").write_text("e")
    (tmp_path / "bytes").write_bytes(b"\xff")
    checks = [{"check": {"file": name, "equals": "é\n"}} for name in ("right", "wrong", "bytes", "none", ".")]
    found = [check() for check in script(tmp_path, BATCH, *checks[:4]).checks(tmp_path)]
    assert [check.ok for check in found] == [True, False, False, False]
    assert [check.found for check in found[1:]] == ["'e'", "bytes that are not UTF-8", "No such file or directory"]


def test_the_demo_is_a_script() -> None:
    demo = Script(DEMO)
    assert demo.goal
    assert demo.checks(Path("/"))
