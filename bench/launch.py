"""How long does a launch take, from the request to the answer "the window is there"?

Ours beside ``gtk-launch`` and ``xdotool search --sync`` for the window's class, on an XFCE of our own; and how long
after the window became viewable ours says so.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.sides import PATIENCE, Answer, in_turns
from deskhand.desktop import DesktopState, start_desktop, stop_desktop
from deskhand.errors import DeskhandError
from deskhand.hand.hand import Hand
from deskhand.hand.x11 import Connection, Event, core

WORDS = "request to 'the window is there'"
#: Entry, and the class of its window.
APPLICATIONS = (
    ("mousepad", "org.xfce.mousepad", "Mousepad"),
    ("xfce4-terminal", "xfce4-terminal", "Xfce4-terminal"),
    ("thunar", "thunar", "Thunar"),
    ("firefox-esr", "firefox-esr", "firefox"),
)


def ask(rounds: int, applications: tuple[tuple[str, str, str], ...] = APPLICATIONS) -> Answer:
    """``rounds`` / 3 launches of each by each side, one third of that for Firefox."""
    answer = Answer("launch", WORDS)
    desktop = start_desktop("xfce")
    try:
        with Hand(desktop.display, desktop.xauthority) as hand:
            for name, entry, window_class in applications:
                tries = max(1, rounds // (9 if name.startswith("firefox") else 3))
                _ask(answer, hand, desktop, name, entry, window_class, tries)
    finally:
        stop_desktop(desktop.display)
    return answer


def _ask(
    answer: Answer, hand: Hand, desktop: DesktopState, name: str, entry: str, window_class: str, tries: int
) -> None:
    late: list[float] = []
    failed: list[str] = []

    def ours() -> float:
        viewable = _Viewable(desktop)
        began = time.monotonic()
        done, _picture = hand.act({"actions": [{"action": "launch", "app": name}], "settle": {"mode": "none"}})
        ended = time.monotonic()
        seen = viewable.stop()
        if not done["ok"]:
            failed.append(str(done["results"][0].get("error")))
        elif seen:
            late.append(ended - seen)
        _close_all(hand, desktop, name)
        return ended - began

    def peer() -> float:
        began = time.monotonic()
        _run(desktop, "gtk-launch", entry)
        _run(desktop, "xdotool", "search", "--sync", "--onlyvisible", "--class", window_class)
        seconds = time.monotonic() - began
        _close_all(hand, desktop, name)
        return seconds

    sides: dict[str, Callable[[], float]] = {"ours": ours, "gtk-launch, xdotool search --sync": peer}
    answer.add(f"{name}, warm", in_turns(sides, tries, answer))
    if late:
        answer.facts[f"{name}: answer after the window was viewable, median ms"] = round(statistics.median(late) * 1000)
    answer.notes += [f"{name}: {line}" for line in dict.fromkeys(failed)]


class _Viewable:
    """Notes when the last new top-level window was mapped, over a connection of its own."""

    def __init__(self, desktop: DesktopState) -> None:
        self._conn = Connection.open(desktop.display, desktop.xauthority)
        self._ended = threading.Event()
        self._at = 0.0
        core.select_input(self._conn, self._conn.root, core.SUBSTRUCTURE_NOTIFY)
        self._conn.subscribe(self._take)
        self._conn.sync()
        self._thread = threading.Thread(target=self._run, name="viewable")
        self._thread.start()

    def stop(self) -> float:
        self._ended.set()
        self._thread.join()
        self._conn.close()
        return self._at

    def _run(self) -> None:
        while not self._ended.is_set():
            self._conn.wait(self._ended.is_set, 0.02)  # events are taken at once; this only ends it

    def _take(self, event: Event) -> None:
        if event.name == "MapNotify" and not event["override_redirect"] and not self._at:
            geometry = core.get_geometry(self._conn, event["window"])
            if geometry.width > 100 and geometry.height > 100:  # no helper window
                self._at = time.monotonic()


def _run(desktop: DesktopState, *command: str) -> None:
    other = {} if desktop.uid == os.getuid() else {"user": desktop.uid, "group": desktop.gid, "extra_groups": []}
    subprocess.run(  # type: ignore[call-overload]
        command,
        env=desktop.env,
        cwd="/",
        check=False,
        timeout=PATIENCE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **other,
    )


def _close_all(hand: Hand, desktop: DesktopState, program: str) -> None:
    """Close every window, and let what closes end: an instance that is still ending would hold up the next launch."""
    for window in hand.windows():
        if window["type"] not in ("desktop", "dock"):
            done, _ = hand.act({"actions": [{"action": "close", "window": window["id"]}]})
            if not done["ok"]:
                raise DeskhandError(f"a window does not close: {done['results'][0].get('error')}")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and (
        any(window["type"] not in ("desktop", "dock") for window in hand.windows()) or _runs(desktop, program)
    ):
        time.sleep(0.05)


def _runs(desktop: DesktopState, program: str) -> bool:
    """Whether the desktop's account has a process of that name that is not dead."""
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == desktop.uid:
                name, _, rest = Path(entry.path, "stat").read_text().partition("(")[2].rpartition(")")
                if name == program[:15] and rest.split()[0] != "Z":
                    return True
    return False
