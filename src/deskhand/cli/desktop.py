"""``deskhand desktop up|down|status``: whole desktops on this machine."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from deskhand.cli.output import JsonOption, a_number, print_json
from deskhand.errors import BatchRefused, NoDisplay, SetupError

#: Those of ``deskhand.desktop``, whose import only these commands need.
SESSIONS = ("gnome", "lxqt", "mate", "openbox", "xfce")

app = typer.Typer(help="Start and stop desktops of their own on this machine.", no_args_is_help=True)


def _a_session(name: str) -> str:
    if name not in SESSIONS:
        raise typer.BadParameter(f"there is no session {name!r}: choose one of {', '.join(SESSIONS)}")
    return name


def _a_size(text: str) -> str:
    from deskhand.desktop import parse_size

    try:
        parse_size(text)
    except SetupError as error:
        raise typer.BadParameter(str(error)) from None
    return text


DesktopSessionOption = Annotated[
    str, typer.Option("--session", metavar="NAME", callback=_a_session, help=f"One of {', '.join(SESSIONS)}.")
]
SizeOption = Annotated[
    str, typer.Option("--size", metavar="WxH", callback=_a_size, help="The screen of the desktop, in pixels.")
]


@app.command()
def up(
    session: DesktopSessionOption = "xfce",
    size: SizeOption = "1280x800",
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="SECONDS", min=1, max=600, callback=a_number, help="For everything to be ready."
        ),
    ] = 60.0,
    serve: Annotated[
        bool | None,
        typer.Option(
            "--serve/--no-serve",
            help="Start computerd too, in an account of its own; as root, the default where it is installed.",
        ),
    ] = None,
    serve_same_account: Annotated[
        bool,
        typer.Option(
            "--serve-same-account",
            help="Start computerd in the account of the desktop: any application there can read its token.",
        ),
    ] = False,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where computerd listens; port 0: a free one.")
    ] = "127.0.0.1:0",
    as_json: JsonOption = False,
) -> None:
    """Start a desktop, and what serves it; returns when it is painted."""
    from deskhand.desktop import parse_size, start_desktop
    from deskhand.desktop.serving import NotServable

    served = _is_to_be_served(serve, serve_same_account)
    try:
        desktop = start_desktop(session, parse_size(size), timeout, serve=listen if served else None)
    except NotServable as error:
        if serve or serve_same_account:
            raise
        served = False
        _say(f"the desktop is not served: {error} (--no-serve leaves it at that)")
        desktop = start_desktop(session, parse_size(size), timeout)
    if as_json:
        print_json(desktop.as_dict())
        return
    if served:
        _say(f"computerd serves it at {desktop.url}, with the token in {desktop.token_file}")
    print(desktop.display)


def _say(line: str) -> None:
    """To the person: standard output is data only."""
    print(f"deskhand: {line}", file=sys.stderr)


def _is_to_be_served(serve: bool | None, same_account: bool) -> bool:
    """Whether computerd is to be started: asked for, or as root by default.

    Raises:
        BatchRefused: It was asked for and can not be kept apart from the desktop, and that was not waived.
    """
    root = os.geteuid() == 0
    if root and same_account:
        raise BatchRefused("root keeps computerd and the desktop apart: leave out --serve-same-account")
    if same_account:
        _say(
            "--serve-same-account: every application on this desktop can read computerd's token and memory, and so can "
            "act as whoever holds the token; as root both get accounts of their own"
        )
        return True
    if serve and not root:
        raise BatchRefused(
            "computerd and the desktop get accounts of their own, which root alone can make: run this as root, or "
            "accept with --serve-same-account that applications can read the token"
        )
    return root if serve is None else serve


@app.command()
def down(
    display: Annotated[str, typer.Argument(metavar="DISPLAY", help="Such as :71.")],
    as_json: JsonOption = False,
) -> None:
    """End a desktop and everything on it; leaves nothing behind."""
    from deskhand.desktop import stop_desktop
    from deskhand.hand.x11.display_name import parse_display

    try:
        parse_display(display)
    except NoDisplay as error:
        raise BatchRefused(str(error)) from None  # a slip in the command, and no display that can not be reached
    stop_desktop(display)
    if as_json:
        print_json({"display": display, "stopped": True})


@app.command()
def status(as_json: JsonOption = False) -> None:
    """List the desktops that were started here."""
    from deskhand.desktop import list_desktops

    found = list_desktops()
    if as_json:
        print_json(found)
        return
    for desktop in found:
        width, height = desktop["size"]
        state = desktop["state"] if desktop["alive"] else f"dead: {desktop['reason']}"
        print(f"{desktop['display']}  {desktop['session']}  {width}x{height}  {desktop['user']}  {state}")
