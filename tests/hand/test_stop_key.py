"""The stop key, without a server: which presses are it."""

from __future__ import annotations

import pytest

from deskhand.hand.key_names import keysym
from deskhand.hand.stop_key import StopKey

ESCAPE, CONTROL_L, CONTROL_R, Q, A = 9, 37, 105, 24, 38
NAMES = {ESCAPE: "Escape", CONTROL_L: "Control_L", CONTROL_R: "Control_R", Q: "q", A: "a"}


def key(*wish: object) -> StopKey:
    stop = StopKey(*wish)  # type: ignore[arg-type]
    stop.learn(8, [(keysym(NAMES[code]), 0) if code in NAMES else () for code in range(8, 256)])
    return stop


@pytest.mark.parametrize(
    ("presses", "stops"),
    [
        ([(ESCAPE, 0), (ESCAPE, 300), (ESCAPE, 600)], True),
        ([(ESCAPE, 0), (ESCAPE, 300)], False),
        ([(ESCAPE, 0), (ESCAPE, 300), (ESCAPE, 2400)], False),
        ([(ESCAPE, 0), (ESCAPE, 1500), (ESCAPE, 2400), (ESCAPE, 2600)], True),
        ([(ESCAPE, 0), (ESCAPE, 100), (A, 200), (ESCAPE, 300)], False),
        ([(ESCAPE, 0xFFFFFF00), (ESCAPE, 0xFFFFFFF0), (ESCAPE, 10)], True),
    ],
    ids=["three", "two", "slow", "late", "another between", "the clock's end"],
)
def test_three_times(presses: list[tuple[int, int]], stops: bool) -> None:
    stop = key()
    assert str(stop) == "Escape three times"
    assert any(stop.pressed(code, set(), time) for code, time in presses) == stops


@pytest.mark.parametrize(
    ("held", "code", "stops"),
    [
        ({CONTROL_L}, Q, True),
        ({CONTROL_R}, Q, True),
        (set(), Q, False),
        ({Q}, CONTROL_L, False),
        ({CONTROL_L}, A, False),
    ],
)
def test_a_chord(held: set[int], code: int, stops: bool) -> None:
    assert key("ctrl+q", 1).pressed(code, held, 0) == stops


def test_a_key_that_is_missing() -> None:
    assert key("F5").missing
    assert key("Escape").missing is None
