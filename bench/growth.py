"""What do more desktops on one machine cost each of them, and more applications a listing?

1, 4, 16 and 64 X servers, each with a hand in a process of its own, all at work at the same time: seconds a step over
all of them (it should fall until the processors are used up and then stay), and the slowest desktop beside the median
(nobody gets less than a fair share). And the list of 100, 1,000 and 10,000 applications, warm: seconds an entry.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.applications import LOOKUP, OURS, make_entries
from bench.sides import PATIENCE, Answer, HeldPeer, Row, in_turns
from deskhand.testing import xvfb

WORDS = "steps on many desktops at once, lists of many applications"
DESKTOPS = (1, 4, 16, 64)
ENTRIES = (100, 1000, 10000)
#: Seconds that all are at work for.
WORK = 6.0
#: Tells that it is ready, waits for the line with the time to begin and to end, and tells how many steps it made.
_BODY = """
import sys, time
from deskhand.hand.hand import Hand
batch = {"actions": [{"action": "click", "x": 200, "y": 200}], "settle": {"mode": "none"}, "picture": True}
with Hand() as hand:
    hand.act(batch)
    print("ready", flush=True)
    begin, end = map(float, sys.stdin.readline().split())
    time.sleep(max(0.0, begin - time.monotonic()))
    steps = 0
    while time.monotonic() < end:
        hand.act(batch)
        steps += 1
    print(steps, flush=True)
"""
_LISTING = """
import os, sys
{ours}
listing()
def act(given): return listing()
"""


def ask(
    rounds: int, desktops: tuple[int, ...] = DESKTOPS, entries: tuple[int, ...] = ENTRIES, work: float = WORK
) -> Answer:
    """``rounds`` / 10 tries with each number of desktops, ``rounds`` listings of each size; ratios to the first."""
    answer = Answer("growth", WORDS)
    taken: dict[int, list[float]] = {count: [] for count in desktops}
    shares: dict[int, list[float]] = {count: [] for count in desktops}
    for _ in range(max(1, rounds // 10)):
        for count in desktops:
            steps = at_work(count, work)
            taken[count].append(work / sum(steps))
            shares[count].append(min(steps) / statistics.median(steps))
    _add(answer, "a step, over all desktops", "desktop", taken)
    for count in desktops[1:]:
        answer.facts[f"steps of the slowest of {count} desktops, the median's being 1"] = round(min(shares[count]), 2)
    _add(answer, "an entry of the list", "entry", _listings(entries, rounds, answer))
    answer.facts["processors"] = os.cpu_count()
    return answer


def at_work(count: int, seconds: float) -> list[int]:
    """How many steps each of ``count`` desktops makes in the same ``seconds``."""
    source = str(Path(__file__).resolve().parents[1] / "src")
    with ExitStack() as running:
        hands = []
        for _ in range(count):
            server = running.enter_context(xvfb())
            hand = subprocess.Popen(
                [sys.executable, "-c", _BODY],
                env={**server.env, "PYTHONPATH": source},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            running.callback(_end, hand)
            hands.append(hand)
        for hand in hands:
            assert hand.stdout is not None
            assert hand.stdout.readline() == "ready\n"
        begin = time.monotonic() + 0.5
        for hand in hands:
            assert hand.stdin is not None
            hand.stdin.write(f"{begin} {begin + seconds}\n")
            hand.stdin.flush()
        return [int(hand.communicate(timeout=seconds + PATIENCE)[0]) for hand in hands]


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def _listings(entries: tuple[int, ...], rounds: int, answer: Answer) -> dict[int, list[float]]:
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as top, ExitStack() as running:
        sides = {}
        for count in entries:
            folder = Path(top, str(count), "applications")
            folder.mkdir(parents=True)
            make_entries(folder, count)
            env = {**os.environ, "XDG_DATA_HOME": top + "/none", "XDG_DATA_DIRS": str(folder.parent)}
            body = _LISTING.format(ours=OURS)
            sides[str(count)] = running.enter_context(HeldPeer(sys.executable, body, env, str(LOOKUP))).seconds
        taken = in_turns(sides, rounds, answer)
    return {int(name): [one / int(name) for one in times] for name, times in taken.items()}


def _add(answer: Answer, case: str, unit: str, taken: dict[int, list[float]]) -> None:
    first = 0.0
    for count, times in taken.items():
        seconds = statistics.median(times)
        first = first or seconds
        many = unit if count == 1 else {"entry": "entries"}.get(unit, unit + "s")
        answer.rows.append(Row(case, f"{count:,} {many}", seconds, round(seconds / first, 2), len(times)))
