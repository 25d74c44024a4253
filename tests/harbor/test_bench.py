"""The benchmark of Harbor's step: that it counts and compares what it says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.harbor.trials import needs_sandbox


def test_the_hands_actions_as_harbors() -> None:
    from bench.harbor_desktops import harbors

    assert harbors({"action": "click", "x": 1, "y": 2}) == {"type": "click", "x": 1, "y": 2}
    assert harbors({"action": "click", "x": 1, "y": 2, "button": "right"})["type"] == "right_click"
    assert harbors({"action": "key", "keys": "ctrl+l"}) == {"type": "keypress", "keys": ["ctrl", "l"]}
    assert harbors({"action": "scroll", "x": 1, "y": 2, "dy": 3})["scroll_y"] == 300
    assert harbors({"action": "type", "text": "a\n"}) == {"type": "type", "text": "a\n"}
    assert harbors({"action": "move", "x": 1, "y": 2}) == {"type": "mouse_move", "x": 1, "y": 2}


def test_every_kind_that_is_prepared_has_a_way_into_harbor() -> None:
    from bench.harbor_desktops import _BROWSING, _TYPING
    from harbor.agents.computer_1.runtime import ComputerAction

    for actions in (_BROWSING, _TYPING):
        for action in actions.values():
            ComputerAction(**action)


def test_the_table_has_the_ratio_at_the_same_delay() -> None:
    from bench.harbor import FIXED, table

    def row(way: str, added: int, minute: float) -> dict[str, Any]:
        counted = {"execs_a_step": 1.0, "median_s": 1.0, "right": 3, "of": 4, "wrong": ["load"]}
        return {"way": way, "added_ms": added, "actions_a_minute": minute, **counted}

    lines = table([row("hand", 0, 100.0), row(FIXED, 0, 20.0), row("hand", 300, 80.0), row(FIXED, 300, 10.0)])
    assert [line.split()[-5] for line in lines.splitlines() if line.startswith("hand")] == ["5.0", "8.0"]
    assert "3 of 4  load" in lines


@pytest.mark.slow
@needs_sandbox
def test_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import harbor

    monkeypatch.setattr(harbor, "DELAYS", (0.0,))
    rows = asyncio.run(harbor.measure("terminal", 1, [harbor.HAND, "tools, quiet"], later=0.0))
    assert [(row["way"], row["execs_a_step"], row["of"]) for row in rows] == [
        ("hand", 1.0, 4),
        ("tools, quiet", 5.0, 4),
    ]
