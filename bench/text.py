"""How long do 200 characters take, and is every one of them right, by the text field's own word?

ASCII and seven scripts with emoji, into GTK, Qt, Tk, xterm and Firefox, on an idle machine and with all cores busy. A
try is *exact* when the field comes to hold the text and nothing else.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.click import MODAL, PYAUTOGUI, PYNPUT
from bench.sides import PEERS_PYTHON, Answer, HeldPeer, NotInstalled, Row, in_turns, program, timed
from bench.widgets import KINDS, Widget, widget
from deskhand.hand.hand import Hand
from deskhand.testing import window_manager, xvfb

WORDS = "200 characters"
LENGTH = 200
TEXTS = {
    "ASCII": 'The quick brown Fox, 0123456789; (jumps) over [the] lazy {dog}! #7 = 50% & "more" ~ `x` <y> a|b\\c/d? ',
    "mixed": "Grüße naïve – “Ωμέγα” Привет мир 日本語テスト 한국어 שלום مرحبا ščřž ½ € ≠ 🎨🚀 ",
}


def text_of(name: str) -> str:
    return (TEXTS[name] * LENGTH)[:LENGTH]


def ask(rounds: int, kinds: tuple[str, ...] = KINDS, loads: tuple[bool, ...] = (False, True)) -> Answer:
    """``rounds`` / 3 tries of each side in each case: seven fields, two texts, two loads."""
    answer = Answer("text", WORDS)
    with TemporaryDirectory() as folder, xvfb() as server, window_manager(server), Hand(server.display) as hand:
        for kind in kinds:
            try:
                with widget(kind, hand, server.env, Path(folder)) as field, ExitStack() as peers:
                    for loaded in loads:
                        for name in TEXTS:
                            text = text_of(name)
                            with busy() if loaded else ExitStack():
                                case = f"{kind}, {name}, {'loaded' if loaded else 'idle'}"
                                _ask(answer, case, hand, server.env, field, text, max(1, rounds // 3), peers)
            except NotInstalled:
                answer.missing(kind)
    pool(answer)
    return answer


def pool(answer: Answer) -> None:
    """Rows over all fields and loads: means, and how many tries were exact."""
    for name in TEXTS:
        rows = [row for row in answer.rows if f", {name}, " in row.case]
        ours = 0.0
        for side in dict.fromkeys(row.side for row in rows):
            found = [row for row in rows if row.side == side]
            tries = sum(row.tries for row in found)
            mean = sum(row.seconds * row.tries for row in found) / tries
            ours = ours or mean
            right = sum(row.right or 0 for row in found)
            answer.rows.append(Row(f"all fields, {name}", side, mean, round(mean / ours, 2), tries, right))


def _ask(
    answer: Answer,
    case: str,
    hand: Hand,
    env: dict[str, str],
    field: Widget,
    text: str,
    tries: int,
    peers: ExitStack,
) -> None:
    exact: dict[str, list[bool]] = {}
    said: list[str] = []

    def judged(name: str, side: Callable[[], float]) -> Callable[[], float]:
        def run() -> float:
            field.clear()
            seconds = side()
            exact.setdefault(name, []).append(field.comes_to(text))
            return seconds

        return run

    def ours(method: str) -> Callable[[], None]:
        def act() -> None:
            action = {"action": "type", "text": text, "method": method}
            done, _picture = hand.act({"actions": [action], "settle": {"mode": "none"}})
            if not done["ok"]:
                said.append(str(done["results"][0].get("error")))

        return act

    pyautogui = peers.enter_context(
        HeldPeer(PEERS_PYTHON, PYAUTOGUI + "def act(given): pyautogui.write(given, interval=0)\n", env)
    )
    pynput = peers.enter_context(HeldPeer(PEERS_PYTHON, PYNPUT + "def act(given): keys.type(given)\n", env))
    modal = peers.enter_context(
        HeldPeer(
            PEERS_PYTHON,
            MODAL + "def act(given): do(backend.keyboard_type(given))\n",
            {**env, "BENCH_SIZE": "1280x800"},
        )
    )
    sides = {
        "ours": timed(ours("keys")),
        "xdotool type --delay 4": timed(program("xdotool", "type", "--delay", "4", "--", text, env=env)),
        "xdotool type": timed(program("xdotool", "type", "--", text, env=env)),
        "pyautogui.write": lambda: pyautogui.seconds(text),
        "pynput type": lambda: pynput.seconds(text),
        "modal-computer-use": lambda: modal.seconds(text),
    }
    if "xterm" not in case:  # its paste key is another one
        sides["paste (ours)"] = timed(ours("paste"))
    taken = in_turns({name: judged(name, side) for name, side in sides.items()}, tries, answer, warm_up=False)
    answer.add(case, taken, exact)
    answer.notes += [f"{case}: {line}" for line in dict.fromkeys(said)]


@contextmanager
def busy() -> Iterator[None]:
    """Every core has something to do."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() or 2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
