"""``deskhand trace``: the page of a run that was cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("trace")(trace)


def trace(directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the run was recorded.")]) -> None:
    """Make index.html from a trace's files, also those of a run that was killed."""
    from deskhand.trace import write_page

    print(write_page(directory))
