"""The command tree."""

from __future__ import annotations

import typer

from deskhand.cli import (
    act,
    apps,
    bench,
    desktop,
    doctor,
    fleet,
    launch,
    launcher,
    mcp,
    run,
    screenshot,
    serve,
    trace,
    view,
    windows,
)

app = typer.Typer(
    name="deskhand",
    help="Give an agent the Linux desktop you already run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(desktop.app, name="desktop")
app.add_typer(fleet.app, name="fleet")
for command in (apps, launch, act, screenshot, windows, run, mcp, trace, view, doctor, bench, launcher, serve):
    command.add_to(app)


@app.callback(invoke_without_command=True)
def deskhand(version: bool = typer.Option(False, "--version", help="Print the version and end.")) -> None:
    """Give an agent the Linux desktop you already run."""
    if version:
        import importlib.metadata

        typer.echo(importlib.metadata.version("deskhand"))
        raise typer.Exit
