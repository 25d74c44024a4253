"""Traces: what a screen did after one action, recorded once and replayed often.

The files hold a JSON list, compressed with xz. Times are seconds after the last input event; positions are root-window
pixels; a tile is 8x8 pixels, number ``row * 160 + column``; tiles of the same content have the same content number.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

TILE = 8
TILES_A_ROW = 160
#: Where the traces are when no folder is named.
FOLDER_VARIABLE = "DESKHAND_SETTLE_TRACES"
#: The kind that never ends; the pooled measures leave it out.
ENDLESS = "ff-spin"


class Frame(NamedTuple):
    """At ``time`` the screen differed from what it was before: ``pixels`` of them, inside ``box`` [x, y, w, h]."""

    time: float
    pixels: int
    box: tuple[int, int, int, int]
    tiles: tuple[int, ...]
    contents: tuple[int, ...]


class Ping(NamedTuple):
    """A _NET_WM_PING; ``role`` A is the window that got the input, B another active one. ``answered`` None: never."""

    sent: float
    answered: float | None
    window: int
    role: str


class Event(NamedTuple):
    """An X event or a reading: ``name`` is Map, Unmap, Create, Destroy, prop, cursor or cm, the rest is its detail."""

    time: float
    name: str
    detail: tuple[Any, ...]


@dataclass(frozen=True)
class Trace:
    """One action and the five seconds after it."""

    kind: str
    action: str
    repeat: int
    loaded: bool
    frames: tuple[Frame, ...]
    pings: tuple[Ping, ...]
    events: tuple[Event, ...]
    damage: tuple[tuple[float, ...], ...]
    #: [time, whether the terminal's foreground process group is not its shell]; None when that was not recorded.
    tty: tuple[tuple[float, bool], ...] | None
    base: dict[int, int] = field(repr=False)
    #: Changes before the action, times negative; empty in traces recorded without any.
    before: tuple[Frame, ...] = ()
    #: WM_CLASS of the window that got the input; empty where it was not recorded.
    window_class: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.repeat}"

    @property
    def terminal(self) -> bool:
        return self.kind.startswith("xt")

    def foreground_busy(self) -> tuple[tuple[float, bool], ...]:
        """``tty``, or the stand-in for traces without it: a terminal's command runs until the terminal's last change.

        Only kinds of a terminal are ever busy: what another terminal does is not this action's doing.
        """
        if not self.terminal:
            return ()
        if self.tty is not None:
            return self.tty
        if not self.frames:
            return ()
        left, top, width, height = self.frames[0].box  # the line typed last, so inside the terminal; a clock is not
        inside = [
            frame.time
            for frame in self.frames
            if frame.box[0] < left + width
            and left < frame.box[0] + frame.box[2]
            and frame.box[1] + frame.box[3] > top
            and top + height > frame.box[1]
        ]
        return ((0.0, True), (inside[-1], False))


def read(path: Path) -> list[Trace]:
    """The traces of one file.

    Raises:
        OSError: it can not be read.
        ValueError: it holds no traces.
    """
    try:
        records = json.loads(lzma.decompress(path.read_bytes()))
        return [_trace(record) for record in records]
    except (lzma.LZMAError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} holds no traces ({error}): give a file that the recorder wrote") from None


def write(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records, as the recorder makes them, in the form that ``read`` reads."""
    text = json.dumps(list(records), separators=(",", ":"))
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def folder(given: str | None = None) -> Path | None:
    """The folder with the traces: the one given, or the environment's; None when there is none."""
    name = given or os.environ.get(FOLDER_VARIABLE)
    return Path(name) if name and Path(name).is_dir() else None


def pooled(traces: Sequence[Trace]) -> list[Trace]:
    """Without the kind that never ends."""
    return [trace for trace in traces if trace.kind != ENDLESS]


def by_kind(traces: Iterable[Trace]) -> dict[str, list[Trace]]:
    kinds: dict[str, list[Trace]] = {}
    for trace in traces:
        kinds.setdefault(trace.kind, []).append(trace)
    return kinds


def _trace(record: dict[str, Any]) -> Trace:
    tty = record.get("tty")
    return Trace(
        kind=record["name"],
        action=record["what"],
        repeat=record["rep"],
        loaded=bool(record["loaded"]),
        frames=tuple(_frames(record["frames"])),
        pings=tuple(Ping(*ping) for ping in record["pings"]),
        events=tuple(Event(event[0], event[1], tuple(event[2:])) for event in record["ev"]),
        damage=tuple(tuple(row) for row in record["dmg"]),
        tty=None if tty is None else tuple((time, bool(busy)) for time, busy in tty),
        base=dict(zip(*record["base"], strict=True)),
        before=tuple(_frames(record.get("before", []))),
        window_class=record.get("class", ""),
    )


def _frames(rows: Iterable[Any]) -> Iterator[Frame]:
    for time, count, box, tiles, contents in rows:
        yield Frame(time, count, (box[0], box[1], box[2], box[3]), tuple(tiles), tuple(contents))
