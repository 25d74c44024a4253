from __future__ import annotations

import ast
import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.hand.envelope import parse_batch
from deskhand.hand.key_names import parse_chord
from deskhand.vendors.base import Finish
from deskhand.vendors.pyautogui import PyAutoGui
from deskhand.vendors.pyautogui_code import SIGNATURES
from deskhand.vendors.running import run_turn
from tests.vendors.examples import PYAUTOGUI, SCREEN, drag, key
from tests.vendors.outcomes import PretendSession, outcome


def actions(code: str, **options: Any) -> list[dict[str, Any]]:
    turn = PyAutoGui(SCREEN, **options).read(code)
    for part in turn.parts:
        parse_batch(part.envelope)
    return [action for part in turn.parts for action in part.envelope["actions"]]


@pytest.mark.parametrize("verb", PYAUTOGUI)
def test_function_becomes_its_actions(verb: str) -> None:
    code, expected = PYAUTOGUI[verb]
    found = actions(code)
    assert [{k: v for k, v in action.items() if (k, v) != ("repeat", 1)} for action in found] == expected
    assert found[-1]["action"] in PyAutoGui.verbs[verb].gives


def test_a_whole_answer() -> None:
    answer = """I will drag it.
```python
import pyautogui as pg
import time
from time import sleep
'''what I do'''
pg.FAILSAFE = False
pg.PAUSE = 0.5
pg.moveTo(10, 10)
pg.dragTo(50, 60, duration=1, button='left')
sleep(1)
time.sleep(1)
pg.sleep(1)
```"""
    assert actions(answer) == [
        {"action": "move", "x": 10, "y": 10},
        {**drag(10, 10, 50, 60), "button": "left"},
        *[{"action": "wait", "seconds": 1}] * 3,
    ]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os\nos.system('x')", "line 1: only pyautogui and time can be imported, not os"),
        ("from pyautogui import click", "write 'import pyautogui'"),
        ("__import__('os').system('x')", "line 1: __import__"),
        ("pyautogui.click(int('1'), 2)", "not a plain number"),
        ("x = 5\npyautogui.click(x, 2)", "line 1: only calls"),
        ("pyautogui.click(x, 2)", "without variables"),
        ("for i in range(3):\n    pyautogui.click()", "only calls"),
        ("pyautogui.click(1, 2) or pyautogui.click()", "only calls"),
        ("pyautogui.screenshot().save('x')", "is not allowed"),
        ("pyautogui.screenshot()", "no action 'screenshot'"),
        ("pyautogui.locateOnScreen('a.png')", "no action 'locateOnScreen'"),
        ("pyautogui.clik(1, 2)", "did you mean 'click'"),
        ("pyautogui.click('button.png')", "it needs both x and y"),
        ("pyautogui.click(100)", "it needs both x and y"),
        ("pyautogui.click(1, '2')", "y must be a number"),
        ("pyautogui.click(1, 2, clicks=4)", "from 1 to 3"),
        ("pyautogui.click(1, 2, button='thumb')", "'left', 'middle' or 'right'"),
        ("pyautogui.click(1, 2, button=True)", "'left', 'middle' or 'right'"),
        ("pyautogui.click(1, 2, x=3)", "got x twice"),
        ("pyautogui.click(*[1, 2])", "not a plain number"),
        ("pyautogui.click(**{'x': 1})", "write them out"),
        ("pyautogui.click(1, 2, wait=True)", "no field 'wait'"),
        ("pyautogui.doubleClick(1, 2, clicks=2)", "no field"),
        ("pyautogui.leftClick(1, 2, button='right')", "no field"),
        ("pyautogui.moveTo()", "x and y are missing"),
        ("pyautogui.moveTo(5000, 2)", "outside"),
        ("pyautogui.moveRel(1, 2)", "where the pointer is"),
        ("pyautogui.dragRel(1, 2)", "where the pointer is"),
        ("pyautogui.dragTo(1, 2, mouseDownUp=False)", "use mouseDown"),
        ("pyautogui.scroll(0)", "nothing would move"),
        ("pyautogui.scroll(1001)", "from -1000 to 1000"),
        ("pyautogui.write('')", "1 to"),
        ("pyautogui.write(5)", "must be a string"),
        ("pyautogui.press('ctrl+c')", "use hotkey('ctrl', 'c')"),
        ("pyautogui.press('entr')", "unknown key 'entr'"),
        ("pyautogui.hotkey()", "hotkey: its keys are a list of strings, at least one"),
        ("pyautogui.hotkey('ctrl', 5)", "list of strings"),
        ("pyautogui.keyDown('nokey')", "unknown key"),
        ("time.sleep(61)", "from 0 to 60"),
        ("time.time()", "is not allowed"),
        ("pyautogui.PAUSE = open('x')", "only calls"),
        ("pyautogui.click(1, 2", "line 1 of the code can not be read"),
        ("click at the button", "can not be read"),
        ("import time", "does nothing"),
        ("```python\n```", "holds no code"),
        ("", "holds no code"),
        ("(" * 50_000, "can not be read"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(code: str, words: str) -> None:
    with pytest.raises(BatchRefused) as caught:
        PyAutoGui(SCREEN).read(code)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bad_line_refuses_the_good_ones_before_it() -> None:
    session = PretendSession()
    messages, _ = asyncio.run(run_turn(PyAutoGui(SCREEN), "pyautogui.click(1, 2)\npyautogui.press('entr')", session))
    assert session.batches == []
    assert messages[0]["content"][0]["text"].startswith("Error: line 2: press: unknown key 'entr'")


def test_long_scrolls_are_several_actions() -> None:
    assert [action["dy"] for action in actions("pyautogui.scroll(-250)")] == [100, 100, 50]


def test_special_answers() -> None:
    for code, finish in (("DONE", True), ("```FAIL```", False)):
        turn = PyAutoGui(SCREEN).read(code)
        assert turn.finish is not None
        assert turn.finish.success is finish
        assert turn.parts == []
    assert actions("WAIT") == [{"action": "wait", "seconds": 2}]
    turn = PyAutoGui(SCREEN).read("```python\npyautogui.press('enter')\n```\n```DONE```")
    assert turn.parts[0].envelope["actions"] == [key("enter", repeat=1)]
    assert isinstance(turn.finish, Finish)


def test_a_failed_run_does_not_end() -> None:
    session = PretendSession(outcome("failed", error="no window"))
    messages, finish = asyncio.run(run_turn(PyAutoGui(SCREEN), "pyautogui.press('enter')\nDONE", session))
    assert finish is None
    assert messages[0]["content"][1]["text"] == "Error: no window"


def test_positions() -> None:
    assert PyAutoGui(SCREEN, positions="screen").space == "screen"
    assert PyAutoGui(SCREEN).space == {"picture": [1280, 800]}
    with pytest.raises(ValueError, match="picture or screen"):
        PyAutoGui(SCREEN, positions="grid")


def _source() -> ast.Module:
    """The installed pyautogui's source, which can not be imported without a display."""
    spec = importlib.util.find_spec("pyautogui")
    if spec is None or spec.origin is None:
        pytest.skip("pyautogui is not installed")
    return ast.parse(Path(spec.origin).read_text("utf-8"))


def test_signatures_against_the_installed_pyautogui() -> None:
    functions = {node.name: node for node in _source().body if isinstance(node, ast.FunctionDef)}
    for name, parameters in SIGNATURES.items():
        if name in functions and parameters != ("*",):
            assert tuple(argument.arg for argument in functions[name].args.args) == parameters, name


def test_key_names_against_the_installed_pyautogui() -> None:
    for node in _source().body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "KEY_NAMES":
            names = ast.literal_eval(node.value)
            break
    unknown = []
    for name in names:
        try:
            parse_chord("plus" if name == "+" else name)
        except ValueError:
            unknown.append(name)
    # Keys of other systems that no X keyboard has.
    assert set(unknown) <= {"accept", "final", "junja", "stop"}
