"""The command line: one file per command.

Standard output is data only; with ``--json`` it is JSON. Errors are one line on standard error. Exit status: 0 done,
1 error, 2 usage or refused before anything was sent, 3 failed after that, 5 display not reachable or lost; 128 and the
signal's number when a signal ended it, with nothing left pressed or running.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn


def main() -> NoReturn:
    """The ``deskhand`` command."""
    stopped_by = _end_tidily_on_signals()
    if sys.stdout is not None:
        # A file's name may hold bytes that are no text: written as JSON and Python write them, \udcff.
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = _run(stopped_by)
    except KeyboardInterrupt:
        status = 130
    if status == 130:
        from deskhand.cli.output import fail

        number = stopped_by[-1] if stopped_by else signal.SIGINT
        fail(f"stopped by {signal.Signals(number).name}", 128 + number)
    sys.exit(status)


def _run(stopped_by: list[int]) -> int:
    import typer

    from deskhand.cli.app import app
    from deskhand.cli.output import fail
    from deskhand.errors import DeskhandError
    from deskhand.hand.answering import status_of
    from deskhand.hand.applications import ApplicationError

    try:
        return int(app(standalone_mode=False, prog_name="deskhand") or 0)
    except (DeskhandError, ApplicationError) as error:
        if stopped_by:  # what was under way when the signal came may end in an error of its own
            return 130
        fail(str(error), status_of(error))
    except typer.Abort:
        return 130
    except Exception as error:
        if hasattr(error, "format_message") and hasattr(error, "exit_code"):
            fail(_usage(error), 2)
        # A fault of ours: one line for the person, the traceback for who asks for it.
        if os.environ.get("DESKHAND_TRACEBACK"):
            raise
        fail(f"unexpected {type(error).__name__}: {error} (set DESKHAND_TRACEBACK=1 to see where)", 1)


def _usage(error: Any) -> str:
    """A ``ClickException`` in one line. (Typer has Click in it, under a private name.)"""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "deskhand"
    message = error.format_message().strip().removesuffix(".")
    if "No such option: -" in message and command.endswith("act"):
        message += " (before words that begin with '-' put '--', or write FIELD=VALUE)"
    if type(error).__name__ == "NoArgsIsHelpError":
        message = "a command is missing"
    return f"{message}: see {command} --help"


def _end_tidily_on_signals() -> list[int]:
    """Have SIGTERM and SIGHUP end the command as Ctrl-C does; gives the list that the signal's number is put in."""
    seen: list[int] = []

    def stop(number: int, _frame: Any) -> None:
        seen.append(number)
        signal.raise_signal(signal.SIGINT)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, stop)
    # A shell starts what runs in the background with SIGINT ignored; the others need it then all the same.
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: _raise_interrupt() if seen else None)
    return seen


def _raise_interrupt() -> NoReturn:
    raise KeyboardInterrupt
