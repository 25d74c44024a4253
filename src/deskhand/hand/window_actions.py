"""Activate, close, move and resize a window, each confirmed by reading the state back (EWMH, Root Window Messages).

Requests carry source indication 2 (a pager: the person at the desktop asked for it) and the server's present time;
window managers refuse an older one. Without a window manager the same is done by the core protocol.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from .errors import ActionFailed
from .ping import ROOT_EVENTS
from .window_properties import WITHDRAWN, Window, is_inside, read_windows, watch
from .windows import (
    WINDOW_EVENTS,
    active_window,
    await_state,
    current_desktop,
    get_window,
    is_shown,
    managed,
    read_all,
    supports,
    window_facts,
    window_ids,
)
from .x11 import Connection, core

_PAGER = 2
#: X Window System Protocol, Window gravity: the position is that of the client's own area, frame or not.
_STATIC_GRAVITY = 10
_TO_WINDOW_MANAGER = core.SUBSTRUCTURE_NOTIFY | core.SUBSTRUCTURE_REDIRECT
_REMOVE = 0
#: Seconds a window manager may take before a request is sent a second time.
_RETRY = 0.7
#: Seconds a window's size must stay the same before one that was not asked for is believed.
_SIZE_PATIENCE = 1.0


def activate(conn: Connection, window: int, timeout: float = 2.0) -> Dict[str, Any]:
    """Make ``window`` the active one, on whichever desktop it is, and give it the keyboard focus.

    Gives ``{"window", "focused"}``; ``focused`` is false only for a window that wants no keyboard input.

    Raises:
        ActionFailed: there is no such window, or it was not active within ``timeout`` seconds.
    """
    facts = get_window(conn, window)
    core.select_input(conn, conn.root, ROOT_EVENTS)
    watch(conn, [window], WINDOW_EVENTS)
    deadline = time.monotonic() + timeout
    by_manager = managed(conn) and supports(conn, "_NET_ACTIVE_WINDOW")
    gone = False

    def is_active() -> bool:
        nonlocal gone
        gone = not read_windows(conn, [window])
        if gone or (by_manager and active_window(conn) != window):
            return gone
        return _has_focus_to_have(conn, facts)

    if not is_active():
        if by_manager:
            _show_desktop_of(conn, facts, deadline)
        for attempt in (1, 2):
            if by_manager:
                _ask(conn, window, "_NET_ACTIVE_WINDOW", [_PAGER, core.server_time(conn) if attempt == 1 else 0, 0])
            else:
                _focus_by_core_protocol(conn, window)
            left = deadline - time.monotonic()
            if await_state(conn, is_active, max(0.0, min(left, _RETRY) if attempt == 1 else left)):
                break
        else:
            raise ActionFailed(
                f"{_called(facts)} did not become active within {timeout:g} s: {_who_is_active(conn)};"
                " click on it, or close what is in front",
                window=window,
                active=active_window(conn),
            )
    if gone:
        raise ActionFailed(f"{_called(facts)} went away while it was made active", window=window)
    return {"window": window, "focused": _has_focus(conn, window)}


def close(conn: Connection, window: int, timeout: float = 5.0) -> Dict[str, Any]:
    """Ask ``window`` to close, as its close button does, and wait until it is gone. Gives ``{"window", "closed"}``.

    Raises:
        ActionFailed: there is no such window; or it is still open after ``timeout`` seconds; or a dialog came up
            instead, which ``facts["dialog"]`` tells.
    """
    facts = get_window(conn, window)
    result = close_windows(conn, [window], timeout)
    if result.dialog is not None:
        raise ActionFailed(
            f"{_called(facts)} is still open: it asks in window {result.dialog['id']} {result.dialog['title']!r};"
            " answer that first",
            window=window,
            dialog=result.dialog,
        )
    if result.open:
        raise ActionFailed(
            f"{_called(facts)} is still open after {timeout:g} s: it may be asking inside itself; take a picture",
            window=window,
        )
    return {"window": window, "closed": True}


class Closed(NamedTuple):
    """What ``close_windows`` saw: the windows still open, and the dialog that came up instead (``Window.brief``)."""

    open: List[int]
    dialog: Optional[Dict[str, Any]]


def close_windows(conn: Connection, ids: Iterable[int], timeout: float) -> Closed:
    """Ask several windows of one application to close and wait until all are gone or one of them asks something.

    A dialog counts when it belongs to one of them: transient for it or its group, or of the same process; one that
    was open before counts too, because the application waits for it.
    """
    core.select_input(conn, conn.root, ROOT_EVENTS)
    asked = read_windows(conn, list(ids))
    wanted = {window.id for window in asked}
    watch(conn, sorted(wanted), WINDOW_EVENTS)
    before = set(window_ids(conn))
    for window in asked:
        _ask_to_close(conn, window)
    conn.flush()
    dialogs: List[Window] = []
    left: Set[int] = set(wanted)

    def done() -> bool:
        left.intersection_update(window.id for window in read_windows(conn, sorted(left)) if _is_open(window))
        if not left:
            return True
        desktop = current_desktop(conn)
        others = [window for window in read_all(conn) if window.id not in wanted]
        watch(conn, [window.id for window in others if window.id not in before], WINDOW_EVENTS)
        dialogs[:] = [
            window
            for window in others
            if (window.type == "dialog" or window.id not in before)
            and is_shown(conn, window, desktop)
            and _belongs(window, asked, left)
        ]
        return bool(dialogs)

    await_state(conn, done, timeout)
    if not left:
        return Closed([], None)
    return Closed(sorted(left), dialogs[-1].brief() if dialogs else None)


def resize(
    conn: Connection,
    window: int,
    x: Optional[int] = None,
    y: Optional[int] = None,
    width: Optional[int] = None,
    height: Optional[int] = None,
    timeout: float = 2.0,
) -> Dict[str, Any]:
    """Move and resize ``window``; what is not given stays. Position and size are those of ``rect``: without the frame.

    A maximised or fullscreen window is restored first. Gives the window as in ``list_windows``, and ``exact``: false
    when the window has taken another size or place than asked for (a terminal takes whole characters).

    Raises:
        ActionFailed: there is no such window, or it has not changed at all within ``timeout`` seconds.
        ValueError: nothing is given, or a size is less than one pixel.
    """
    wanted = (x, y, width, height)
    if all(value is None for value in wanted):
        raise ValueError("resize needs x, y, width or height")
    if any(value is not None and value < 1 for value in (width, height)):
        raise ValueError("a window is at least 1 pixel wide and high")
    before = get_window(conn, window)
    core.select_input(conn, conn.root, ROOT_EVENTS)
    watch(conn, [window], WINDOW_EVENTS)
    deadline = time.monotonic() + timeout
    by_manager = managed(conn)
    if by_manager:
        _restore(conn, before, deadline)
    _move_resize(conn, window, wanted, by_manager and supports(conn, "_NET_MOVERESIZE_WINDOW"))
    last: List[Tuple[int, int, int, int]] = []

    def done() -> bool:
        found = read_windows(conn, [window])
        if not found:
            return True
        last[:] = [found[0].rect]
        return _is_at(found[0].rect, wanted)

    exact = await_state(conn, done, min(_SIZE_PATIENCE, max(0.0, deadline - time.monotonic())))
    if not last or not read_windows(conn, [window]):
        raise ActionFailed(f"{_called(before)} went away while it was resized", window=window)
    if not exact and last[0] == before.rect:
        raise ActionFailed(
            f"{_called(before)} stayed at {list(before.rect)}: the window or the window manager does not allow"
            f" {_words(wanted)}",
            window=window,
            rect=list(before.rect),
        )
    return {**window_facts(conn, window), "exact": exact}


# ---- requests


def _ask(conn: Connection, window: int, kind: str, data: List[int]) -> None:
    core.send_client_message(conn, conn.root, _TO_WINDOW_MANAGER, window, conn.atom(kind), data)


def _show_desktop_of(conn: Connection, window: Window, deadline: float) -> None:
    """Switch to the window's desktop first: some window managers else bring the window to this one."""
    current = current_desktop(conn)
    if current is None or window.desktop in (None, -1, current):
        return
    wanted = window.desktop
    assert wanted is not None
    _ask(conn, conn.root, "_NET_CURRENT_DESKTOP", [wanted, core.server_time(conn)])
    await_state(conn, lambda: current_desktop(conn) == wanted, max(0.0, deadline - time.monotonic()))


