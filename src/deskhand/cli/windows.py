"""``deskhand windows``: the windows on the display."""

from __future__ import annotations

import typer

from deskhand.cli.elsewhere import TokenFileOption, UrlOption, hand_at
from deskhand.cli.interruption import interruptible
from deskhand.cli.output import DisplayOption, JsonOption, XauthorityOption, print_json


def add_to(app: typer.Typer) -> None:
    app.command("windows")(windows)


def windows(
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the windows: id, rectangle, application, title."""
    with interruptible(hand_at(url, token_file, display, xauthority)) as hand:
        found = hand.windows()
    if as_json:
        print_json(found)
        return
    for window in found:
        x, y, width, height = window["rect"]
        mark = "*" if window.get("active") else " "
        print(f"{mark} {window['id']:>10}  {width}x{height}+{x}+{y}  {window['app_id'] or '-'}  {window['title']}")
