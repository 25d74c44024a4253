"""Write ``index.html`` and ``summary.json`` from the files of a trace.

Everything of the trace is data in the page, never markup: the browser gets it as JSON and puts it in as text, and a
Content-Security-Policy lets no script run but the page's own and nothing be fetched from the network.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

from deskhand.hand.errors import SetupError
from deskhand.trace.steps import Steps, read_events

#: Pictures of up to this many bytes together are put into the page, so that one file can be mailed around.
EMBEDDED_AT_MOST = 30_000_000

_NAME = re.compile(r"\d{4,}\.(png|jpg|webp)")
_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}


def write_page(directory: str | os.PathLike[str], *, embedded_at_most: int = EMBEDDED_AT_MOST) -> Path:
    """Make the page and the summary of the trace in ``directory``, also of a run that was killed; the page's path.

    Raises:
        SetupError: There is no trace.
        OSError: The files can not be written.
    """
    directory = Path(directory)
    trace = directory / "trace.jsonl"
    if not trace.is_file():
        raise SetupError(f"{directory} holds no trace: give a directory that --trace wrote.")
    walked = Steps(*read_events(trace))
    _write(directory / "summary.json", lambda file: file.write(_indented(walked.head) + "\n"))

    pictures = _pictures(walked.steps, directory)
    total = sum((directory / name).stat().st_size for name in pictures)
    embedded = total <= embedded_at_most
    data = {**walked.head, "steps": walked.steps, "pictures": pictures, "embedded": embedded, "picture_bytes": total}
    script, style = _asset("page.js").replace("{{marks}}\n", _asset("marks.js")), _asset("page.css")
    parts = {
        "title": html.escape(" · ".join(filter(None, (data["title"], data["goal"]))) or "Trace"),
        "script": script,
        "style": style,
        "script_hash": _hash(script),
        "style_hash": _hash(style),
        "data": _inert(data),
    }

    def write(file: TextIO) -> None:
        for piece in re.split(r"(\{\{\w+\}\})", _asset("page.html")):
            name = piece[2:-2] if piece.startswith("{{") else ""
            if name == "pictures":
                file.writelines(_embedded(pictures, directory) if embedded else ())
            else:
                file.write(parts[name] if name else piece)

    page = directory / "index.html"
    _write(page, write)
    return page


def _pictures(steps: list[dict[str, Any]], directory: Path) -> list[str]:
    """Names of the pictures that the steps show and that are there."""
    named = {step.get(key) for step in steps for key in ("before", "after", "last")}
    # The names come from a file that somebody may have edited: nothing but a picture of this directory is read.
    return sorted(
        name for name in named if isinstance(name, str) and _NAME.fullmatch(name) and (directory / name).is_file()
    )


def _embedded(pictures: list[str], directory: Path) -> Iterator[str]:
    for name in pictures:
        kind = _TYPES[name.rpartition(".")[2]]
        yield f'<script type="text/plain" id="{name}">data:{kind};base64,'
        yield base64.b64encode((directory / name).read_bytes()).decode("ascii")
        yield "</script>\n"


def _inert(data: dict[str, Any]) -> str:
    """JSON that can stand in a script element: without ``<`` neither ``</script>`` nor ``<!--`` can occur."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _indented(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2)


def _asset(name: str) -> str:
    return (files("deskhand.trace") / name).read_text("utf-8")


def _hash(text: str) -> str:
    # Content Security Policy Level 3, Hash Algorithm: base64 of the digest of the element's text.
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _write(path: Path, write: Callable[[TextIO], Any]) -> None:
    """Write whole or not at all: a page that is half there would look like a broken trace."""
    fresh = path.with_name(path.name + ".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    # backslashreplace: a lone surrogate becomes \udXXX, which is JSON's own escape for it.
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        write(file)
    os.replace(fresh, path)
