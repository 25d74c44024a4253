"""The windows of a display: which there are, which is active, and waiting for one (EWMH, Root Window Properties).

Without a window manager there is no client list; then the children of the root window are taken, and ``managed`` is
false.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .errors import ActionFailed, RequestFailed
from .ping import ROOT_EVENTS
from .window_properties import (
    ICONIC,
    WITHDRAWN,
    Window,
    read_windows,
    top_level,
    watch,
)
from .window_properties import is_inside as is_inside
from .x11 import Connection, Event, core, damage

#: What is selected on a window that is waited for.
WINDOW_EVENTS = core.STRUCTURE_NOTIFY | core.PROPERTY_CHANGE | core.FOCUS_CHANGE
#: Windows that are looked at, the topmost of all: any application may put any number of them into the lists.
MOST_WINDOWS = 1000
#: Seconds beyond a wait's own in which what came during the last look is looked at.
STILL_CHANGING = 0.2
#: Seconds that a mapped window may stay one colour before it is taken for one that is meant to be.
PAINT_PATIENCE = 1.0


# ---- the window manager


def window_manager(conn: Connection) -> Optional[str]:
    """The window manager's name; ``""`` when one runs without a name, None when none runs.

    EWMH, _NET_SUPPORTING_WM_CHECK: the window named there must name itself, else it is a dead one's leaving.
    """
    check = manager_window(conn)
    if check is None:
        return None
    found = read_windows(conn, [check])
    return found[0].title if found else None


def manager_window(conn: Connection) -> Optional[int]:
    """The window manager's own window (EWMH, _NET_SUPPORTING_WM_CHECK); None when none runs."""
    name = conn.atom("_NET_SUPPORTING_WM_CHECK")
    named = core.get_property(conn, conn.root, name, core.ATOM_WINDOW).cardinals()
    if not named:
        return None
    try:
        back = core.get_property(conn, named[0], name, core.ATOM_WINDOW).cardinals()
    except RequestFailed:
        return None
    return named[0] if back == named[:1] else None


def managed(conn: Connection) -> bool:
    """Whether a window manager runs that keeps a client list."""
    return manager_window(conn) is not None and supports(conn, "_NET_CLIENT_LIST")


def supports(conn: Connection, name: str) -> bool:
    """Whether the window manager says that it does ``name`` (EWMH, _NET_SUPPORTED)."""
    supported, wanted = conn.atoms(["_NET_SUPPORTED", name])
    return wanted in core.get_property(conn, conn.root, supported, core.ATOM_ATOM).cardinals()


def current_desktop(conn: Connection) -> Optional[int]:
    """The number of the desktop shown (EWMH, _NET_CURRENT_DESKTOP); None when there are none."""
    value = core.get_property(conn, conn.root, conn.atom("_NET_CURRENT_DESKTOP"), core.ATOM_CARDINAL).cardinals()
    return value[0] if value else None


# ---- which windows there are


def window_ids(conn: Connection) -> List[int]:
    """The top-level windows, in stacking order from the bottom; without a window manager those that are mapped.

    Of very many the ``MOST_WINDOWS`` at the top.
    """
    if managed(conn):
        stacking, clients = conn.atoms(["_NET_CLIENT_LIST_STACKING", "_NET_CLIENT_LIST"])
        stacked = core.get_property(conn, conn.root, stacking, core.ATOM_WINDOW).cardinals()
        listed = core.get_property(conn, conn.root, clients, core.ATOM_WINDOW).cardinals()
        known = set(stacked)
        return (stacked + [window for window in listed if window not in known])[-MOST_WINDOWS:]
    return core.query_tree(conn, conn.root)[2][-MOST_WINDOWS:]


def read_all(conn: Connection) -> List[Window]:
    """Every top-level window, in stacking order from the bottom."""
    found = read_windows(conn, window_ids(conn))
    if managed(conn):
        return found
    # Toolkits also keep windows that are never shown, and menus ask for no window manager.
    return [window for window in found if window.viewable and not window.override_redirect and window.rect[2] > 1]


def list_windows(conn: Connection) -> List[Dict[str, Any]]:
    """Every top-level window, in stacking order from the bottom; see ``Window`` for what the values mean.

    ``id title app_id class pid rect frame state desktop active viewable type``
    """
    active = active_window(conn)
    return [window.as_dict(window.id == active) for window in read_all(conn)]


