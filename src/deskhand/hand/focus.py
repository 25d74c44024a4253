"""Where keys go: the window with the keyboard focus, or an error before anything is sent.

The window that ``_NET_ACTIVE_WINDOW`` names need not have the X focus, so GetInputFocus is what counts (X Window System
Protocol, GetInputFocus; ICCCM, 4.1.7 Input Focus; EWMH, _NET_SUPPORTING_WM_CHECK).
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from .errors import ActionFailed, RequestFailed, nothing_sent
from .x11 import Connection, core

_HOW = "click into a window or use 'focus' first"
_MENU_TYPES = ("MENU", "POPUP_MENU", "DROPDOWN_MENU", "COMBO")


class FocusTarget(NamedTuple):
    """Which window gets keys now.

    ``window`` has the X focus; ``top_level`` is the window a person sees as one (the ancestor with WM_STATE, ICCCM
    4.1.3.1), and ``title`` its title. ``grabbed`` is ``"menu"`` while a menu is open: the menu gets the keys then,
    and ``menu`` is its window. ``by_pointer`` means there is no window manager and keys follow the pointer.
    """

    window: int
    top_level: int
    title: str
    grabbed: Optional[str] = None
    menu: int = 0
    by_pointer: bool = False

    def facts(self) -> Dict[str, object]:
        """What an answer says about it."""
        if self.grabbed:
            return {"window": self.menu, "title": self.title, "grabbed": self.grabbed}
        found: Dict[str, object] = {"window": self.top_level, "title": self.title}
        if self.by_pointer:
            found["focus"] = "pointer"
        return found


def keyboard_target(conn: Connection, patience: float = 0.5) -> FocusTarget:
    """The window that would get a key pressed now.

    When a window closes, the window manager needs a moment to give the focus to the next: it gets ``patience`` seconds.
    Without a window manager a server starts with its focus on PointerRoot, where the window under the pointer gets the
    keys: that is a target too, and says so. With a window manager PointerRoot is refused, as nobody chose a window.

    Raises:
        ActionFailed: no application's window would get the key; nothing was sent.
    """
    try:
        return _target(conn)
    except (ActionFailed, RequestFailed):
        if not manager_window(conn):
            patience = 0.0
    found: List[FocusTarget] = []

    def look() -> bool:
        try:
            found.append(_target(conn))
        except (ActionFailed, RequestFailed):
            pass
        return bool(found)

    # The manager tells of the new focus in properties of the root window, whose events we get (``Pings``).
    if conn.wait(look, patience):
        return found[0]
    try:
        return _target(conn)
    except RequestFailed:
        raise _refused("the window with the keyboard focus closed just now") from None


def client_of(conn: Connection, window: int) -> int:
    """What the ids of all windows of one client have in common (X11 Protocol, section 8, resource-id-base)."""
    return window & ~conn.setup.id_mask


def top_level_of(conn: Connection, window: int) -> int:
    """The nearest of ``window`` and its ancestors with WM_STATE; without one, the one that is a child of the root."""
    return _top_level(conn, window, [])


def _top_level(conn: Connection, window: int, answers: List[bytes]) -> int:
    """The same; ``answers`` are those to ``_ask_place`` of ``window``, where they have been asked for already."""
    current, below_root = window, window
    for _ in range(32):
        if current in (0, conn.root):
            break
        answers = answers or conn.replies(_ask_place(conn, current))
        if core.parse_property(answers[0]).type:
            return current
        below_root, current = current, core.parse_tree(answers[1])[1]
        answers = []
    return below_root


def _ask_place(conn: Connection, window: int) -> List[int]:
    return [core.ask_property(conn, window, conn.atom("WM_STATE")), core.ask_tree(conn, window)]


def title_of(conn: Connection, window: int) -> str:
    """``_NET_WM_NAME``, else ``WM_NAME``; empty when there is none."""
    return _title(conn.replies(_ask_title(conn, window)))


def _ask_title(conn: Connection, window: int) -> List[int]:
    return [core.ask_property(conn, window, each) for each in (conn.atom("_NET_WM_NAME"), core.ATOM_WM_NAME)]


def _title(answers: List[bytes]) -> str:
    modern, old = (core.parse_property(answer) for answer in answers)
    if modern.value:
        return modern.value.decode("utf-8", "replace")
    return old.value.decode("latin-1" if old.type == core.ATOM_STRING else "utf-8", "replace")


def manager_window(conn: Connection) -> int:
    """The window of a running EWMH window manager (its back-pointer checked); 0 when none runs."""
    check = conn.atom("_NET_SUPPORTING_WM_CHECK")
    named = _first(core.get_property(conn, conn.root, check))
    return _checked_manager(conn, named, core.ask_property(conn, named, check) if named else 0)


def _checked_manager(conn: Connection, named: int, asked: int) -> int:
    """``named``, the window that the root names, when it names itself: ``asked`` is the request that asks it."""
    if not named:
        return 0
    try:
        return named if _first(core.parse_property(conn.reply(asked))) == named else 0
    except RequestFailed:
        return 0  # the property is left from a window manager that is gone


def _first(found: core.Property) -> int:
    return next(iter(found.cardinals()), 0)


def _target(conn: Connection) -> FocusTarget:
    # Asked for together where it can be: this stands before every key, and a round trip takes longer than an answer.
    check = conn.atom("_NET_SUPPORTING_WM_CHECK")
    asked = [core.ask_property(conn, conn.root, check), core.ask_input_focus(conn), core.ask_tree(conn, conn.root)]
    answers = conn.replies(asked)
    named, focus, tree = _first(core.parse_property(answers[0])), core.parse_focus(answers[1]), answers[2]
    manager_asked = core.ask_property(conn, named, check) if named else 0
    about = [*_ask_place(conn, focus), *_ask_title(conn, focus)] if focus > core.FOCUS_POINTER_ROOT else []
    shown = _shown(conn, core.parse_tree(tree)[2])
    manager = _checked_manager(conn, named, manager_asked)
    found = conn.replies(about)
    place, name = found[:2], found[2:]
    menu = _open_menu(conn, manager, shown)
    by_pointer = False
    if focus == core.FOCUS_POINTER_ROOT and not manager:
        focus = _under_pointer(conn)
        by_pointer = True
        if not focus and not menu:
            raise _refused("keys go to the window under the pointer, and there is none", "move the pointer to a window")
    why = ""
    if focus == core.FOCUS_NONE:
        why = "no window has the keyboard focus"
    elif focus == core.FOCUS_POINTER_ROOT:
        why = "the keyboard focus is on no window in particular (PointerRoot)"
    elif focus == conn.root:
        why = "the keyboard focus is on the root window"
    elif manager and client_of(conn, focus) == client_of(conn, manager):
        why = "the keyboard focus is on the window manager's own window"
    if menu:
        # An open menu holds the keyboard, whatever has the focus.
        top_level = menu if why else _top_level(conn, focus, place)
        title = title_of(conn, menu) or ("" if why else title_of(conn, top_level))
        return FocusTarget(menu if why else focus, top_level, title, "menu", menu)
    if why:
        raise _refused(why)
    top_level = _top_level(conn, focus, place)
    # gnome-shell has no window with WM_STATE: its overview and its menus are in a nameless one over the whole screen.
    own = _title(name) if name else title_of(conn, focus)
    title = own if top_level == focus else title_of(conn, top_level) or own
    return FocusTarget(focus, top_level, title, by_pointer=by_pointer)


def _under_pointer(conn: Connection) -> int:
    """The deepest window under the pointer (0: only the root)."""
    found, window = 0, conn.root
    for _ in range(32):
        child = core.query_pointer(conn, window).child
        if not child:
            break
        found = window = child
    return found


def _shown(conn: Connection, children: List[int]) -> List[Tuple[int, core.Attributes]]:
    """Those that can be seen, topmost first; ``children`` are the root's, as QueryTree gives them."""
    asked = [(window, core.ask_window_attributes(conn, window)) for window in reversed(children)]
    shown = []
    for window, request in asked:
        try:
            attributes = core.parse_attributes(conn.reply(request))
        except RequestFailed:
            continue  # it closed meanwhile
        # Mutter keeps a window for input only over the whole screen, below all others.
        if attributes.map_state == core.MAP_STATE_VIEWABLE and attributes.window_class != core.INPUT_ONLY:
            shown.append((window, attributes))
    return shown


