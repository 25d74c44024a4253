"""What every command takes and prints, and how it ends."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from deskhand.errors import SetupError
from deskhand.hand.answering import Reply

#: Characters of an error line: what it quotes may be anything.
_LONGEST_LINE = 2000


def a_number(value: float) -> float:
    """A range check lets NaN pass."""
    if not math.isfinite(value):
        raise typer.BadParameter("it must be a number")
    return value


DisplayOption = Annotated[
    str | None, typer.Option("--display", metavar="NAME", help="The X display, such as :71; else DISPLAY.")
]
XauthorityOption = Annotated[
    str | None, typer.Option("--xauthority", metavar="FILE", help="The cookie file; else XAUTHORITY.")
]
SessionOption = Annotated[
    str | None,
    typer.Option("--session", metavar="NAME", help="Keeps keys held for the next call with that name, for a minute."),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.1, max=600, callback=a_number, help="Of every wait for the X server."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def fail(message: str, status: int) -> NoReturn:
    """One line on standard error, and the exit status."""
    line = "".join(character if character.isprintable() else " " for character in message)
    if len(line) > _LONGEST_LINE:
        line = line[: _LONGEST_LINE - 3] + "..."
    if sys.stderr is not None:
        print(f"deskhand: {line}", file=sys.stderr)
    sys.exit(status)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=not _is_utf8()), flush=True)


def end(reply: Reply, as_json: bool, text: str = "") -> NoReturn:
    """Print a reply and end with its status; its error, if any, goes to standard error too."""
    if as_json:
        print_json(reply.with_base64())
    elif text:
        print(text, flush=True)
    if reply.status:
        fail(error_of(reply), reply.status)
    sys.exit(0)


def error_of(reply: Reply) -> str:
    """Why a reply is not ok."""
    for result in reply.answer.get("results", []):
        if result["status"] == "failed":
            return str(result["error"])
    return str(reply.answer.get("error", "failed"))


def write_file(path: Path, content: bytes) -> None:
    """Replace ``path`` whole or not at all, so that no reader takes an old or a half picture for this one.

    Raises:
        SetupError: It can not be written.
    """
    try:
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SetupError(f"{path} can not be written: {error.strerror}") from None


def _replace(path: Path, content: bytes) -> None:
    unfinished = path.parent / f".deskhand-{os.getpid()}"
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _is_utf8() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
