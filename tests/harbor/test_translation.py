"""Harbor's actions as the hand's, and positions between the picture and the screen."""

from __future__ import annotations

from typing import Any

import pytest

SCREEN = (1280, 800)
AT = {"x": 10, "y": 20}
CLICK = {"action": "click", "x": 10, "y": 20, "button": "left", "count": 1}
CASES: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    ({"type": "click", **AT}, [CLICK]),
    ({"type": "click", **AT, "button": "middle"}, [{**CLICK, "button": "middle"}]),
    ({"type": "click", **AT, "modifier": "control"}, [{**CLICK, "modifiers": ["ctrl"]}]),
    ({"type": "click", **AT, "modifier": "hat"}, [CLICK]),
    ({"type": "click"}, [{"action": "click", "button": "left", "count": 1}]),
    ({"type": "double_click", **AT}, [{**CLICK, "count": 2}]),
    ({"type": "triple_click", **AT}, [{**CLICK, "count": 3}]),
    ({"type": "right_click", **AT}, [{**CLICK, "button": "right"}]),
    ({"type": "middle_click", **AT}, [{**CLICK, "button": "middle"}]),
    ({"type": "mouse_down", **AT}, [{"action": "mouse_down", **AT}]),
    ({"type": "mouse_up", "x": 0, "y": 0, "source": "anthropic_scaled"}, [{"action": "mouse_up"}]),
    ({"type": "mouse_move", **AT}, [{"action": "move", **AT}]),
    ({"type": "drag", **AT, "end_x": 30, "end_y": 40}, [{"action": "drag", "path": [[10, 20], [30, 40]]}]),
    ({"type": "type", "text": "a"}, [{"action": "type", "text": "a"}]),
    ({"type": "type", "text": ""}, []),
    (
        {"type": "type", "text": "a", "press_enter": True},
        [{"action": "type", "text": "a"}, {"action": "key", "keys": "Return"}],
    ),
    ({"type": "keypress", "keys": ["ctrl", "shift", "t"]}, [{"action": "key", "keys": "ctrl+shift+t"}]),
    ({"type": "keypress", "keys": ["ctrl+s"]}, [{"action": "key", "keys": "ctrl+s"}]),
    ({"type": "keypress", "keys": ["CMD", "Space"]}, [{"action": "key", "keys": "super+space"}]),
    ({"type": "keypress", "keys": ["Control_L", "a"]}, [{"action": "key", "keys": "Control_L+a"}]),
    ({"type": "keypress", "keys": ["a", "b"]}, [{"action": "key", "keys": "a"}, {"action": "key", "keys": "b"}]),
    ({"type": "keypress", "keys": ["ctrl", "+"]}, [{"action": "key", "keys": "ctrl+plus"}]),
    ({"type": "keypress", "keys": ["ctrl++"]}, [{"action": "key", "keys": "ctrl+plus"}]),
    ({"type": "key_down", "keys": ["shift"]}, [{"action": "key_down", "keys": "shift"}]),
    ({"type": "key_up", "keys": ["shift"]}, [{"action": "key_up", "keys": "shift"}]),
    ({"type": "hold_key", "keys": ["Up"], "duration": 2}, [{"action": "hold_key", "keys": "Up", "seconds": 2}]),
    ({"type": "scroll", **AT}, [{"action": "scroll", **AT, "dx": 0, "dy": 500, "unit": "pixels"}]),
    ({"type": "scroll", "scroll_y": 0}, [{"action": "move", "x": 640, "y": 400}]),
    ({"type": "wait"}, [{"action": "wait", "seconds": 1.0}]),
    ({"type": "sleep", "duration": 3}, [{"action": "wait", "seconds": 3}]),
    (
        {"type": "type_text_at", **AT, "text": "a"},
        [
            {"action": "click", **AT},
            {"action": "key", "keys": "ctrl+a"},
            {"action": "type", "text": "a"},
            {"action": "key", "keys": "Return"},
        ],
    ),
]


@pytest.mark.parametrize(("fields", "expected"), CASES, ids=[str(case[0]) for case in CASES])
def test_action(fields: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    from harbor.agents.computer_1.runtime import ComputerAction

    from deskhand.hand.envelope import parse_action
    from deskhand.harbor.translation import hand_actions

    actions = hand_actions(ComputerAction(**fields), SCREEN)
    assert actions == expected
    for action in actions:
        parse_action(action)  # the hand takes it


def test_what_the_hand_has_not_is_none() -> None:
    from harbor.agents.computer_1.runtime import ComputerAction

    from deskhand.harbor.translation import hand_actions

    assert hand_actions(ComputerAction(type="teleport"), SCREEN) is None


def test_corners_of_a_resized_picture_are_the_screens() -> None:
    from harbor.agents.computer_1.runtime import ComputerAction

    from deskhand.harbor.translation import to_screen

    for at, expected in {(0, 0): (0, 0), (639, 399): (1279, 799), (320, 200): (641, 401)}.items():
        action = to_screen(ComputerAction(type="click", x=at[0], y=at[1]), (640, 400), SCREEN)
        assert (action.x, action.y) == expected
        assert (action.model_x, action.model_y) == at


@pytest.mark.parametrize("source", ["normalized_completion", "anthropic_scaled"])
def test_positions_that_are_scaled_by_others_stay(source: str) -> None:
    from harbor.agents.computer_1.runtime import ComputerAction

    from deskhand.harbor.translation import to_screen

    action = to_screen(ComputerAction(type="click", x=10, y=10, source=source), (640, 400), SCREEN)
    assert (action.x, action.y) == (10, 10)
