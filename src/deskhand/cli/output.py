"""What every command prints, and how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer

from deskhand.errors import SetupError
from deskhand.hand.answering import Reply

DisplayOption = Annotated[
    Optional[str], typer.Option("--display", metavar="NAME", help="The X display, such as :71; else DISPLAY.")
]
XauthorityOption = Annotated[
    Optional[str], typer.Option("--xauthority", metavar="FILE", help="The cookie file; else XAUTHORITY.")
]
SessionOption = Annotated[
    Optional[str],
    typer.Option("--session", metavar="NAME", help="Keeps keys held for the next call with that name, for a minute."),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=600, help="Of every wait for the X server.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def fail(message: str, status: int) -> NoReturn:
    """One line on standard error, and the exit status."""
    print(f"deskhand: {message}", file=sys.stderr)
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
    if path.exists() and not path.is_file():  # /dev/stdout, a pipe
        try:
            path.write_bytes(content)
        except OSError as error:
            raise SetupError(f"{path} can not be written: {error.strerror}") from None
        return
    unfinished = path.with_name(f".{path.name}.deskhand")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise SetupError(f"{path} can not be written: {error.strerror}") from None


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
