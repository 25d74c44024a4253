"""What stands in for a model's mind: it sees what a request holds, in no vendor's form, and says what to do next."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image, ImageChops

#: Tools of ours; everything else is the vendor's computer.
OURS = ("computer_apps", "launch", "finish", "computer_act", "computer_screenshot")


@dataclass(frozen=True)
class Do:
    """One call. ``name`` is a tool of ours, or ``click``, ``type``, ``key``, ``wait`` on the vendor's computer."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What the last message of a request holds.

    ``results`` are the texts of the results of the last calls, in order; ``errors`` of those that failed; ``picture``
    the newest picture's bytes; ``tools`` the names of the tools offered; ``goal`` the text of the first message.
    """

    goal: str
    tools: list[str]
    results: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    text: str = ""
    picture: bytes | None = None


Said = Sequence[Do] | str | Any
"""The calls of the reply, words without a call, or an answer of the server as it is."""
Mind = Callable[[Seen], Said]


def told(*replies: Said) -> Mind:
    """Says these, one after the other, whatever it sees; the last one again and again."""
    left = list(replies)
    return lambda seen: left.pop(0) if len(left) > 1 else left[0]


NOTE = "Dear reader,\n\nwritten by a model's stand-in: ÅåÉé, Привет, 日本語.\n"


class Writer:
    """Writes ``NOTE`` with the editor that the desktop has and saves it; each step waits for what it must see first."""

    def __init__(self, editor: str = "Mousepad", path: str = "~/hello.txt") -> None:
        self._editor = editor
        self._path = path
        self._step = self._list
        self._editing = b""
        self._pressed = False

    def __call__(self, seen: Seen) -> Sequence[Do] | str:
        if seen.errors:
            return [Do("finish", {"success": False, "summary": f"it went wrong: {seen.errors[0]}"})]
        return self._step(seen)

    def _list(self, seen: Seen) -> Sequence[Do]:
        assert seen.goal
        assert seen.picture, "the first message holds a picture"
        self._step = self._open
        return [Do("computer_apps")]

    def _open(self, seen: Seen) -> Sequence[Do]:
        assert self._editor in seen.results[-1], "the editor is in the list of applications"
        self._step = self._write
        return [Do("launch", {"app": self._editor})]

    def _write(self, seen: Seen) -> Sequence[Do]:
        assert self._editor in seen.results[-1], "the editor's window is in the result"
        self._editing = _picture(seen)
        self._step = self._save
        return [Do("type", {"text": NOTE})]

    def _save(self, seen: Seen) -> Sequence[Do]:
        if _share_changed(self._editing, seen) == 0:
            return [Do("wait", {"seconds": 0.5})]
        self._editing = _picture(seen)
        self._step = self._name
        return [Do("key", {"keys": "ctrl+s"})]

    def _name(self, seen: Seen) -> Sequence[Do]:
        if _share_changed(self._editing, seen) < A_DIALOG:
            return [Do("wait", {"seconds": 0.5})]
        self._step = self._end
        return [Do("key", {"keys": "ctrl+a"}), Do("type", {"text": self._path})]

    def _end(self, seen: Seen) -> Sequence[Do]:
        if _share_changed(self._editing, seen) < A_DIALOG:
            return [Do("finish", {"success": True, "summary": "The note is written and saved."})]
        # It is still there: it may be about to go, or not have taken the key.
        self._pressed = not self._pressed
        return [Do("key", {"keys": "Return"}) if self._pressed else Do("wait", {"seconds": 1})]


#: Share of the screen's pixels that a dialog over the editor changes at least, and typing a note does not.
A_DIALOG = 0.08


def _picture(seen: Seen) -> bytes:
    assert seen.picture, "every result of the computer comes with a picture"
    return seen.picture


def _share_changed(before: bytes, seen: Seen) -> float:
    with Image.open(io.BytesIO(before)) as one, Image.open(io.BytesIO(_picture(seen))) as other:
        difference = ImageChops.difference(one.convert("L"), other.convert("L"))
        return 1 - difference.histogram()[0] / (one.width * one.height)
