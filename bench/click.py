"""How long does a click take, and a key, beside xdotool and the bindings?

Ours is a move confirmed, and a press of at least 8 ms of server time confirmed by a round trip. Beside it stands the
same press sent bare: XTEST's requests and one round trip, with nothing looked at and nothing written down. xdotool is
run as agents run it: a process each time. The bindings are held; they press for no time at all, which is said in their
names.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.sides import PEERS_PYTHON, Answer, HeldPeer, in_turns, program, timed
from bench.widgets import widget
from deskhand.hand.display import Display
from deskhand.hand.hand import Hand
from deskhand.hand.pointer import HOLD_MS
from deskhand.hand.x11 import Connection, xtest
from deskhand.testing import window_manager, xvfb

CLICK_WORDS = "a click; ours is pressed for 8 ms of server time, the bindings for none"
KEY_WORDS = "a key; the same"
BARE = "XTEST alone, 8 ms"
CONTROL_L, A = 37, 38  # keycodes of a PC keyboard, as Xvfb has one
PYAUTOGUI = """
import sys, types
sys.modules["mouseinfo"] = types.ModuleType("mouseinfo")  # it wants Tk, and nothing here wants it
sys.modules["mouseinfo"].MouseInfoWindow = None
import pyautogui
pyautogui.PAUSE = 0
pyautogui.FAILSAFE = False
"""
#: modal-computer-use's backend for X11, held, without its daemon's HTTP: that wants to start a desktop of its own.
MODAL = """
import asyncio, os
from modal_computer_use.daemon.desktop.x11 import X11DesktopBackend
from modal_computer_use.models import ScreenshotOptions
loop = asyncio.new_event_loop()
backend = X11DesktopBackend(*map(int, os.environ["BENCH_SIZE"].split("x")), display=os.environ["DISPLAY"])
def do(coroutine): return loop.run_until_complete(coroutine)
"""
PYNPUT = "from pynput import keyboard, mouse\npointer, keys = mouse.Controller(), keyboard.Controller()\n"


def ask_click(rounds: int) -> Answer:
    answer = Answer("click", CLICK_WORDS)
    with xvfb() as server, Display(server.display) as display:
        turn = [0]

        def click() -> None:
            turn[0] += 1
            display.pointer.move((200 + turn[0] % 50, 200))
            display.pointer.click("left")

        pyautogui = PYAUTOGUI + "def act(given): pyautogui.click(200, 200)\n"
        pynput = PYNPUT + "def act(given):\n    pointer.position = (200, 200)\n    pointer.click(mouse.Button.left)\n"
        with (
            HeldPeer(PEERS_PYTHON, pyautogui, server.env) as first,
            HeldPeer(PEERS_PYTHON, pynput, server.env) as second,
            HeldPeer(
                PEERS_PYTHON,
                MODAL + "def act(given): do(backend.mouse_click(200, 200))\n",
                {**server.env, "BENCH_SIZE": "1280x800"},
            ) as third,
        ):
            sides = {
                "ours": timed(click),
                BARE: timed(lambda: bare_click(display.conn)),
                "xdotool": timed(program("xdotool", "mousemove", "200", "200", "click", "1", env=server.env)),
                "pyautogui, no pause": first.seconds,
                "pynput, no press time": second.seconds,
                "modal-computer-use, in process": third.seconds,
            }
            compare(answer, "click", sides, rounds)
    return answer


def ask_key(rounds: int) -> Answer:
    answer = Answer("key", KEY_WORDS)
    batch = {"actions": [{"action": "key", "keys": "ctrl+a"}], "settle": {"mode": "none"}}
    with TemporaryDirectory() as folder, xvfb() as server, window_manager(server), Hand(server.display) as hand:
        pyautogui = PYAUTOGUI + "def act(given): pyautogui.hotkey('ctrl', 'a', interval=0)\n"
        pynput = PYNPUT + "def act(given):\n    with keys.pressed(keyboard.Key.ctrl):\n        keys.tap('a')\n"
        with (
            widget("Tk", hand, server.env, Path(folder)),
            HeldPeer(PEERS_PYTHON, pyautogui, server.env) as first,
            HeldPeer(PEERS_PYTHON, pynput, server.env) as second,
        ):
            sides = {
                "ours": timed(lambda: hand.act(batch)),
                BARE: timed(lambda: bare_key(hand.display.conn)),
                "xdotool": timed(program("xdotool", "key", "ctrl+a", env=server.env)),
                "pyautogui, no pause": first.seconds,
                "pynput, no press time": second.seconds,
            }
            compare(answer, "ctrl+a", sides, rounds)
    return answer


def bare_click(conn: Connection) -> None:
    xtest.fake_input(conn, xtest.MOTION, 0, 200, 200)
    xtest.fake_input(conn, xtest.BUTTON_PRESS, 1)
    xtest.fake_input(conn, xtest.BUTTON_RELEASE, 1, delay_ms=HOLD_MS)
    conn.sync()


def bare_key(conn: Connection) -> None:
    for code in (CONTROL_L, A):
        xtest.fake_input(conn, xtest.KEY_PRESS, code)
    xtest.fake_input(conn, xtest.KEY_RELEASE, A, delay_ms=HOLD_MS)
    xtest.fake_input(conn, xtest.KEY_RELEASE, CONTROL_L)
    conn.sync()


def compare(answer: Answer, case: str, sides: Mapping[str, Callable[[], float]], rounds: int) -> None:
    """A row for each side, and what ours adds to the bare press."""
    taken = in_turns(sides, rounds, answer)
    answer.add(case, taken)
    added = statistics.median(taken["ours"]) - statistics.median(taken[BARE])
    answer.facts[f"added to XTEST alone by a {answer.question}"] = f"{added * 1000:.2f} ms"
