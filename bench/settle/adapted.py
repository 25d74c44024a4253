"""The policy that the study found: as right as S150, shorter where the screen itself says that it may be.

What differs from S150, each with a switch so that the study can say what it buys:

- the quiet adapts to how fast this client answers *now*: ``base`` and ``by_ping`` times the slowest ping of this
  action, between ``least`` and ``most``. Not the slowest ever seen: one slow start would slow down every later step.
- a terminal whose shell is in the foreground again has little more to say: ``terminal``, also counted from the moment
  at which the command ended, as the terminal paints its last output after that.
- a client that lets other processes draw its content (a browser) answers pings while that content is still to come:
  ``content`` at least, after what may load something.
- a throbber (a tiny place that changes again and again) promises more: ``throbber``, and it is no animation that one
  stops waiting for.
- of what is as small as a caret only what is upright, or a speck of a few pixels, does not count: the rest may be a
  throbber. After a scroll, thin upright strips do not count: scroll bars that fade.
- places that changed again and again *before* the action are ambient: changes inside them do not count.
- windows mapped outside of the screen have nothing to paint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .measures import regions
from .policies import SCREEN, Mapped, is_animation, is_caret, is_unpainted, mapped_windows, pointer_busy
from .simulator import Seen, Verdict
from .traces import TILE, Frame

Box = tuple[int, int, int, int]
#: A place is ambient when it changed this often before the action, and is at most this part of the screen.
AMBIENT_CHANGES, AMBIENT_AREA = 3, 0.02
#: What moves inside a place moves a little around it, too. Pixels.
AMBIENT_MARGIN = 4
THROBBER_SIZE, THROBBER_MEMORY = 16, 0.5
SPECK_PIXELS = 8
UPRIGHT_HEIGHT, SCROLL_BAR_WIDTH = 8, 16


@dataclass(frozen=True)
class Adapted:
    """Times in seconds; ``margin`` scales every quiet, to see how near to failing the values are."""

    name: str = "adapted"
    base: float = 0.060
    by_ping: float = 1.5
    least: float = 0.070
    most: float = 0.300
    terminal: float | None = 0.060
    throbber: float = 0.150
    content: float = 0.120
    first_change: float = 0.100
    unanswered: float = 0.100
    hover: float = 0.300
    unpainted: float = 0.400
    scroll_bars: bool = True
    ambient: bool = True
    margin: float = 1.0

    def look(self, seen: Seen) -> Verdict | float:
        windows = [mapped for mapped in mapped_windows(seen.events) if mapped.on_screen]
        handled = seen.answered(0.0) if seen.answers_pings else self.unanswered
        no_window_yet = seen.action == "launch" and not any(not mapped.override_redirect for mapped in windows)
        if handled is None or no_window_yet or seen.foreground_busy or pointer_busy(seen.events):
            return float("inf")
        places = ambient_places(seen.before) if self.ambient else []
        frames = [frame for frame in seen.frames if self._counts(frame, seen.action, places)]
        at = self._quiet_from(seen, frames, windows, handled)
        freed = seen.foreground_freed
        if freed is not None and self.terminal is not None:
            at = max(at, freed + self.terminal * self.margin)
        for mapped in windows:
            if is_unpainted(mapped, seen.frames):
                at = max(at, mapped.time + self.unpainted)
        if seen.now >= at:
            return Verdict("settled", seen.now)
        recent = [frame for frame in frames if frame.time >= seen.now - 1.0]
        throbbing = 2 * sum(map(is_tiny, recent)) >= len(recent)
        if is_animation(tuple(frames), seen.now) and not throbbing:
            return Verdict("animating", seen.now)
        return at

    def _quiet_from(self, seen: Seen, frames: Sequence[Frame], windows: Sequence[Mapped], handled: float) -> float:
        hovering = seen.action == "move" and not any(mapped.override_redirect for mapped in windows)
        if not frames:
            return handled + (self.hover if hovering else self.first_change * self.margin)
        quiet = max(self.least, min(self.most, self.base + self.by_ping * seen.slowest_ping))
        if seen.terminal and self.terminal is not None:
            quiet = self.terminal
        if seen.content_processes and seen.action in ("key", "click"):
            quiet = max(quiet, self.content)
        if is_throbber(frames):
            quiet = max(quiet, self.throbber)
        quiet *= self.margin
        return max(frames[-1].time + max(quiet, self.hover if hovering else 0.0), handled)

    def _counts(self, frame: Frame, action: str, places: Sequence[Box]) -> bool:
        if any(_inside(frame.box, place) for place in places):
            return False
        _x, _y, width, height = frame.box
        upright = height >= UPRIGHT_HEIGHT and height >= 2 * width
        if is_caret(frame) and (upright or frame.pixels <= SPECK_PIXELS):
            return False
        return not (self.scroll_bars and action == "scroll" and upright and width <= SCROLL_BAR_WIDTH)


def is_throbber(frames: Sequence[Frame]) -> bool:
    """Was the last change tiny, and not the first tiny one of the last half second?"""
    if not frames:
        return False
    last = frames[-1].time
    recent = [frame for frame in frames if frame.time >= last - THROBBER_MEMORY]
    return is_tiny(recent[-1]) and sum(is_tiny(frame) for frame in recent) >= 2


def is_tiny(frame: Frame) -> bool:
    """Did nothing change but places of at most ``THROBBER_SIZE`` pixels? A page and its tab may each have one."""
    if max(frame.box[2:]) <= THROBBER_SIZE:
        return True
    if frame.pixels > THROBBER_SIZE * THROBBER_SIZE:
        return False
    most = THROBBER_SIZE // TILE + 1  # a place of that size may begin in the middle of a tile
    return all(max(size) <= most for size in regions(frame.tiles))


def ambient_places(before: Sequence[Frame]) -> list[Box]:
    """Small places that changed again and again while nobody acted."""
    boxes: list[tuple[Box, int]] = []
    most = AMBIENT_AREA * SCREEN[0] * SCREEN[1]
    for frame in before:
        box, count = frame.box, 1
        if box[2] * box[3] > most:
            continue
        apart = []
        for other, times in boxes:
            if _inside(box, other) or _inside(other, box) or _overlap(box, other):
                box, count = _union(box, other), count + times
            else:
                apart.append((other, times))
        boxes = [*apart, (box, count)]
    return [box for box, count in boxes if count >= AMBIENT_CHANGES and box[2] * box[3] <= most]


def _inside(inner: Box, outer: Box) -> bool:
    """Is ``inner`` inside ``outer`` and its margin?"""
    return (
        inner[0] >= outer[0] - AMBIENT_MARGIN
        and inner[1] >= outer[1] - AMBIENT_MARGIN
        and inner[0] + inner[2] <= outer[0] + outer[2] + AMBIENT_MARGIN
        and inner[1] + inner[3] <= outer[1] + outer[3] + AMBIENT_MARGIN
    )


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def _union(a: Box, b: Box) -> Box:
    left, top = min(a[0], b[0]), min(a[1], b[1])
    right, bottom = max(a[0] + a[2], b[0] + b[2]), max(a[1] + a[3], b[1] + b[3])
    return left, top, right - left, bottom - top
