"""``deskhand serve``: computerd, the desktop over HTTP."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from deskhand.cli.output import DisplayOption, XauthorityOption, fail


class LogLevel(StrEnum):
    """What the log tells."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def add_to(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    token_file: Annotated[
        str | None, typer.Option("--token-file", metavar="FILE", help="Holds the token; for its owner alone, mode 600.")
    ] = None,
    token_fd: Annotated[
        int | None, typer.Option("--token-fd", metavar="N", min=0, help="A descriptor to read the token from.")
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where; port 0 takes any. Or unix:PATH; or systemd, the socket that a socket unit passes, which nobody"
            " else can take while this is started again; or fd:N, a socket of that number.",
        ),
    ] = "127.0.0.1:8765",
    launcher: Annotated[
        str | None,
        typer.Option(
            "--launcher", metavar="PATH", envvar="COMPUTERD_LAUNCHER", help="The launcher's socket, where there is one."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name that it is known under.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option("--allow-origin", metavar="ORIGIN", help="Whose pages may ask, too.")
    ] = None,
    wait_for_desktop: Annotated[
        bool, typer.Option("--wait-for-desktop", help="Not healthy before the screen has shown more than one colour.")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="A person may take over at the live view; else it only shows.")
    ] = False,
    trace: Annotated[
        str | None, typer.Option("--trace", metavar="DIR", help="Record what everybody does, in a directory under DIR.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="What the log tells.")] = LogLevel.info,
) -> None:
    """Serve one desktop over HTTP, to who has the token; see docs/how-to/computerd.md."""
    try:
        from deskhand.computerd import secret
        from deskhand.computerd.serve import Settings
        from deskhand.computerd.serve import serve as run
    except ImportError as error:
        fail(str(error), 1)
    if (token_file is None) == (token_fd is None):
        fail("the token is needed from one place: --token-file FILE or --token-fd N", 2)
    token = secret.from_file(token_file) if token_file is not None else secret.from_descriptor(int(token_fd or 0))
    display = display or os.environ.get("DISPLAY") or None
    if display is None:
        fail("no display is named: set DISPLAY or pass --display", 2)
    run(
        Settings(
            display,
            xauthority,
            token,
            listen,
            launcher or None,
            tuple(allow_host or ()),
            tuple(allow_origin or ()),
            wait_for_desktop,
            log_level.value,
            control,
            trace,
        )
    )