def window_facts(conn: Connection, window: int) -> Dict[str, Any]:
    """One window, as in ``list_windows``.

    Raises:
        ActionFailed: there is no such window.
    """
    return get_window(conn, window).as_dict(window == active_window(conn))


def get_window(conn: Connection, window: int) -> Window:
    """One window.

    Raises:
        ActionFailed: there is no such window.
    """
    found = read_windows(conn, [window])
    if not found:
        raise ActionFailed(f"there is no window {window}: ask for the list of windows", window=window)
    return found[0]


def active_window(conn: Connection) -> Optional[int]:
    """The active window (EWMH, _NET_ACTIVE_WINDOW), or None; without a window manager the one with the focus.

    Where keys go is another question: the focus may be elsewhere.
    """
    if manager_window(conn) is not None and supports(conn, "_NET_ACTIVE_WINDOW"):
        value = core.get_property(conn, conn.root, conn.atom("_NET_ACTIVE_WINDOW"), core.ATOM_WINDOW).cardinals()
        return value[0] if value and value[0] else None
    return focused_window(conn)


def focused_window(conn: Connection) -> Optional[int]:
    """The top-level window that the keyboard focus is in; None when it is in none."""
    return top_level(conn, core.get_input_focus(conn)) or None


def has_focus(conn: Connection, window: int) -> bool:
    """Whether the keyboard focus is in ``window``."""
    return is_inside(conn, core.get_input_focus(conn), window)


def matches(window: Window, title: Optional[str] = None, app: Optional[str] = None) -> bool:
    """Whether ``title`` is part of the window's title, and ``app`` is one of its application's names.

    Both ignore case. ``app`` is compared whole, with the application id and both parts of WM_CLASS.
    """
    return (title is None or title.casefold() in window.title.casefold()) and (
        app is None or app.casefold() in window.names
    )


def find(conn: Connection, title: Optional[str] = None, app: Optional[str] = None) -> List[Dict[str, Any]]:
    """The windows that match (see ``matches``), as in ``list_windows``."""
    active = active_window(conn)
    return [window.as_dict(window.id == active) for window in read_all(conn) if matches(window, title, app)]


def is_shown(conn: Connection, window: Window, desktop: Optional[int]) -> bool:
    """Whether a person sees ``window`` on the desktop numbered ``desktop`` (or would, behind other windows).

    Some window managers keep minimised windows viewable, so WM_STATE and _NET_WM_STATE_HIDDEN are asked as well.
    """
    if not window.viewable or window.wm_state in (WITHDRAWN, ICONIC) or "hidden" in window.states:
        return False
    return desktop is None or window.desktop in (None, -1, desktop)


# ---- waiting


def await_state(conn: Connection, check: Callable[[], Any], timeout: float, fds: Sequence[int] = ()) -> bool:
    """``conn.wait`` for a check that asks the X server itself; tells whether it came true within ``timeout`` seconds.

    While such a check waits for its replies it also takes in events, and one of these may be the very change; so the
    check is repeated until no event came during it.
    """
    events = 0
    deadline = time.monotonic() + timeout + STILL_CHANGING

    def count(event: Event) -> None:
        nonlocal events
        events += 1

    def checked() -> bool:
        while True:
            before = events
            if check():
                return True
            # Not for ever: a client that changes its title all the time makes events without end.
            if events == before or time.monotonic() >= deadline:
                return False

    with conn.subscribe(count):
        return conn.wait(checked, timeout, fds)


