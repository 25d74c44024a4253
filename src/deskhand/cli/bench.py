"""``deskhand bench``: this project beside its peers, in one run. It is part of the source tree, not of the package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from deskhand.errors import SetupError


def add_to(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    questions: Annotated[
        list[str] | None, typer.Argument(metavar="[QUESTION]...", help="All of the usual ones when none is named.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write what was found.")] = None,
    chart_file: Annotated[Path | None, typer.Option("--chart", metavar="FILE.png", help="Draw the ratios.")] = None,
    page_file: Annotated[Path | None, typer.Option("--page", metavar="FILE.md", help="Write the tables.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Measures of each side.")] = 30,
) -> None:
    """Compare speed and rightness with other tools, side by side; bench/peers.sh installs them."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "bench" / "run.py").is_file():
        raise SetupError("the benchmark is not part of the installed package: run it from a clone of the sources")
    sys.path.insert(0, str(root))
    from bench.questions import QUESTIONS
    from bench.run import run

    for name in questions or []:
        if name not in QUESTIONS:
            raise typer.BadParameter(f"there is no question {name!r}: choose from {', '.join(QUESTIONS)}")
    sys.exit(run(questions or [], rounds, json_file, chart_file, page_file))
