"""Sides compared in turns, A B A B: what disturbs the machine disturbs all of them alike. Ratios count, not times.

Each benchmark here asks one question and prints, for each side, the median and how many times as long as ours it takes,
and at the end one line of JSON with the ratios.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping

ROUNDS = 30


class NotInstalled(Exception):
    """A side that can not be run here is left out, and said."""


def timed(act: Callable[[], object]) -> Callable[[], float]:
    """A side that is measured from outside: seconds from the call to the end of ``act``."""

    def measure() -> float:
        start = time.perf_counter()
        act()
        return time.perf_counter() - start

    return measure


def compare(question: str, sides: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, float]:
    """Measure each side ``rounds`` times, in turns, after one turn that does not count.

    ``sides`` maps names to calls that give seconds; the first is ours. Prints the table and gives the ratios, keyed
    ``question.side/ours``.
    """
    taken: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, side in sides.items():
            if number and name not in taken:
                continue
            try:
                seconds = side()
            except (NotInstalled, FileNotFoundError):
                print(f"{name:28} is not installed")
                continue
            taken.setdefault(name, [])
            if number:
                taken[name].append(seconds)
    median = {name: statistics.median(times) for name, times in taken.items()}
    ours = median[next(iter(sides))]
    for name, seconds in median.items():
        print(f"{name:28} {seconds * 1000:8.2f} ms  {seconds / ours:7.2f} x ours")
    ratios = {f"{question}.{name}/ours": round(seconds / ours, 2) for name, seconds in median.items()}
    print(json.dumps(ratios))
    return ratios