def _focus_by_core_protocol(conn: Connection, window: int) -> None:
    core.configure_window(conn, window, stack_mode=0)  # Above
    core.set_input_focus(conn, window, core.server_time(conn))
    conn.flush()


def _ask_to_close(conn: Connection, window: Window) -> None:
    protocols, delete = conn.atoms(["WM_PROTOCOLS", "WM_DELETE_WINDOW"])
    now = core.server_time(conn)
    if managed(conn) and supports(conn, "_NET_CLOSE_WINDOW"):
        _ask(conn, window.id, "_NET_CLOSE_WINDOW", [now, _PAGER])
    elif delete in window.protocols:
        core.send_client_message(conn, window.id, 0, window.id, protocols, [delete, now])
    else:
        raise ActionFailed(
            f"{_called(window)} can not be asked to close: it takes no WM_DELETE_WINDOW; quit its application",
            window=window.id,
        )


def _restore(conn: Connection, window: Window, deadline: float) -> None:
    """Take a window out of the states in which window managers ignore a size."""
    names = [name for name in ("maximized_vert", "maximized_horz", "fullscreen") if name in window.states]
    for name in names:
        _ask(conn, window.id, "_NET_WM_STATE", [_REMOVE, conn.atom("_NET_WM_STATE_" + name.upper()), 0, _PAGER])

    def restored() -> bool:
        found = read_windows(conn, [window.id])
        return not found or not set(names) & set(found[0].states)

    if names:
        await_state(conn, restored, max(0.0, deadline - time.monotonic()))


