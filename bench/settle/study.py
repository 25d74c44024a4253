"""Prints the study's tables: what each policy waits, how often it is right, what each rule buys.

    python -m bench.settle.study [--traces FOLDER] [--cross-validate]

FOLDER holds ``traces_*.json.xz``; without it the environment's DESKHAND_SETTLE_TRACES counts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from .adapted import Adapted
from .crossvalidation import cross_validate
from .measures import FIXED, STEP, against_fixed, clairvoyant, cosmetic, near, steady
from .policies import FIRST_TABLE, S150
from .simulator import Policy, replay
from .traces import FOLDER_VARIABLE, Trace, by_kind, folder, pooled, read

#: Left out of the second pool: page loads, scrolling, a slow command.
SLOW_KINDS = ("ff-static", "ff-img600", "ff-anim800", "ff-later400", "ff-scroll", "xt-slow")
#: The whole step of the fixed way with its own tools (xdotool, 2.0 s, import), from the design notes. Seconds.
FIXED_WHOLE_STEP = 2.529
ADAPTED = Adapted()
#: The adapted policy without one of its rules.
WITHOUT = (
    replace(ADAPTED, name="quiet not adapted to the ping: 150 ms", by_ping=0.0, least=0.150),
    replace(ADAPTED, name="quiet not adapted to the ping: 70 ms", by_ping=0.0),
    replace(ADAPTED, name="no rule for terminals' quiet", terminal=None),
    replace(ADAPTED, name="no throbber rule", throbber=0.0),
    replace(ADAPTED, name="no rule for content processes", content=0.0),
    replace(ADAPTED, name="scroll bars count", scroll_bars=False),
    replace(ADAPTED, name="unpainted windows not waited for", unpainted=0.0),
    replace(ADAPTED, name="no longer wait after a move", hover=0.0),
    replace(ADAPTED, name="no time for a first change", first_change=0.0),
    replace(ADAPTED, name="every quiet cut to 0.8", margin=0.8),
)


class Row(NamedTuple):
    """How a policy does on some traces; seconds."""

    name: str
    waits: list[float]
    near: int
    cosmetic: int
    lost: list[str]

    @property
    def mean(self) -> float:
        return statistics.mean(self.waits)

    def line(self) -> str:
        median, mean = statistics.median(self.waits) * 1000, self.mean * 1000
        times = f"{against_fixed(self.waits):5.2f} {against_fixed(self.waits, FIXED_WHOLE_STEP):5.2f}"
        return f"{self.name:52} {median:5.0f} / {mean:5.0f}   {self.near:3} {self.cosmetic:3}   {times}"


def evaluate(policy: Policy, traces: Sequence[Trace]) -> Row:
    """Replay one policy; ``lost`` names the traces where the fixed wait is right and it is not."""
    return _row(policy.name, traces, [replay(policy, trace).waited for trace in traces])


def measured(name: str, wait: Callable[[Trace], float], traces: Sequence[Trace]) -> Row:
    """The same for a wait that knows the whole trace."""
    return _row(name, traces, [wait(trace) for trace in traces])


def _row(name: str, traces: Sequence[Trace], waits: list[float]) -> Row:
    pairs = list(zip(traces, waits, strict=True))
    lost = [trace.name for trace, wait in pairs if not cosmetic(trace, wait) and cosmetic(trace, FIXED)]
    right = sum(near(trace, wait) for trace, wait in pairs), sum(cosmetic(trace, wait) for trace, wait in pairs)
    return Row(name, waits, *right, lost)


def bounds(traces: Sequence[Trace]) -> list[Row]:
    """What can not be beaten: the clairvoyant, and the one that has no luck."""
    return [
        measured("clairvoyant, near", lambda trace: clairvoyant(trace, "near"), traces),
        measured("clairvoyant, cosmetic", clairvoyant, traces),
        measured("clairvoyant that stays right, cosmetic", steady, traces),
    ]


def _print_pool(title: str, traces: Sequence[Trace], rows: Sequence[Row]) -> None:
    print(f"\n{title} ({len(traces)} traces)")
    print(f"{'policy':52} median / mean ms  near cosm   x fixed: wait, whole step")
    for row in rows:
        lost = f"   loses {', '.join(row.lost[:6])}{' ...' if len(row.lost) > 6 else ''}" if row.lost else ""
        print(row.line() + (lost if not row.name.startswith(("fixed", "damage", "ping")) else ""))


def _print_kinds(traces: Sequence[Trace]) -> None:
    print("\nMean wait in ms for each kind, and cosmetic: fixed 2.0 s, S150, adapted")
    for kind, group in by_kind(traces).items():
        first, ours = evaluate(S150, group), evaluate(ADAPTED, group)
        bound = [statistics.mean(wait(trace) for trace in group) for wait in (clairvoyant, steady)]
        fixed = sum(cosmetic(trace, FIXED) for trace in group)
        means = " ".join(f"{value * 1000:6.0f}" for value in (*bound, first.mean, ours.mean))
        print(f"{kind:14} clairvoyant, steady, S150, adapted {means}   {fixed} {first.cosmetic} {ours.cosmetic}")


def _print_goals(traces: Sequence[Trace], quick: Sequence[Trace]) -> None:
    ours, quickest = evaluate(ADAPTED, traces), evaluate(ADAPTED, quick)
    lucky, steadily = (statistics.mean(wait(trace) for trace in traces) for wait in (clairvoyant, steady))
    below = [kind for kind, group in by_kind(traces).items() if evaluate(ADAPTED, group).lost]
    print("\nGoals")
    print(f"  no kind below the fixed wait: {'met' if not below else 'not met: ' + ', '.join(below)}")
    for name, row, goal in (("pooled", ours, 5.0), ("without the slow kinds", quickest, 6.5)):
        wait, whole = against_fixed(row.waits), against_fixed(row.waits, FIXED_WHOLE_STEP)
        step = FIXED + STEP
        print(
            f"  {name}, {goal} x: {wait:.2f} of a fixed step of {step:.2f} s, {whole:.2f} of one of {FIXED_WHOLE_STEP}"
        )
    print(
        f"  mean wait at most 25 % over the clairvoyant: {ours.mean / lucky * 100 - 100:.0f} %; "
        f"over the one that stays right: {ours.mean / steadily * 100 - 100:.0f} %"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.settle.study", description=__doc__.splitlines()[0])
    parser.add_argument("--traces", metavar="FOLDER", help=f"holds traces_*.json.xz (or {FOLDER_VARIABLE})")
    parser.add_argument("--cross-validate", action="store_true", help="fit the values without a part; a minute")
    given = parser.parse_args(arguments)
    where = folder(given.traces)
    files = sorted(where.glob("traces_*.json.xz")) if where else []
    if not files:
        print(f"there are no traces: give their folder with --traces or {FOLDER_VARIABLE}", file=sys.stderr)
        return 2
    everything = []
    for path in files:
        traces = pooled(read(path))
        everything += traces
        quick = [trace for trace in traces if trace.kind not in SLOW_KINDS]
        policies = (*FIRST_TABLE, ADAPTED)
        _print_pool(path.name, traces, [*(evaluate(policy, traces) for policy in policies), *bounds(traces)])
        if quick:
            rows = [*(evaluate(policy, quick) for policy in (S150, ADAPTED)), *bounds(quick)]
            _print_pool(f"{path.name} without page loads, scrolling and slow commands", quick, rows)
        _print_pool("The adapted policy without one rule", traces, [evaluate(p, traces) for p in (ADAPTED, *WITHOUT)])
        _print_kinds(traces)
        _print_goals(traces, quick or traces)
    if given.cross_validate:
        print("\nFitted without a part, judged on that part")
        for held in cross_validate(everything):
            wrong = ", ".join(held.wrong) or "nothing"
            never = f"; no policy gets {', '.join(held.hopeless)}" if held.hopeless else ""
            print(f"  without {held.left_out:14} mean {held.mean * 1000:4.0f} ms, wrong on {wrong}{never}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
