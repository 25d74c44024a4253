"""``deskhand apps``: what can be launched."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from deskhand.cli.interruption import interruptible
from deskhand.cli.output import DisplayOption, JsonOption, XauthorityOption, print_json
from deskhand.errors import NoDisplay
from deskhand.hand import applications
from deskhand.hand.hand import Hand


def add_to(app: typer.Typer) -> None:
    app.command("apps")(apps)


def apps(
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    as_json: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say which directories were searched.")] = False,
) -> None:
    """List the applications the desktop shows, by the name it shows."""
    with interruptible(Hand(display, xauthority)) as hand:
        try:
            environment = hand.environment()
        except NoDisplay as error:
            if display is not None:
                raise
            # The list needs no display, only to know whose desktop it is.
            environment = dict(os.environ)
            if verbose:
                print(f"{error}; listed for this process's environment", file=sys.stderr)
    found = applications.scan(environment)
    entries = [entry.as_dict() for entry in found.listed()]
    if as_json:
        print_json(entries)
    else:
        for entry in entries:
            print(f"{entry['name']}  ({entry['id']})")
    if verbose:
        for directory in found.searched:
            print(f"searched: {directory}", file=sys.stderr)
        print(f"broken files skipped: {len(found.broken)}", file=sys.stderr)
