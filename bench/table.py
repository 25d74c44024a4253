"""The page of the docs: ratios only, as absolute times are those of one machine at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.sides import Answer, Row

HEAD = """\
# Benchmarks

Made by `deskhand bench --page docs/benchmarks.md`. Each question was asked of every side in turns, in one run, on the
same displays; what was asked in another run is not to be compared with it. Figures are how many times as long as ours
the others take (1.00 is ours); where a result can be right or wrong, the tries that were right stand behind.

![Ratios](benchmarks.png)
"""


def page(answers: Sequence[Answer], machine: Mapping[str, Any]) -> str:
    """Markdown for all answers."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.items() if name != "load before and after")
    parts = [HEAD.rstrip(), f"Machine: {facts}."]
    for answer in answers:
        parts.append(f"## {answer.question}: {answer.words}")
        if answer.rows:
            parts.append(_table(answer.rows))
        parts += [f"- {name}: {_value(value)}" for name, value in answer.facts.items()]
        parts += [f"- {note}" for note in answer.notes]
    text = "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"
    return text.replace("|\n- ", "|\n\n- ").replace("hand\n- ", "hand\n\n- ")


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
