"""What changes on the screen while it is watched: rectangles of pixels that differ, and windows that map.

DAMAGE says when and where to look; the pixels say whether anything is different: clients repaint what has not changed.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Set, Tuple

from .errors import RequestFailed
from .screen import Capture, Screen
from .uncovered import Uncovered, UncoveredPlaces
from .x11 import Connection, Event, core, damage, xfixes

Rect = Tuple[int, int, int, int]
#: A text caret: at most this wide and high, and this many pixels, and upright. It blinks for ever and means nothing.
CARET_WIDTH, CARET_HEIGHT, CARET_PIXELS, UPRIGHT_HEIGHT = 4, 40, 64, 8
#: As small but not upright: nothing when it is a speck of at most this many pixels (the rest of a shadow), else perhaps
#: a throbber's arc.
SPECK_PIXELS = 8
#: A throbber is at most this wide and high.
TINY = 16
#: What an ambient place moves may reach this many pixels beyond where it was seen.
PLACE_MARGIN = 4
#: Names of the cursors that say "busy" (the X cursor font's, freedesktop's and CSS's).
BUSY_CURSORS = ("watch", "wait", "progress", "left_ptr_watch", "half-busy")
#: What a window manager's frame takes at most, in pixels.
FRAME_TOP, FRAME_SIDE = 40, 10
#: Rows of unchanged pixels between two changes for them to count as two.
BAND_GAP = 8
#: Seconds between two looks at the pixels: a screen that changes all the time must not keep this process busy.
LOOK_EVERY = 0.008


class Change(NamedTuple):
    """At ``time`` the pixels of ``rects`` ([x, y, width, height]) were seen to differ.

    ``caret``: all of them are carets, specks, or in places that are to be ignored; ``tiny``: none of the others
    is larger than a throbber.
    """

    time: float
    rects: List[Rect]
    caret: bool
    tiny: bool = False


class Mapped(NamedTuple):
    """A child of the root window that mapped while we watched."""

    window: int
    time: float
    override_redirect: bool
    rect: Rect


class ScreenWatch:
    """Watches the root window of one connection from its creation until ``close``; a context manager."""

    def __init__(self, conn: Connection, screen: Screen) -> None:
        self._conn = conn
        self._screen = screen
        self.changes: List[Change] = []
        self.mapped: List[Mapped] = []
        self._painted: Set[int] = set()
        self._gone: Set[int] = set()
        self._new_maps: List[Tuple[float, Event]] = []
        self._dirty: Optional[Rect] = None  # [x0, y0, x1, y1]
        self._looked = 0.0
        self._ignored: List[Rect] = []
        self._uncovered = UncoveredPlaces(conn)
        self._cursor = 0  # atom of the name of the cursor that was shown last, since we watch
        self.began = time.monotonic()
        if xfixes.available(conn):
            xfixes.select_cursor_input(conn, conn.root, True)
        self._damage = damage.create(conn, conn.root, damage.BOUNDING_BOX) if damage.available(conn) else 0
        self._subscription = conn.subscribe(self._take)
        if self._damage:
            screen.size()  # a round trip: at first all of the screen is reported as damaged
            self._dirty = None
            damage.subtract(conn, self._damage)
        try:
            self._take_base(screen.capture())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "ScreenWatch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._subscription.end()
        if self._damage and not self._conn.closed:
            damage.destroy(self._conn, self._damage)
        self._damage = 0

    def ignore(self, places: Sequence[Rect]) -> None:
        """From now on changes inside these places, [x, y, width, height], do not count."""
        self._ignored = list(places)

    def moving_ignored(self, since: float) -> List[List[int]]:
        """The places to ignore in which something changed by itself since then."""
        alone = [rect for change in self.changes if change.caret and change.time >= since for rect in change.rects]
        return [list(place) for place in self._ignored if any(_overlap(place, rect) for rect in alone)]

    def changed_in(self, place: Rect, since: float) -> int:
        """How often anything inside ``place`` has changed since then, what does not count included."""
        inside = [c for c in self.changes if c.time >= since and any(_overlap(place, rect) for rect in c.rects)]
        return len(inside)

    def look_until(self, condition: Callable[[], bool], deadline: float) -> None:
        """Keep looking until ``condition()`` is true or the deadline, CLOCK_MONOTONIC, has come."""
        while not condition() and time.monotonic() < deadline:
            if self.pending:
                self._conn.wait(lambda: False, max(0.0, min(self.next_look, deadline) - time.monotonic()))
            else:
                self._conn.wait(lambda: self.pending, max(0.0, deadline - time.monotonic()))
            self.look()

    @property
    def busy(self) -> bool:
        """Whether the cursor has turned into one that says "busy" since we watch."""
        return bool(self._cursor) and self._conn.atom_name(self._cursor) in BUSY_CURSORS

    @property
    def pending(self) -> bool:
        """Whether something may have changed that ``look`` has not seen yet."""
        return self._dirty is not None or bool(self._new_maps) or not self._damage

    @property
    def area(self) -> int:
        """Pixels of the screen."""
        return self._size[0] * self._size[1]

    @property
    def next_look(self) -> float:
        """The earliest time, CLOCK_MONOTONIC, at which ``look`` looks again."""
        return self._looked + (LOOK_EVERY if self._damage else 0.05)

    def last_change(self, since: float) -> Optional[float]:
        """When the pixels last changed, carets aside; None when they have not since ``since``."""
        for change in reversed(self.changes):
            if change.time < since:
                return None
            if not change.caret:
                return change.time
        return None

    @property
    def shown(self) -> List[Mapped]:
        """The windows that mapped while we watched and can be seen: not those that are gone again or off the screen.

        GTK maps one outside of the screen for each menu, to have a window to grab with.
        """
        screen = (0, 0, *self._size)
        return [m for m in self.mapped if m.window not in self._gone and _overlap(m.rect, screen)]

    def unpainted(self, within: float) -> List[Mapped]:
        """Windows that are shown, mapped in the last ``within`` seconds and have painted only a background since."""
        now = time.monotonic()
        return [m for m in self.shown if now - m.time < within and m.window not in self._painted]

    def uncovered(self, within: float) -> List[Uncovered]:
        """Places that a window has left in the last ``within`` seconds and that still show it."""

        def changed(since: float) -> List[Rect]:
            return [rect for change in self.changes if change.time >= since for rect in change.rects]

        return self._uncovered.unpainted(time.monotonic() - within, changed, self._size)

    def moving(self, since: float) -> List[List[int]]:
        """What changed since ``since``, as few rectangles [x, y, width, height]."""
        boxes: List[List[int]] = []
        for change in self.changes:
            if change.time >= since and not change.caret:
                for x, y, width, height in change.rects:
                    _join(boxes, [x, y, x + width, y + height])
        return [[x0, y0, x1 - x0, y1 - y0] for x0, y0, x1, y1 in boxes]

    def look(self) -> bool:
        """Compare what is dirty with what was seen last; true when anything but a caret differs."""
        self._conn.read_pending()
        now = time.monotonic()
        self._note_maps()
        dirty, self._dirty = self._dirty, None
        if not self._damage:
            dirty = (0, 0, *self._size)
        if dirty is None:
            return False
        self._looked = now
        if self._damage:
            damage.subtract(self._conn, self._damage)
        region = (max(0, dirty[0]), max(0, dirty[1]), min(self._size[0], dirty[2]), min(self._size[1], dirty[3]))
        if region[0] >= region[2] or region[1] >= region[3]:
            return False
        try:
            taken = self._screen.capture(region)
        except ValueError:  # the screen has shrunk
            taken = self._screen.capture()
        if taken.screen != self._size:
            self._take_base(self._screen.capture())
            self._note(now, [(0, 0, *self._size)], caret=False)
            return True
        bands = self._compare(taken)
        if not bands:
            return False
        counting = [band.rect for band in bands if self._counts(band)]
        tiny = bool(counting) and all(max(rect[2:]) <= TINY for rect in counting)
        return self._note(now, [band.rect for band in bands], not counting, tiny)

    # -- events -----------------------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        self._uncovered.take(event)
        if event.name == "DAMAGE.Notify" and event["damage"] == self._damage:
            x, y = event["x"], event["y"]
            box = (x, y, x + event["width"], y + event["height"])
            old = self._dirty
            self._dirty = box if old is None else _union(old, box)
        elif event.name == "MapNotify" and event["event"] == self._conn.root:
            self._painted.discard(event["window"])
            self._gone.discard(event["window"])
            self._new_maps.append((time.monotonic(), event))
        elif event.name in ("UnmapNotify", "DestroyNotify") and event["event"] == self._conn.root:
            window = event["window"]
            self._new_maps = [(at, new) for at, new in self._new_maps if new["window"] != window]
            self._gone.add(window)
        elif event.name == "XFIXES.CursorNotify":
            self._cursor = event["cursor_name"]

    def _note_maps(self) -> None:
        events, self._new_maps = self._new_maps, []
        for mapped_at, event in events:
            try:
                geometry = core.get_geometry(self._conn, event["window"])
                if core.get_window_attributes(self._conn, event["window"]).window_class == 2:
                    continue  # InputOnly: there is nothing to paint
            except RequestFailed:
                continue  # gone again
            rect = (geometry.x, geometry.y, geometry.width, geometry.height)
            self.mapped = [mapped for mapped in self.mapped if mapped.window != event["window"]]
            self.mapped.append(Mapped(event["window"], mapped_at, bool(event["override_redirect"]), rect))

    def _note(self, now: float, rects: List[Rect], caret: bool, tiny: bool = False) -> bool:
        self.changes.append(Change(now, rects, caret, tiny))
        for mapped in self.mapped:
            inner = _inner(mapped)
            touched = mapped.window not in self._painted and any(_overlap(inner, rect) for rect in rects)
            if touched and not self._is_plain(inner):
                self._painted.add(mapped.window)
        return not caret

    def _is_plain(self, rect: Rect) -> bool:
        """Whether all of ``rect`` has one colour: the server fills a window's background when it maps."""
        size = self._layout.bytes_per_pixel
        x0, y0 = max(0, rect[0]), max(0, rect[1])
        x1, y1 = min(self._size[0], rect[0] + rect[2]), min(self._size[1], rect[1] + rect[3])
        row = b""
        for y in range(y0, y1):
            at = y * self._stride
            row = row or bytes(self._seen[at + x0 * size : at + (x0 + 1) * size]) * (x1 - x0)
            if self._seen[at + x0 * size : at + x1 * size] != row:
                return False
        return True

    # -- pixels -----------------------------------------------------------------------------------------------------

    def _take_base(self, taken: Capture) -> None:
        self._size = taken.screen
        self._layout = taken.layout
        self._stride = taken.layout.stride(taken.width)
        self._seen = bytearray(taken.data[: self._stride * taken.height])

    def _compare(self, taken: Capture) -> List["_Band"]:
        """Differences between ``taken`` and what was seen before, which it replaces."""
        size = self._layout.bytes_per_pixel
        x0, y0, x1, _y1 = taken.region
        width, stride = (x1 - x0) * size, taken.layout.stride(x1 - x0)
        bands: List[_Band] = []
        for row in range(taken.height):
            at = (y0 + row) * self._stride + x0 * size
            new = taken.data[row * stride : row * stride + width]
            old = self._seen[at : at + width]
            if new == old:
                continue
            self._seen[at : at + width] = new
            if not bands or y0 + row - bands[-1].bottom > BAND_GAP:
                bands.append(_Band(x0, y0 + row, size))
            bands[-1].add(y0 + row, old, new)
        return bands

    def _counts(self, band: "_Band") -> bool:
        """Whether this change means anything."""
        x, y, width, height = band.rect
        if width <= CARET_WIDTH and height <= CARET_HEIGHT and band.pixels <= CARET_PIXELS:
            upright = height >= UPRIGHT_HEIGHT and height >= 2 * width
            if upright or band.pixels <= SPECK_PIXELS:
                return False
        margin = PLACE_MARGIN
        return not any(
            x >= left - margin
            and y >= top - margin
            and x + width <= left + wide + margin
            and y + height <= top + high + margin
            for left, top, wide, high in self._ignored
        )