def _move_resize(conn: Connection, window: int, wanted: Tuple[Optional[int], ...], by_manager: bool) -> None:
    given = {name: value for name, value in zip(("x", "y", "width", "height"), wanted) if value is not None}
    if not by_manager:
        core.configure_window(conn, window, **given)
        conn.flush()
        return
    flags = _STATIC_GRAVITY | _PAGER << 12
    for bit, name in enumerate(("x", "y", "width", "height")):
        flags |= (name in given) << (8 + bit)
    _ask(conn, window, "_NET_MOVERESIZE_WINDOW", [flags, *(value or 0 for value in wanted)])
    conn.flush()


# ---- reading back


def _is_at(rect: Tuple[int, int, int, int], wanted: Tuple[Optional[int], ...]) -> bool:
    return all(value is None or value == now for value, now in zip(wanted, rect))


def _has_focus(conn: Connection, window: int) -> bool:
    return is_inside(conn, core.get_input_focus(conn), window)


def _has_focus_to_have(conn: Connection, window: Window) -> bool:
    """The focus is in the window; or it wants none, by WM_HINTS and WM_TAKE_FOCUS (ICCCM 4.1.7, No Input)."""
    no_input = not window.takes_input and conn.atom("WM_TAKE_FOCUS") not in window.protocols
    return no_input or _has_focus(conn, window.id)


def _is_open(window: Window) -> bool:
    if window.wm_state is None:
        return window.viewable
    # A minimised window is open; one that a client withdrew is not.
    return window.wm_state != WITHDRAWN


def _belongs(window: Window, asked: List[Window], left: Set[int]) -> bool:
    """Whether a window is one in which the application of ``asked`` can be asking something."""
    for owner in asked:
        if owner.id not in left:
            continue
        if window.transient_for == owner.id:
            return True
        same_process = bool(set(owner.pids) & set(window.pids))
        if window.type == "dialog" and (same_process or (owner.leader and owner.leader == window.leader)):
            return True
    return False


def _called(window: Window) -> str:
    return f"window {window.id} {window.title!r}"


def _who_is_active(conn: Connection) -> str:
    active = active_window(conn)
    found = read_windows(conn, [active]) if active else []
    return f"{_called(found[0])} is active" if found else "no window is active"


def _words(wanted: Tuple[Optional[int], ...]) -> str:
    return ", ".join(f"{n} {v}" for n, v in zip(("x", "y", "width", "height"), wanted) if v is not None)
