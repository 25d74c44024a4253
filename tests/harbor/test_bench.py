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
    from bench.harbor import FIXED, TRACED, table

    def row(way: str, added: int, minute: float, kinds: str = "") -> dict[str, Any]:
        counted = {"execs_a_step": 1.0, "median_s": 1.0, "right": 3, "of": 4, "wrong": ["load"]}
        return {"way": way, "kinds": kinds, "added_ms": added, "actions_a_minute": minute, **counted}

    some = [row("hand", 0, 90.0, TRACED), row(FIXED, 0, 30.0, TRACED)]
    lines = table([row("hand", 0, 100.0), row(FIXED, 0, 20.0), *some, row("hand", 300, 80.0), row(FIXED, 300, 10.0)])
    ratios = [(line.split()[1], line.split()[-5]) for line in lines.splitlines() if line.startswith("hand")]
    assert ratios == [("all", "5.0"), ("all", "8.0"), (TRACED, "3.0")]
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
