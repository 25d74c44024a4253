"""The page of the docs: ratios only, as absolute times are those of one machine at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.sides import Answer, Row

#: What stands before this line in a page is written by hand, and kept.
MEASURED = "<!-- measured: written by deskhand bench -->"
HEAD = """\
# Performance
"""
INTRODUCTION = """\
## What was measured

Each question was asked of every side in turns, in one run, on the same displays; what was asked in another question is
not to be compared with it. Figures are how many times as long as ours the others take (1.00 is ours); where a result
can be right or wrong, the tries that were right stand behind.

![Ratios](performance.png)
"""


def page(answers: Sequence[Answer], machine: Mapping[str, Any], before: str = "") -> str:
    """Markdown for all answers, after what ``before``, the page as it was, has above its measured part."""
    kept = before.partition(MEASURED)[0].rstrip() if MEASURED in before else HEAD.rstrip()
    facts = ", ".join(f"{name} {value}" for name, value in machine.items() if not isinstance(value, (dict, list)))
    parts = [f"{kept}\n\n{MEASURED}", INTRODUCTION.rstrip(), f"Machine: {facts}."]
    if machine.get("versions"):
        parts.append("Versions: " + ", ".join(f"{name} {value}" for name, value in machine["versions"].items()) + ".")
    for answer in answers:
        parts.append(f"### {answer.question}: {answer.words}")
        if answer.rows:
            parts.append(_table(answer.rows))
        lines = [f"- {name}: {_value(value)}" for name, value in answer.facts.items()]
        lines += [f"- {note}" for note in answer.notes]
        if lines:
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Row]) -> str:
    sides = list(dict.fromkeys(row.side for row in rows))
    cases = list(dict.fromkeys(row.case for row in rows))
    cells = {(row.case, row.side): _cell(row) for row in rows}
    lines = [f"| | {' | '.join(sides)} |", f"|---|{'---|' * len(sides)}"]
    lines += [f"| {case} | {' | '.join(cells.get((case, side), '') for side in sides)} |" for case in cases]
    return "\n".join(lines)


def _cell(row: Row) -> str:
    return f"{row.ratio:.2f}" + (f" ({row.right} of {row.tries})" if row.right is not None else "")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name} {_value(one)}" for name, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return str(value)
