"""Are the adapted policy's values those of these traces only? Fit them without one kind, one repeat, or the loaded
ones, and see how they do on what was left out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from .adapted import Adapted
from .measures import FIXED, cosmetic
from .simulator import replay
from .traces import Trace

#: The values tried: 72 policies.
GRID = tuple(
    replace(Adapted(), base=base, by_ping=by_ping, least=least, throbber=throbber)
    for base, by_ping, least, throbber in product(
        (0.04, 0.06, 0.08), (1.0, 1.5, 2.0), (0.06, 0.07, 0.08, 0.1), (0.0, 0.15)
    )
)
#: A policy must be right on what it is fitted to also with every quiet cut to this part.
MARGIN = 0.8


class Held(NamedTuple):
    """How policies fitted without a part did on that part: mean wait in seconds, and where they were wrong."""

    left_out: str
    mean: float
    wrong: list[str]
    #: Right with the fixed wait, wrong with every policy of the grid, whatever it is fitted to.
    hopeless: list[str]


class Scores:
    """Each policy of the grid on each trace, computed once."""

    def __init__(self, traces: Sequence[Trace], grid: Sequence[Adapted] = GRID, margin: float = MARGIN) -> None:
        self._traces = traces
        self._grid = grid
        possible = [cosmetic(trace, FIXED) for trace in traces]
        self._waits = [[replay(policy, trace).waited for trace in traces] for policy in grid]
        self._wrong = [self._wrong_ones(waits, possible) for waits in self._waits]
        self._nearly_wrong = [
            self._wrong_ones([replay(replace(policy, margin=margin), trace).waited for trace in traces], possible)
            for policy in grid
        ]
        # What no policy of the grid gets right would forbid them all.
        self._hopeless = set(range(len(traces))).intersection(*self._wrong)

    def _wrong_ones(self, waits: Sequence[float], possible: Sequence[bool]) -> set[int]:
        rows = zip(self._traces, waits, possible, strict=True)
        return {index for index, (trace, wait, right) in enumerate(rows) if right and not cosmetic(trace, wait)}

    def fit(self, among: Sequence[int]) -> int:
        """The grid's shortest policy that is as right as the fixed wait on these traces, the margin taken off.

        Raises:
            ValueError: none is.
        """
        wanted = set(among) - self._hopeless
        fitting = [
            number
            for number in range(len(self._grid))
            if not wanted & self._wrong[number] and not wanted & self._nearly_wrong[number]
        ]
        if not fitting:
            raise ValueError("no policy of the grid is right on all of these traces: widen the grid")
        return min(fitting, key=lambda number: statistics.mean(self._waits[number][index] for index in among))

    def leave_out(self, name: str, key: Callable[[Trace], object]) -> Held:
        """Leave out the traces of each value of ``key`` in turn."""
        waits, wrong = [], []
        for value in dict.fromkeys(key(trace) for trace in self._traces):
            inside = [index for index, trace in enumerate(self._traces) if key(trace) != value]
            outside = [index for index, trace in enumerate(self._traces) if key(trace) == value]
            number = self.fit(inside)
            waits += [self._waits[number][index] for index in outside]
            wrong += [self._traces[index].name for index in outside if index in self._wrong[number] - self._hopeless]
        hopeless = [self._traces[index].name for index in sorted(self._hopeless)]
        return Held(name, statistics.mean(waits), sorted(wrong), hopeless)


def cross_validate(traces: Sequence[Trace], grid: Sequence[Adapted] = GRID, margin: float = MARGIN) -> list[Held]:
    """Leave out one kind, one repeat, and the traces of a busy or of an idle machine, where there are several."""
    scores = Scores(traces, grid, margin)
    keys: tuple[tuple[str, Callable[[Trace], object]], ...] = (
        ("one kind", lambda trace: trace.kind),
        ("one repeat", lambda trace: trace.repeat),
        ("loaded or not", lambda trace: trace.loaded),
    )
    return [scores.leave_out(name, key) for name, key in keys if len({key(trace) for trace in traces}) > 1]
