"""``deskhand launcher``: lists and launches applications as the desktop's account, for computerd in another one."""

from __future__ import annotations

from typing import Annotated

import typer

from deskhand.cli.output import DisplayOption, XauthorityOption


def add_to(app: typer.Typer) -> None:
    app.command("launcher")(launcher)


def launcher(
    serve_uid: Annotated[
        str, typer.Option("--serve-uid", metavar="UID|NAME", help="The one account that is served: computerd's.")
    ],
    socket: Annotated[
        str, typer.Option("--socket", metavar="PATH", help="Where to listen.")
    ] = "/run/launcher/launcher.sock",
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    no_new_privs: Annotated[
        bool,
        typer.Option("--no-new-privs/--new-privs", help="Applications may gain no privileges: no sudo in them."),
    ] = True,
) -> None:
    """List and launch applications for computerd, as the account of the desktop."""
    from deskhand.computerd.launcher.__main__ import display_of, uid_of
    from deskhand.computerd.launcher.listening import serve

    serve(socket, uid_of(serve_uid), display_of(display), xauthority, new_privileges=not no_new_privs)
