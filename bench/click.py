"""How long does a click take, and a key, beside xdotool and the bindings?

Ours is a move confirmed, and a press of at least 8 ms of server time confirmed by a round trip. xdotool is run as
agents run it: a process each time. The bindings are held; they press for no time at all, which is said in their names.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from bench.sides import PEERS_PYTHON, Answer, HeldPeer, in_turns, program, timed
from bench.widgets import widget
from deskhand.hand.display import Display
from deskhand.hand.hand import Hand
from deskhand.testing import window_manager, xvfb

CLICK_WORDS = "a click; ours is pressed for 8 ms of server time, the bindings for none"
KEY_WORDS = "a key; the same"
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
                "xdotool": timed(program("xdotool", "mousemove", "200", "200", "click", "1", env=server.env)),
                "pyautogui, no pause": first.seconds,
                "pynput, no press time": second.seconds,
                "modal-computer-use, in process": third.seconds,
            }
            answer.add("click", in_turns(sides, rounds, answer))
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
                "xdotool": timed(program("xdotool", "key", "ctrl+a", env=server.env)),
                "pyautogui, no pause": first.seconds,
                "pynput, no press time": second.seconds,
            }
            answer.add("ctrl+a", in_turns(sides, rounds, answer))
    return answer
