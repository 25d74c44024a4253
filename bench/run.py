"""Asks the questions, and writes what was found: a table on the terminal, JSON, a chart, and the page of the docs."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.chart import draw
from bench.questions import QUESTIONS
from bench.sides import ROUNDS, Answer, Row
from bench.table import page
from bench.versions import versions
from deskhand.errors import DeskhandError

#: Asked when none is named: ``step-stock`` takes as long as ``step`` again.
USUAL = tuple(name for name in QUESTIONS if name != "step-stock")


def run(
    questions: Sequence[str] = (),
    rounds: int = ROUNDS,
    json_file: Path | None = None,
    chart_file: Path | None = None,
    page_file: Path | None = None,
) -> int:
    """Ask, print as it goes, write the files; the exit status."""
    answers: list[Answer] = []
    failed = 0
    on = machine()
    if not questions:
        print(f"asks {', '.join(USUAL)}: about an hour; name the ones you want", flush=True)
    for name in questions or USUAL:
        print(f"\n{name}", flush=True)
        try:
            answer = QUESTIONS[name](rounds)
        except DeskhandError as error:
            print(f"  {error}", file=sys.stderr)
            failed = 1
            continue
        answers.append(answer)
        _print(answer)
        found = {"machine": on, "answers": [one.as_dict() for one in answers]}
        if json_file is not None:  # after each: a long run that is stopped has said what it knows
            json_file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    publish(answers, on, chart_file, page_file)
    return failed


def publish(answers: Sequence[Answer], on: dict[str, Any], chart_file: Path | None, page_file: Path | None) -> None:
    """Draw the chart and write the page; what a page says before its measured part stays."""
    if chart_file is not None and answers:
        draw(answers, chart_file)
    if page_file is not None and answers:
        before = page_file.read_text(encoding="utf-8") if page_file.exists() else ""
        page_file.write_text(page(answers, {"versions": versions(), **on}, before), encoding="utf-8")


def read(json_file: Path) -> tuple[list[Answer], dict[str, Any]]:
    """The answers of an earlier run, and its machine."""
    found = json.loads(json_file.read_text(encoding="utf-8"))
    answers = [Answer(**{**one, "rows": [Row(**row) for row in one["rows"]]}) for one in found["answers"]]
    return answers, found["machine"]


def machine() -> dict[str, Any]:
    """What the run stood on; no name and no path of it."""
    return {
        "versions": versions(),
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "python": platform.python_version(),
    }


def _print(answer: Answer) -> None:
    print(f"  {answer.words}")
    for row in answer.rows:
        right = f"  {row.right} of {row.tries} right" if row.right is not None else ""
        print(f"  {row.case:44} {row.side:34} {row.seconds * 1000:9.2f} ms {row.ratio:8.2f} x ours{right}")
    for name, value in answer.facts.items():
        print(f"  {name}: {value}")
    for note in answer.notes:
        print(f"  note: {note}")
    ratios = {f"{row.case}: {row.side}/ours": row.ratio for row in answer.rows}
    print("  " + json.dumps(ratios, ensure_ascii=False), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Compare this project with its peers.")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"measures of each side ({ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", dest="json_file")
    parser.add_argument("--chart", type=Path, metavar="FILE.png", dest="chart_file")
    parser.add_argument("--page", type=Path, metavar="FILE.md", dest="page_file", help="the page of the docs")
    parser.add_argument(
        "--from",
        type=Path,
        nargs="+",
        metavar="FILE",
        dest="earlier",
        help="ask nothing: use what these runs found last",
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.questions if name not in QUESTIONS]
    if unknown:
        parser.error(f"there is no question {unknown[0]!r}: choose from {', '.join(QUESTIONS)}")
    if given.rounds < 1:
        parser.error("--rounds must be 1 or more")
    if given.earlier:
        runs = [read(file) for file in given.earlier]
        newest = {answer.question: answer for found, _machine in runs for answer in found}
        publish(list(newest.values()), runs[-1][1], given.chart_file, given.page_file)
        return 0
    return run(given.questions, given.rounds, given.json_file, given.chart_file, given.page_file)