def _open_menu(conn: Connection, manager: int, shown: List[Tuple[int, core.Attributes]]) -> int:
    """The topmost menu that is open, told by its type (EWMH, _NET_WM_WINDOW_TYPE); 0 when there is none.

    ``shown`` are the children of the root that can be seen, topmost first. A menu of the window manager itself may
    carry no type: it is large enough, has no class, and no other client's window is in it. (Frames hold another
    client's window; a manager's hidden windows are 1x1, its switchers carry a class.)
    """
    kind = conn.atom("_NET_WM_WINDOW_TYPE")
    menu_types = set(conn.atoms([f"_NET_WM_WINDOW_TYPE_{name}" for name in _MENU_TYPES]))
    asked = []
    for window, attributes in shown:
        requests = [core.ask_property(conn, window, kind)]
        of_manager = bool(manager) and client_of(conn, window) == client_of(conn, manager)
        if of_manager:
            requests.append(core.ask_geometry(conn, window))
            requests.append(core.ask_property(conn, window, core.ATOM_WM_CLASS))
            requests.append(core.ask_tree(conn, window))
        asked.append((window, attributes.override_redirect, of_manager, requests))
    menus = []
    for window, override_redirect, of_manager, requests in asked:
        try:
            answers = conn.replies(requests)
        except RequestFailed:
            continue  # it closed meanwhile
        types = core.parse_property(answers[0]).cardinals()
        if menu_types.intersection(types):
            # The manager's own windows need no override-redirect; a torn-off menu has none and grabs nothing.
            if of_manager or override_redirect:
                menus.append(window)
        elif of_manager and not types:
            box, named = core.parse_geometry(answers[1]), core.parse_property(answers[2]).type
            children = core.parse_tree(answers[3])[2]
            strangers = [child for child in children if client_of(conn, child) != client_of(conn, window)]
            if box.width >= 16 and box.height >= 16 and not named and not strangers:
                menus.append(window)
    return menus[0] if menus else 0


def _refused(why: str, how: str = _HOW) -> ActionFailed:
    return nothing_sent(f"{why}, so no application would get the keys: {how}")