class _Band:
    """Rows that differ, close together: their bounding box, and how many pixels while there are few."""

    def __init__(self, x0: int, top: int, size: int) -> None:
        self._x0, self._size = x0, size
        self.top, self.bottom = top, top
        self._first, self._end = 1 << 30, 0  # bytes from the left of the compared region
        self.pixels = 0

    @property
    def rect(self) -> Rect:
        left, right = self._first // self._size, -(-self._end // self._size)
        return self._x0 + left, self.top, right - left, self.bottom + 1 - self.top

    def add(self, y: int, old: bytearray, new: bytes) -> None:
        self.bottom = y
        first = min(self._first, len(new))
        # Rows that differ only inside the box found so far, the common case, cost two comparisons.
        if self._end == 0 or old[:first] != new[:first] or old[self._end :] != new[self._end :]:
            difference = int.from_bytes(old, "little") ^ int.from_bytes(new, "little")
            self._first = min(self._first, ((difference & -difference).bit_length() - 1) // 8)
            self._end = max(self._end, (difference.bit_length() + 7) // 8)
        if self.pixels <= CARET_PIXELS and self._end - self._first <= CARET_WIDTH * self._size * 2:
            size = self._size
            start = self._first // size * size
            self.pixels += sum(old[i : i + size] != new[i : i + size] for i in range(start, self._end, size))


def _union(a: Rect, b: Rect) -> Rect:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def _inner(mapped: Mapped) -> Rect:
    """A window without what its window manager may have drawn round it."""
    x, y, width, height = mapped.rect
    if mapped.override_redirect or width <= 2 * FRAME_SIDE or height <= FRAME_TOP + FRAME_SIDE:
        return mapped.rect
    return x + FRAME_SIDE, y + FRAME_TOP, width - 2 * FRAME_SIDE, height - FRAME_TOP - FRAME_SIDE


def _overlap(a: Rect, b: Rect) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def _join(boxes: List[List[int]], new: List[int]) -> None:
    """Add a box [x0, y0, x1, y1], merging it with those it touches; beyond eight everything is one."""
    merged = True
    while merged:
        merged = False
        for box in boxes:
            near = new[0] <= box[2] + 8 and box[0] <= new[2] + 8 and new[1] <= box[3] + 8 and box[1] <= new[3] + 8
            if near or len(boxes) >= 8:
                boxes.remove(box)
                new = [min(new[0], box[0]), min(new[1], box[1]), max(new[2], box[2]), max(new[3], box[3])]
                merged = True
                break
    boxes.append(new)
