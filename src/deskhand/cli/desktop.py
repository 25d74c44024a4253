"""``deskhand desktop up|down|status``: whole desktops on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from deskhand.cli.output import JsonOption, print_json
from deskhand.desktop import SESSIONS, list_desktops, parse_size, start_desktop, stop_desktop

app = typer.Typer(help="Start and stop desktops of their own on this machine.", no_args_is_help=True)


@app.command()
def up(
    session: Annotated[str, typer.Option("--session", metavar="NAME", help=f"One of {', '.join(SESSIONS)}.")] = "xfce",
    size: Annotated[str, typer.Option("--size", metavar="WxH", help="The screen, in pixels.")] = "1280x800",
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, max=600, help="For everything to be ready.")
    ] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Start a desktop; returns when it is painted."""
    desktop = start_desktop(session, parse_size(size), timeout)
    if as_json:
        print_json(desktop.as_dict())
    else:
        print(desktop.display)


@app.command()
def down(
    display: Annotated[str, typer.Argument(metavar="DISPLAY", help="Such as :71.")],
    as_json: JsonOption = False,
) -> None:
    """End a desktop and everything on it; leaves nothing behind."""
    stop_desktop(display)
    if as_json:
        print_json({"display": display, "stopped": True})


@app.command()
def status(as_json: JsonOption = False) -> None:
    """List the desktops that were started here."""
    found = list_desktops()
    if as_json:
        print_json(found)
        return
    for desktop in found:
        width, height = desktop["size"]
        state = desktop["state"] if desktop["alive"] else f"dead: {desktop['reason']}"
        print(f"{desktop['display']}  {desktop['session']}  {width}x{height}  {desktop['user']}  {state}")
