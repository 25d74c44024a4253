"""Records traces on a real desktop, in the form that ``traces`` reads, through the hand's own modules.

    python -m bench.settle.recorder --out FILE.json.xz [--display :N] [--repeats 2] [--only KIND ...]

Without ``--display`` a desktop of our own is started and stopped. What is recorded beside one action: the two seconds
before it and the five after it; pixels, damage, windows, the cursor's name, pings, and what the terminal runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from deskhand.errors import DeskhandError, SetupError
from deskhand.hand.errors import RequestFailed
from deskhand.hand.focus import top_level_of
from deskhand.hand.hand import Hand
from deskhand.hand.ping import Pings
from deskhand.hand.screen import Capture, Screen
from deskhand.hand.x11 import Connection, Event, core, damage, xfixes

from .pixels import Differences
from .traces import TILE, TILES_A_ROW, write

BEFORE, AFTER = 2.0, 5.0
#: Seconds between two looks at the pixels, and between two pings. The first is a frame of most screens.
LOOK_EVERY, PING_EVERY = 0.016, 0.050


class Look(NamedTuple):
    """The screen's bytes at one time (CLOCK_MONOTONIC)."""

    time: float
    data: bytes


class Recording:
    """Watches one display from its creation until ``stop``, in a thread and over a connection of its own.

    ``target`` is a window that gets the input, or 0. Call ``acted`` right after the last input event.

    Raises (on creation):
        SetupError: the screen is not 1280 pixels wide with 4 bytes a pixel, as the traces' tiles are numbered for it.
    """

    def __init__(self, display: str, xauthority: str | None, target: int) -> None:
        self._conn = Connection.open(display, xauthority)
        self._screen = Screen(self._conn)
        first = self._screen.capture()
        if first.screen[0] != TILE * TILES_A_ROW or first.layout.bytes_per_pixel != 4:
            self._conn.close()
            raise SetupError(f"{display} can not be recorded: start a desktop of 1280x800 pixels and depth 24")
        self.first: Capture = first
        self.looks: list[Look] = [Look(first.time, first.data)]
        self.damage: list[tuple[float, int, int, int, int]] = []
        self.events: list[list[Any]] = []
        self.pings: list[list[Any]] = []
        self.tty: list[list[Any]] = []
        self._pings = Pings(self._conn)
        self.target = self._pings.target(target) if target else None
        top_level = top_level_of(self._conn, target) if target else 0
        name = core.get_property(self._conn, top_level, core.ATOM_WM_CLASS) if top_level else None
        self.window_class = name.value.split(b"\0")[1].decode("latin-1") if name and name.value.count(b"\0") > 1 else ""
        pid = core.get_property(self._conn, top_level, self._conn.atom("_NET_WM_PID")).cardinals() if top_level else []
        self._terminal = pid[0] if pid and self.target is None else 0
        self._acted: float | None = None
        self._ended = threading.Event()
        damage.available(self._conn)
        self._damage = damage.create(self._conn, self._conn.root, damage.BOUNDING_BOX)
        if xfixes.available(self._conn):
            xfixes.select_cursor_input(self._conn, self._conn.root, True)
        self._dirty = True
        self._conn.subscribe(self._take)
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="recording")
        self._thread.start()

    def acted(self, at: float) -> None:
        """The last input event was sent at this time."""
        self._acted = at

    def wait(self, seconds: float) -> None:
        """Let the recording go on for that long, or until it fails."""
        self._thread.join(seconds)

    def stop(self) -> None:
        """End it.

        Raises:
            Exception: whatever ended the recording early.
        """
        self._ended.set()
        self._thread.join()
        self._screen.close()
        self._conn.close()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        asked: dict[tuple[int, int], int] = {}
        next_ping = 0.0
        try:
            while not self._ended.is_set():
                now = time.monotonic()
                if self._acted is not None and now >= next_ping:
                    next_ping = now + PING_EVERY
                    self._ping(asked)
                for key in [key for key in asked if self._pings.answered(key) is not None]:
                    row = self.pings[asked.pop(key)]
                    row[1] = row[0] + (self._pings.answered(key) or 0.0)
                if self._dirty:
                    self._dirty = False
                    damage.subtract(self._conn, self._damage)
                    taken = self._screen.capture()
                    if taken.data != self.looks[-1].data:
                        self.looks.append(Look(taken.time, taken.data))
                if self._terminal:
                    self._note_tty()
                # A fixed rate is the point: a trace has one look for each frame of the screen.
                self._conn.wait(self._ended.is_set, max(0.0, now + LOOK_EVERY - time.monotonic()))
        except Exception as error:
            self._failed = error

    def _ping(self, asked: dict[tuple[int, int], int]) -> None:
        active = core.get_property(self._conn, self._conn.root, self._conn.atom("_NET_ACTIVE_WINDOW")).cardinals()
        other = self._pings.target(active[0]) if active and active[0] else None
        for role, window in (("A", self.target), ("B", other)):
            if window is not None and (role == "A" or window != self.target):
                asked[self._pings.send(window)] = len(self.pings)
                self.pings.append([time.monotonic(), None, window, role])

    def _note_tty(self) -> None:
        busy = foreground_busy(self._terminal)
        if not self.tty or self.tty[-1][1] != busy:
            self.tty.append([time.monotonic(), busy])

    def _take(self, event: Event) -> None:
        now = time.monotonic()
        if event.name == "DAMAGE.Notify":
            self._dirty = True
            self.damage.append((now, event["x"], event["y"], event["width"], event["height"]))
        elif event.name == "MapNotify" and event["event"] == self._conn.root:
            try:
                at = core.get_geometry(self._conn, event["window"])
            except RequestFailed:
                return  # gone again
            box = [at.x, at.y, at.width, at.height]
            self.events.append([now, "Map", event["window"], box, bool(event["override_redirect"])])
        elif event.name in ("UnmapNotify", "DestroyNotify") and event["event"] == self._conn.root:
            self.events.append([now, event.name.removesuffix("Notify"), event["window"]])
        elif event.name == "XFIXES.CursorNotify":
            name = event["cursor_name"]
            self.events.append([now, "cursor", self._conn.atom_name(name) if name else 0])


