"""``deskhand apps``: what can be launched."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from deskhand.cli.elsewhere import DistantHand, TokenFileOption, UrlOption, hand_at
from deskhand.cli.interruption import interruptible
from deskhand.cli.output import DisplayOption, JsonOption, XauthorityOption, print_json
from deskhand.errors import NoDisplay
from deskhand.hand import applications


def add_to(app: typer.Typer) -> None:
    app.command("apps")(apps)


def apps(
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say which directories were searched.")] = False,
) -> None:
    """List the applications the desktop shows, by the name it shows."""
    hand = hand_at(url, token_file, display, xauthority)
    if isinstance(hand, DistantHand):
        listing = hand.listing()
        _print(listing["apps"], as_json)
        if verbose:
            _tell_searched(listing["searched"])
        return
    with interruptible(hand):
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
    _print([entry.as_dict() for entry in found.listed()], as_json)
    if verbose:
        _tell_searched(found.searched)
        print(f"broken files skipped: {len(found.broken)}", file=sys.stderr)


def _print(entries: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        print_json(entries)
    else:
        for entry in entries:
            print(f"{entry['name']}  ({entry['id']})")


def _tell_searched(directories: Iterable[str]) -> None:
    for directory in directories:
        print(f"searched: {directory}", file=sys.stderr)