def wait_window(
    conn: Connection,
    title: Optional[str] = None,
    app: Optional[str] = None,
    focused: bool = False,
    timeout: float = 10.0,
) -> Dict[str, Any]:
    """Wait for a window that is mapped, viewable and painted, and has the keyboard focus when ``focused``.

    ``title`` is a part of its title and ``app`` its application id or class, both in any case; at least one is given.
    The state is looked at first, then after X events. Gives the window as in ``list_windows`` and ``painted``: a window
    that stays one colour for a second, or until the time is over when it was shown before, is taken as it is, with
    ``painted`` false.

    Raises:
        ActionFailed: ``timeout`` seconds passed; says what is missing.
        ValueError: neither ``title`` nor ``app`` is given.
    """
    if title is None and app is None:
        raise ValueError("wait_window needs a title or an app")
    core.select_input(conn, conn.root, ROOT_EVENTS)
    looked: Dict[int, _Paint] = {}
    answer: Dict[str, Any] = {}
    near: List[str] = []
    shown_before: List[int] = []
    deadline = time.monotonic() + timeout

    def is_over(window: int) -> bool:
        return window in shown_before and time.monotonic() >= deadline

    def look() -> bool:
        near.clear()
        desktop = current_desktop(conn)
        candidates = [window for window in read_all(conn) if matches(window, title, app)]
        watch(conn, [window.id for window in candidates], WINDOW_EVENTS)
        for window in reversed(candidates):  # the topmost first
            name = f"window {window.id} {window.title!r}"
            if not is_shown(conn, window, desktop):
                near.append(f"{name} is there but not shown")
            elif focused and not has_focus(conn, window.id):
                near.append(f"{name} is shown but has not the focus")
            else:
                paint = looked.setdefault(window.id, _Paint(conn, window))
                painted = paint.is_painted()
                if painted or paint.patience_is_over() or is_over(window.id):
                    answer.update(window.as_dict(window.id == active_window(conn)), painted=painted)
                    return True
                near.append(f"{name} is shown but not painted yet")
        return False

    # A title is set without any event on the root window, so every window is watched from the start.
    watch(conn, window_ids(conn), core.PROPERTY_CHANGE | core.STRUCTURE_NOTIFY)
    desktop = current_desktop(conn)
    shown_before += [window.id for window in read_all(conn) if is_shown(conn, window, desktop)]
    try:
        while True:
            left = deadline - time.monotonic()
            patience = min([paint.left() for paint in looked.values() if paint.left() > 0], default=left)
            if await_state(conn, look, max(0.0, min(left, patience))):
                return answer
            if time.monotonic() >= deadline:
                break
    finally:
        for paint in looked.values():
            paint.end()
    wanted = " and ".join(
        part for part in (title is not None and f"title {title!r}", app is not None and f"app {app!r}") if part
    )
    why = near[0] if near else "no such window is there"
    raise ActionFailed(
        f"no window with {wanted} was ready within {timeout:g} s: {why}; ask for the list of windows",
        near=list(near),
    )


class _Paint:
    """Whether a window has been drawn on: DAMAGE events say when to look again."""

    def __init__(self, conn: Connection, window: Window) -> None:
        self._conn = conn
        self._window = window.id
        self._since = time.monotonic()
        self._done = False
        self._damage = 0
        if damage.available(conn):
            self._damage = damage.create(conn, window.id, damage.NON_EMPTY, ignore=True)

    def is_painted(self) -> bool:
        if not self._done:
            if self._damage:
                damage.subtract(self._conn, self._damage)
            self._done = not one_colour(self._conn, self._window)
        return self._done

    def left(self) -> float:
        return 0.0 if self._done else self._since + PAINT_PATIENCE - time.monotonic()

    def patience_is_over(self) -> bool:
        return self.left() <= 0

    def end(self) -> None:
        if self._damage and not self._conn.closed:
            damage.destroy(self._conn, self._damage)
            self._conn.flush()


def one_colour(conn: Connection, window: int) -> bool:
    """Whether all that can be seen of ``window`` has one colour. False when it can not be told."""
    area = _on_screen(conn, window)
    if area is None:
        return False
    x, y, width, height = area
    try:
        image = core.get_image(conn, window, x, y, width, height)
    except RequestFailed:
        return False  # it moved or went away meanwhile
    data = image.data
    unit = len(data) // (width * height)
    if unit not in (1, 2, 3, 4):
        return False
    # The fourth byte of a pixel of depth 24 is undefined.
    channels = 3 if unit == 4 and image.depth == 24 else unit
    if width * unit % 4:
        rows = [data[row * (len(data) // height) :][: width * unit] for row in range(height)]
        data = b"".join(rows)
    return all(data[channel::unit].count(data[channel]) == width * height for channel in range(channels))


def _on_screen(conn: Connection, window: int) -> Optional[Tuple[int, int, int, int]]:
    """The part of ``window`` that is on the screen, in the window's own pixels; None when there is none."""
    found = read_windows(conn, [window])
    if not found or not found[0].viewable:
        return None
    left, top, width, height = found[0].rect
    screen = core.get_geometry(conn, conn.root)
    x0, y0 = max(0, -left), max(0, -top)
    x1, y1 = min(width, screen.width - left), min(height, screen.height - top)
    return (x0, y0, x1 - x0, y1 - y0) if x1 > x0 and y1 > y0 else None