def record(hand: Hand, display: str, xauthority: str | None, kind: str, what: str, act: Act) -> dict[str, Any]:
    """Record what follows one action; the record that ``traces.write`` writes.

    ``act`` gets the hand, prepares, yields the window that will get the input, and acts when it is resumed.

    Raises:
        DeskhandError: the action failed; nothing was recorded.
    """
    steps = act(hand)
    recording = Recording(display, xauthority, next(steps))
    try:
        recording.wait(BEFORE)
        began = time.monotonic()
        next(steps, None)
        last = time.monotonic()
        recording.acted(last)
        recording.wait(AFTER + 0.1)
    finally:
        recording.stop()
    return {"name": kind, "what": what, "act": round(last - began, 4), **_as_record(recording, began, last)}


def _as_record(recording: Recording, began: float, last: float) -> dict[str, Any]:
    def since(row: Sequence[Any]) -> list[Any]:
        return [round(row[0] - last, 4), *row[1:]]

    differences = Differences(recording.first, last)
    frames = differences.frames(recording.looks)
    touched = list(dict.fromkeys(tile for frame in frames if frame.time >= 0 for tile in frame.tiles))
    at_the_action = [look for look in recording.looks if look.time < last][-1]
    pings = [
        [round(sent - last, 4), None if answered is None else round(answered - last, 4), window, role]
        for sent, answered, window, role in recording.pings
    ]
    return {
        "tgt": recording.target or 0,
        "class": recording.window_class,
        "frames": [frame for frame in frames if frame.time >= 0],
        "before": [frame._replace(tiles=(), contents=()) for frame in frames if frame.time < began - last],
        "base": [touched, differences.numbers(at_the_action.data, touched)],
        "dmg": [since(row) for row in recording.damage if row[0] >= last],
        "ev": [since(row) for row in recording.events if row[0] >= last - 0.001],
        "pings": pings,
        **({"tty": [since(row) for row in recording.tty]} if recording.tty else {}),
    }


def foreground_busy(pid: int) -> bool:
    """Whether a terminal runs a command: the foreground process group of its terminal is not its shell's (proc(5))."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
        for child in children:
            with open(f"/proc/{child}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            group, session, foreground = int(fields[2]), int(fields[3]), int(fields[5])
            if session == int(child) and foreground > 0 and foreground != group:
                return True
    except (OSError, ValueError, IndexError):
        return False
    return False


@contextmanager
def _desktop(display: str | None) -> Iterator[tuple[str, str | None]]:
    if display is not None:
        yield display, os.environ.get("XAUTHORITY")
        return
    from deskhand.desktop import start_desktop, stop_desktop

    desktop = start_desktop("xfce", (1280, 800))
    try:
        yield desktop.display, desktop.xauthority
    finally:
        stop_desktop(desktop.display)


#: Prepares, yields the window that will get the input, then acts.
Act = Callable[[Hand], Iterator[int]]


def main(arguments: Sequence[str] | None = None) -> int:
    from .scenarios import SCENARIOS, pages

    parser = argparse.ArgumentParser(prog="python -m bench.settle.recorder", description=__doc__.splitlines()[0])
    parser.add_argument("--out", metavar="FILE", required=True, type=Path)
    parser.add_argument("--display", help="a running desktop of 1280 pixels' width; else one is started")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--loaded", action="store_true", help="say in the traces that the machine was kept busy")
    parser.add_argument("--only", nargs="*", metavar="KIND", choices=list(SCENARIOS), help=", ".join(SCENARIOS))
    given = parser.parse_args(arguments)
    records: list[dict[str, Any]] = []
    try:
        with (
            _desktop(given.display) as (display, xauthority),
            pages() as address,
            Hand(display, xauthority) as hand,
        ):
            for kind in given.only or SCENARIOS:
                scenario = SCENARIOS[kind]
                for repeat in range(given.repeats):
                    record_ = record(hand, display, xauthority, kind, scenario.what, scenario.act(address))
                    records.append({**record_, "rep": repeat, "loaded": given.loaded})
                    print(f"{kind} {repeat}: {len(record_['frames'])} changes", flush=True)
    except DeskhandError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if records:
            write(given.out, records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
