"""The screen as it changes, watched over an X connection and in a thread of its own: never the hand's.

DAMAGE tells where something was drawn; the pixels tell whether anything differs. Where the pointer is, and who has the
desktop's lease, is told here too, as it is read over the same connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from deskhand.computerd.live.tiles import Frame, frame_of, rectangles, touched
from deskhand.hand import state
from deskhand.hand.errors import RequestFailed, in_one_line
from deskhand.hand.owned_property import OwnedProperty
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection, Event, core, damage

#: Seconds between two looks: at most ten a second. The pointer is asked for as often, because a client that moves it
#: (WarpPointer) makes no event for others.
EVERY = 0.1
#: Seconds between two looks at a server without DAMAGE, and at whether a lease's owner still lives.
_WITHOUT_DAMAGE, _LEASE_EVERY = 0.5, 1.0
#: Rectangles that are captured one by one; more are captured as the one that holds them all.
_MOST_CAPTURES = 4
#: Seconds between two attempts to reach a display that is not there: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
#: Seconds that one answer of the X server may take.
_TIMEOUT = 5.0


@dataclass(frozen=True)
class Seen:
    """What was seen last: the screen (None before the first time), the pointer, whose turn it is.

    ``trouble`` says in a sentence why nothing newer can be seen; None when all is well. ``lease`` is the holder's name,
    and until when, seconds since the epoch.
    """

    frame: Frame | None = None
    pointer: tuple[int, int] | None = None
    lease: tuple[str, float] | None = None
    trouble: str | None = None


class ScreenFrames:
    """Watches the display named ``display`` (None: DISPLAY) between ``start`` and ``stop``.

    ``changed`` is called in the watching thread whenever ``seen`` is another one.
    """

    def __init__(self, display: str | None, xauthority: str | None, changed: Callable[[], None]) -> None:
        self._place = (display, xauthority)
        self._changed = changed
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        #: The newest; it is replaced and never changed.
        self.seen = Seen()

    def start(self) -> None:
        """Begin to watch. Calling it again does nothing."""
        if self._thread is None:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="deskhand-live", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Watch no more, and let go of the display, within a second; does not wait for it."""
        self._stop.set()
        self._thread = None

    def _run(self, stop: threading.Event) -> None:
        pause = _FIRST_PAUSE
        while not stop.is_set():
            try:
                with _open(*self._place) as conn:
                    watch = _Watch(conn)
                    pause = _FIRST_PAUSE
                    watch.run(stop, lambda seen: self._see(seen, stop))
            except Exception as error:  # also a fault of ours: the view must come back, and say why it was away
                self._see(replace(self.seen, trouble=f"the display can not be seen: {in_one_line(error)}"), stop)
                stop.wait(pause)  # X servers tell nobody that they have begun
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _see(self, seen: Seen, stop: threading.Event) -> None:
        if seen != self.seen and not stop.is_set():
            self.seen = seen
            self._changed()


class _Watch:
    """Looks over one connection."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._screen = Screen(conn)
        self._leases = OwnedProperty(conn, "_DESKHAND_LEASE")
        self._lease_property = conn.atom("_DESKHAND_LEASE")
        self._dirty: set[int] = set()
        self._all = True
        self._lease_changed = True
        self._size = (0, 0)
        conn.subscribe(self._take)
        core.select_input(conn, conn.root, core.STRUCTURE_NOTIFY | core.PROPERTY_CHANGE)
        self._damage = 0
        if damage.available(conn):
            self._damage = damage.create(conn, conn.root, damage.DELTA_RECTANGLES)
        self._seen = Seen()

    def run(self, stop: threading.Event, see: Callable[[Seen], None]) -> None:
        """Look until ``stop``.

        Raises:
            DisplayLost: The display went away.
        """
        lease_at = looked_all = 0.0
        while not stop.is_set():
            self._conn.wait(self._is_pending, EVERY)
            began = time.monotonic()
            if not self._damage and began - looked_all >= _WITHOUT_DAMAGE:
                self._all, looked_all = True, began
            pointer = core.query_pointer(self._conn)
            frame = self._look()
            lease = self._seen.lease
            if self._lease_changed or (lease is not None and began - lease_at >= _LEASE_EVERY):
                self._lease_changed, lease_at = False, began
                lease = self._holder()
            self._seen = Seen(frame, (pointer.root_x, pointer.root_y), lease)
            see(self._seen)
            self._conn.wait(lambda: False, max(0.0, began + EVERY - time.monotonic()))

    def _is_pending(self) -> bool:
        return self._all or bool(self._dirty) or self._lease_changed

    def _take(self, event: Event) -> None:
        if event.name == "DAMAGE.Notify":
            if not self._all:
                self._dirty |= touched((event["x"], event["y"], event["width"], event["height"]), self._size)
        elif event.name == "ConfigureNotify" and event["window"] == self._conn.root:
            self._all = True
        elif event.name == "PropertyNotify" and event["atom"] == self._lease_property:
            self._lease_changed = True

    def _look(self) -> Frame | None:
        """The screen now: what was drawn on since the last look is captured anew."""
        frame = self._seen.frame
        if not self._is_pending():
            return frame
        if self._damage:
            # Before the capture: what is drawn from here on is told again.
            damage.subtract(self._conn, self._damage)
        everything, self._all = self._all, False
        dirty, self._dirty = self._dirty, set()
        if everything or frame is None:
            return self._whole()
        wanted = rectangles(dirty, frame.columns)
        if len(wanted) > _MOST_CAPTURES:
            x0, y0 = min(r[0] for r in wanted), min(r[1] for r in wanted)
            wanted = [(x0, y0, max(r[0] + r[2] for r in wanted) - x0, max(r[1] + r[3] for r in wanted) - y0)]
        try:
            for tiles in wanted:
                x, y, width, height = frame.rect(tiles)
                frame = frame.changed(self._screen.capture((x, y, x + width, y + height)))
        except ValueError:  # the screen has another size now
            return self._whole()
        return frame

    def _whole(self) -> Frame:
        frame = frame_of(self._screen.capture())
        self._size = frame.size
        old = self._seen.frame
        if old is None or old.size != frame.size:
            return frame
        return old if old.tiles == frame.tiles else frame

    def _holder(self) -> tuple[str, float] | None:
        # Not under a grab: it is only shown, and reading it must not stop the others.
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            for line in self._leases.read():
                until = line.get("until")
                if line.get("held") is not True or not isinstance(until, (int, float)) or not until > now:
                    continue
                if self._leases.lives(line):
                    name = "".join(one if one.isprintable() else " " for one in str(line.get("holder", "")))[:100]
                    return name, round(time.time() + until - now, 1)
        except RequestFailed:
            pass  # its owner has just gone
        return None


def _open(display: str | None, xauthority: str | None) -> Connection:
    if xauthority is None and display is not None:
        desktop = state.find_desktop(display)
        xauthority = str(desktop["xauthority"]) if desktop is not None else None
    return Connection.open(display, xauthority, _TIMEOUT)
