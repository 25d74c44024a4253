"""The newest pictures of each sandbox's desktop, kept here, so that none is read back from the sandbox."""

from __future__ import annotations

import base64
import os
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from weakref import WeakKeyDictionary

#: Pictures kept of each sandbox: what a loop may still ask for is its newest and, at the turn cap, its last.
KEPT = 4
_kept: WeakKeyDictionary[object, dict[str, bytes]] = WeakKeyDictionary()


class Frame(NamedTuple):
    """A picture as PNG, and its facts as the hand told them."""

    content: bytes
    blank: bool = False


def keep(environment: object, path: str, content: bytes) -> None:
    """Remember the picture that is called ``path`` in that sandbox."""
    frames = _kept.setdefault(environment, {})
    frames.pop(path, None)
    frames[path] = content
    while len(frames) > KEPT:
        del frames[next(iter(frames))]


def forget(environment: object, path: str) -> None:
    """No picture is called ``path`` any more."""
    _kept.get(environment, {}).pop(path, None)


def data_url(environment: object, path: str) -> str | None:
    """The picture as a model's request carries it; None when it is not kept here."""
    content = _kept.get(environment, {}).get(path)
    return None if content is None else png_data_url(content)


def png_data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def write_beside(directory: Path, name: str, content: bytes) -> None:
    """Write a file into a directory that a sandbox may write to as well: never through a link that it has made.

    Raises:
        OSError: It can not be written.
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            os.unlink(name, dir_fd=opened)
        except FileNotFoundError:
            pass
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=opened)
        with os.fdopen(file, "wb") as out:
            out.write(content)
    finally:
        os.close(opened)


def name_in(directory: PurePosixPath, target: PurePosixPath) -> str | None:
    """The name of ``target`` when it is directly in ``directory``; None when it is elsewhere."""
    return target.name if target.parent == directory and target.name not in ("", ".", "..") else None
