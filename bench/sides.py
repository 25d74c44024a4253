"""Sides compared in turns, A B A B: what disturbs the machine disturbs all of them alike. Ratios count, not times."""

from __future__ import annotations

import json
import os
import select
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROUNDS = 30
#: The Python of the virtual environment that ``bench/peers.sh`` makes, and the distribution's.
PEERS_PYTHON = str(Path(__file__).parents[1] / ".setup/bench/bin/python")
SYSTEM_PYTHON = "/usr/bin/python3"
#: Seconds that a peer may take for one answer.
PATIENCE = 60.0


class NotInstalled(Exception):
    """A side that can not be run here is left out, and said."""


@dataclass(frozen=True)
class Row:
    """One side in one case: the median in seconds, how many times ours that is, and of how many tries.

    ``right`` counts the tries whose result was right; None: that is not measured.
    """

    case: str
    side: str
    seconds: float
    ratio: float
    tries: int
    right: int | None = None


@dataclass
class Answer:
    """What one question's run found. ``notes`` are lines for the reader: peers that are missing, what was not done."""

    question: str
    words: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def missing(self, name: str) -> None:
        """Say, once, that a peer is not there."""
        line = f"{name} is not installed (bench/peers.sh)"
        if line not in self.notes:
            self.notes.append(line)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def add(self, case: str, taken: Mapping[str, list[float]], right: Mapping[str, list[bool]] | None = None) -> None:
        """Rows of one case; the first side is ours."""
        medians = {side: statistics.median(times) for side, times in taken.items() if times}
        ours = next(iter(medians.values()), 0.0)
        for side, seconds in medians.items():
            good = sum(right[side]) if right and side in right else None
            ratio = round(seconds / ours, 2) if ours else 0.0
            self.rows.append(Row(case, side, seconds, ratio, len(taken[side]), good))


def timed(act: Callable[[], object]) -> Callable[[], float]:
    """A side that is measured from outside: seconds from the call to the end of ``act``."""

    def measure() -> float:
        start = time.perf_counter()
        act()
        return time.perf_counter() - start

    return measure


def in_turns(
    sides: Mapping[str, Callable[[], float]], rounds: int, answer: Answer, warm_up: bool = True
) -> dict[str, list[float]]:
    """Each side's seconds, ``rounds`` of them, in turns; one turn more that does not count with ``warm_up``."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    missing: set[str] = set()
    for number in range(rounds + warm_up):
        for name, side in sides.items():
            if name in missing:
                continue
            try:
                seconds = side()
            except (NotInstalled, FileNotFoundError):
                missing.add(name)
                answer.missing(name)
                continue
            if number or not warm_up:
                taken[name].append(seconds)
    return {name: times for name, times in taken.items() if name not in missing}


class HeldPeer:
    """A peer's Python, kept running, that does one thing for each line it gets and says how long that took.

    ``body`` defines ``act(given)``, which may give something back; it is measured there, without the pipe.

    Raises (on use):
        NotInstalled: its Python, or what it imports, is not there; it ended or gave no answer.
    """

    _FRAME = """
import json, sys, time
{body}
for line in sys.stdin:
    given = json.loads(line)
    start = time.perf_counter()
    found = act(given)
    print(json.dumps([time.perf_counter() - start, found]), flush=True)
"""

    def __init__(self, python: str, body: str, env: Mapping[str, str], *arguments: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        if os.path.exists(python):
            self._process = subprocess.Popen(
                [python, "-c", self._FRAME.format(body=body), *arguments],
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )

    def ask(self, given: Any = None) -> tuple[float, Any]:
        """Seconds, and what ``act`` gave."""
        process = self._process
        if process is None:
            raise NotInstalled
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps(given) + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], PATIENCE)[0]:
                raise NotInstalled
            seconds, found = json.loads(process.stdout.readline())
        except (BrokenPipeError, ValueError):
            raise NotInstalled from None
        return float(seconds), found

    def seconds(self, given: Any = None) -> float:
        return self.ask(given)[0]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def __enter__(self) -> HeldPeer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def program(*command: str, env: Mapping[str, str], given: bytes = b"") -> Callable[[], None]:
    """Run a program as agents run it: a process each time."""

    def run() -> None:
        subprocess.run(
            command, env=dict(env), check=True, input=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    return run
