"""How long does one exec of the one-file form take, from its start to its reply, beside a bare interpreter and xdotool?

A step by exec is one such call; with xdotool and a program for the picture it is two or more.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable

from bench.sides import SYSTEM_PYTHON, Answer, in_turns, program, timed
from deskhand.hand import build
from deskhand.testing import xvfb

WORDS = "one exec of the one-file hand"
LOOK = {"actions": [{"action": "cursor_position"}]}
CLICK = {
    "actions": [{"action": "click", "x": 200, "y": 200}],
    "settle": {"mode": "none"},
    "picture": {"format": "png"},
}


def ask(rounds: int) -> Answer:
    answer = Answer("one-file", WORDS)
    with tempfile.TemporaryDirectory() as folder, xvfb() as server:
        file = build(os.path.join(folder, "deskhand-hand.pyz"))
        picture = os.path.join(folder, "picture.png")

        def hand(request: object) -> Callable[[], None]:
            return program(SYSTEM_PYTHON, file, env=server.env, given=json.dumps(request).encode())

        click = program("xdotool", "mousemove", "200", "200", "click", "1", env=server.env)
        grab = program("import", "-window", "root", picture, env=server.env)
        look = {
            "ours": timed(hand(LOOK)),
            "python alone": timed(program(SYSTEM_PYTHON, "-c", "pass", env=server.env)),
            "xdotool getmouselocation": timed(program("xdotool", "getmouselocation", env=server.env)),
        }
        answer.add("first reply", in_turns(look, rounds, answer))
        step = {"ours": timed(hand(CLICK)), "xdotool, import": timed(lambda: (click(), grab()))}
        answer.add("a click and a picture at once", in_turns(step, rounds, answer))
    return answer
