"""Policies of the study's first table: fixed waits, quiet damage, and S150, from which the hand started."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from .simulator import Seen, Verdict
from .traces import TILE, TILES_A_ROW, Event, Frame

CARET_WIDTH, CARET_HEIGHT, CARET_PIXELS = 4, 40, 64
BUSY_CURSORS = ("watch", "wait", "progress", "left_ptr_watch", "half-busy")
SCREEN = (1280, 800)


def is_caret(frame: Frame) -> bool:
    """Is this change shaped like a text caret?"""
    _x, _y, width, height = frame.box
    return width <= CARET_WIDTH and height <= CARET_HEIGHT and frame.pixels <= CARET_PIXELS


@dataclass(frozen=True)
class Mapped:
    """A child of the root window that mapped."""

    time: float
    box: tuple[int, int, int, int]
    override_redirect: bool
    window: int

    @property
    def on_screen(self) -> bool:
        x, y, width, height = self.box
        return x < SCREEN[0] and y < SCREEN[1] and x + width > 0 and y + height > 0

    def touched_by(self, frame: Frame) -> bool:
        """Did this change touch the window?"""
        x, y, width, height = self.box
        for tile in frame.tiles:
            left, top = tile % TILES_A_ROW * TILE, tile // TILES_A_ROW * TILE
            if left < x + width and x < left + TILE and top < y + height and y < top + TILE:
                return True
        return False


def mapped_windows(events: Iterable[Event]) -> list[Mapped]:
    """The windows that mapped and are still there."""
    windows: dict[int, Mapped] = {}
    for event in events:
        if event.name == "Map":
            window, box, override = event.detail[:3]
            windows[window] = Mapped(event.time, (box[0], box[1], box[2], box[3]), bool(override), window)
        elif event.name in ("Unmap", "Destroy"):
            windows.pop(event.detail[0], None)
    return list(windows.values())


def is_unpainted(mapped: Mapped, frames: Iterable[Frame]) -> bool:
    """Has nothing changed where the window is since it mapped?"""
    return not any(frame.time >= mapped.time and mapped.touched_by(frame) for frame in frames)


def pointer_busy(events: Iterable[Event]) -> bool:
    """Does the cursor's shape say "busy"?"""
    busy = False
    for event in events:
        if event.name == "cursor":
            busy = str(event.detail[0]) in BUSY_CURSORS
    return busy


@dataclass(frozen=True)
class Fixed:
    """Always the same wait."""

    seconds: float

    @property
    def name(self) -> str:
        return f"fixed {self.seconds:.1f} s"

    def look(self, seen: Seen) -> Verdict | float:
        return Verdict("settled", seen.now) if seen.now >= self.seconds else self.seconds


@dataclass(frozen=True)
class QuietDamage:
    """No damage event for ``quiet`` seconds; ``allowance`` seconds for the first one."""

    quiet: float
    allowance: float = 0.0

    @property
    def name(self) -> str:
        allowed = f"{self.allowance:.1f} s for a first change" if self.allowance else "no allowance"
        return f"damage quiet {self.quiet * 1000:.0f} ms, {allowed}"

    def look(self, seen: Seen) -> Verdict | float:
        damage = seen.damage
        at = damage[-1] + self.quiet if damage else max(self.quiet, self.allowance)
        return Verdict("settled", seen.now) if seen.now >= at else at


@dataclass(frozen=True)
class Rules:
    """Pings, pixels, pending windows: S150 with its values, and the forms it came from with others.

    Times in seconds. The rules are those of the design notes, "Waiting"; ``ignore_off_screen`` does not wait for
    windows outside of the screen to paint (GTK maps one for each menu, to have a window to grab with).
    """

    name: str
    quiet: float = 0.150
    quiet_by_ping: float = 1.5
    quiet_at_most: float = 0.500
    first_change: float = 0.100
    unanswered: float = 0.100
    hover: float = 0.300
    unpainted: float = 0.400
    scroll_quiet: float = 0.0
    ignore_off_screen: bool = True
    pings: bool = True
    ignore_carets: bool = True
    terminals: bool = True
    launches: bool = True
    cursors: bool = True
    animations: bool = True

    def look(self, seen: Seen) -> Verdict | float:
        frames = seen.frames
        events = seen.events
        handled: float | None = self.unanswered
        if not self.pings:
            handled = 0.0
        elif seen.answers_pings:
            handled = seen.answered(0.0)
        windows = mapped_windows(events)
        if handled is None or self._blocked(seen, windows):
            return float("inf")
        at = self._quiet_from(seen, frames, windows, handled)
        for mapped in windows:
            wanted = mapped.on_screen or not self.ignore_off_screen
            if self.unpainted and wanted and is_unpainted(mapped, frames):
                at = max(at, mapped.time + self.unpainted)
        if seen.now >= at:
            return Verdict("settled", seen.now)
        if self.animations and is_animation(frames, seen.now):
            return Verdict("animating", seen.now)
        return at

    def _blocked(self, seen: Seen, windows: list[Mapped]) -> bool:
        no_window_yet = not any(not mapped.override_redirect for mapped in windows)
        return (
            (self.launches and seen.action == "launch" and no_window_yet)
            or (self.terminals and seen.foreground_busy)
            or (self.cursors and pointer_busy(seen.events))
        )

    def _quiet_from(self, seen: Seen, frames: tuple[Frame, ...], windows: list[Mapped], handled: float) -> float:
        popup = any(mapped.override_redirect for mapped in windows)
        hovering = seen.action == "move" and not popup
        last = max((f.time for f in frames if not (self.ignore_carets and is_caret(f))), default=None)
        if last is None:
            return handled + max(self.first_change, self.hover if hovering else 0.0)
        quiet = max(self.quiet, min(self.quiet_at_most, self.quiet_by_ping * seen.slowest_ping))
        if hovering:
            quiet = max(quiet, self.hover)
        if seen.action == "scroll":
            quiet = max(quiet, self.scroll_quiet)
        return max(last + quiet, handled)


def is_animation(frames: tuple[Frame, ...], now: float) -> bool:
    """15 changes or more in the last second, no pause over 150 ms, at most 2 % of the screen."""
    recent = [frame for frame in frames if frame.time >= now - 1.0 and not is_caret(frame)]
    if now < 1.0 or len(recent) < 15:
        return False
    times = [now - 1.0, *(frame.time for frame in recent), now]
    if any(b - a > 0.150 for a, b in pairwise(times)):
        return False
    left = min(frame.box[0] for frame in recent)
    top = min(frame.box[1] for frame in recent)
    right = max(frame.box[0] + frame.box[2] for frame in recent)
    bottom = max(frame.box[1] + frame.box[3] for frame in recent)
    return (right - left) * (bottom - top) <= 0.02 * SCREEN[0] * SCREEN[1]


S150 = Rules("S150")
S150_STRICT = Rules("S150, scroll quiet 750 ms", scroll_quiet=0.750)
#: The first form with pings: a longer quiet, not adapted, and nothing of terminals, menus or animations.
PING_250 = Rules(
    "ping + pixels, caret ignored, pending windows, 250 ms",
    quiet=0.250,
    quiet_by_ping=0.0,
    terminals=False,
    hover=0.0,
    animations=False,
)

FIRST_TABLE = (
    Fixed(0.5),
    Fixed(1.0),
    Fixed(1.5),
    Fixed(2.0),
    QuietDamage(0.100),
    QuietDamage(0.250, 0.5),
    PING_250,
    S150,
    S150_STRICT,
)
