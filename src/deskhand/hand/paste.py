"""Text put in through the clipboard: for what keys can not type, or would type slowly. Never chosen silently."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from . import clipboard
from .clipboard_owner import SelectionOwner
from .errors import ActionFailed, DeskhandError, RequestFailed
from .focus import FocusTarget, client_of
from .ping import Pings
from .text import settle_input
from .x11 import Connection, core

if TYPE_CHECKING:
    from .keyboard import Keyboard

#: Seconds a window may take to ask for the clipboard after the paste keys.
FETCH_SECONDS = 5.0
#: Terminals paste with other keys, as Ctrl+V is a character there. WM_CLASS (lower case) to keys; those that paste the
#: PRIMARY selection with Shift+Insert get it there as well.
_SHIFT_INSERT = ("xterm", "uxterm", "urxvt", "rxvt")
_CTRL_SHIFT_V = {
    *("xfce4-terminal", "gnome-terminal", "gnome-terminal-server", "mate-terminal", "lxterminal", "qterminal"),
    *("konsole", "terminator", "tilix", "kitty", "alacritty", "guake", "terminology", "ptyxis"),
    *("org.gnome.console", "kgx", "io.elementary.terminal"),
}


def paste(
    keyboard: "Keyboard",
    conn: Connection,
    pings: Pings,
    text: str,
    target: FocusTarget,
    deadline: Optional[float] = None,
) -> Dict[str, Any]:
    """Put ``text`` on the clipboard, press the paste keys, and wait until the window has fetched it.

    Then the old clipboard comes back, if nobody has taken the clipboard meanwhile: its text, or emptiness. The answer:
    ``typed``, ``method`` (``"paste"``), ``confirmed`` (the window has handled it), ``window``, ``title``, and
    ``clipboard``: ``"restored"``, ``"empty"`` as before, ``"taken"`` by another program, or ``"lost"`` when it held
    something other than text.

    Raises:
        ActionFailed: the window did not ask for the clipboard.
    """
    limit = time.monotonic() + FETCH_SECONDS if deadline is None else deadline
    client = client_of(conn, target.window)
    chord, selections = _paste_keys(conn, target.top_level)
    old, had_something = _old_clipboard(conn)
    owner = SelectionOwner(conn, text, selections)
    fetched: List[int] = []
    # A clipboard history asks as well; only the window's own client counts.
    owner.on_fetched = lambda requestor, selection: (
        fetched.append(requestor) if client_of(conn, requestor) == client else None
    )
    outcome = "restored"
    try:
        clipboard_atom = conn.atom(clipboard.SELECTION)
        if clipboard_atom not in owner.owned:
            raise ActionFailed("another program took the clipboard at the same time: try again")
        from .keyboard import parse_keys

        keyboard.key(parse_keys(chord))
        if not conn.wait(lambda: fetched and not owner.busy, max(0.0, limit - time.monotonic())):
            raise ActionFailed(
                f"the window {target.top_level} did not fetch the clipboard after {chord}: it may not take text here"
            )
        confirmed = settle_input(conn, pings, target, 1)
    finally:
        if not conn.closed:
            ours = conn.atom(clipboard.SELECTION) in owner.owned
            ours = ours and core.get_selection_owner(conn, conn.atom(clipboard.SELECTION)) == owner.window
            outcome = _restore(conn, ours, old, had_something)
            owner.close()
            conn.sync()
    return {
        "typed": len(text),
        "method": "paste",
        "confirmed": confirmed,
        **target.facts(),
        "keys": chord,
        "clipboard": outcome,
    }


def _paste_keys(conn: Connection, window: int) -> Tuple[str, Tuple[str, ...]]:
    try:
        value = core.get_property(conn, window, core.ATOM_WM_CLASS).value
    except RequestFailed:
        value = b""
    names = value.decode("latin-1").lower().split("\0")
    if any(name in _SHIFT_INSERT for name in names):
        return "shift+Insert", (clipboard.SELECTION, "PRIMARY")
    if any(name in _CTRL_SHIFT_V for name in names):
        return "ctrl+shift+v", (clipboard.SELECTION,)
    return "ctrl+v", (clipboard.SELECTION,)


def _old_clipboard(conn: Connection) -> Tuple[Optional[str], bool]:
    """The clipboard's text, and whether it holds anything at all."""
    if not core.get_selection_owner(conn, conn.atom(clipboard.SELECTION)):
        return None, False
    try:
        return clipboard.get_text(conn), True
    except ActionFailed:
        return None, True  # its owner hangs; there is nothing to bring back


def _restore(conn: Connection, ours: bool, old: Optional[str], had_something: bool) -> str:
    if not ours:
        return "taken"
    if old is not None:
        try:
            clipboard.set_text(conn, old)
        except DeskhandError:
            return "lost"
        return "restored"
    return "lost" if had_something else "empty"
