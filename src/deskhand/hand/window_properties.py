"""What one window says about itself, read in one pipelined pass (ICCCM 4.1, Client's Actions; EWMH, Application Window
Properties).

Nothing here waits for the window's client: the X server answers. A window that is gone is left out.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .errors import RequestFailed
from .x11 import Connection, core, xres

#: ICCCM 4.1.3.1, WM_STATE.
WITHDRAWN, NORMAL, ICONIC = 0, 1, 3
#: EWMH, _NET_WM_DESKTOP: the window is on every desktop.
ALL_DESKTOPS = 0xFFFFFFFF
#: How far down a tree is followed: deeper ones are made to stop us.
_DEEPEST = 32

#: A property of ours on the window a launch was answered with: which launch. Window ids are used again, this is not.
LAUNCH_MARK = "_DESKHAND_LAUNCH"
_TEXTS = ("_NET_WM_NAME", "WM_NAME")
_NAMES = ("_GTK_APPLICATION_ID", "_KDE_NET_WM_DESKTOP_FILE")
_PROPERTIES = (
    *_TEXTS, *_NAMES, "WM_CLASS", "WM_CLIENT_MACHINE", "_NET_WM_PID", "_NET_WM_STATE", "WM_STATE", "_NET_WM_DESKTOP",
    "_NET_WM_WINDOW_TYPE", "WM_TRANSIENT_FOR", "WM_PROTOCOLS", "_NET_STARTUP_ID", "_NET_WM_USER_TIME",
    "_NET_FRAME_EXTENTS", "WM_CLIENT_LEADER", "WM_HINTS", LAUNCH_MARK,
)  # fmt: skip


class Window(NamedTuple):
    """A top-level window as the X server had it at one moment.

    ``rect`` is x, y, width, height of the client's own area in root-window pixels, without the frame that the window
    manager draws; ``frame`` is that frame's width at the left, right, top and bottom. ``pid`` is the client's word when
    it runs on this host, else the X server's; ``pids`` are both. ``wm_state`` is ICCCM's (None: not managed).
    ``desktop`` is -1 for all desktops and None when there are none. ``launch_mark`` is what ``mark_launched`` wrote.
    """

    id: int
    title: str
    application: str
    instance: str
    wm_class: str
    pid: Optional[int]
    pids: Tuple[int, ...]
    rect: Tuple[int, int, int, int]
    frame: Tuple[int, int, int, int]
    states: Tuple[str, ...]
    wm_state: Optional[int]
    desktop: Optional[int]
    viewable: bool
    override_redirect: bool
    type: str
    transient_for: int
    leader: int
    protocols: Tuple[int, ...]
    startup_id: str
    user_time: Optional[int]
    takes_input: bool
    launch_mark: str

    @property
    def app_id(self) -> str:
        """The id by which the desktop knows the application: what the toolkit says, else the class of WM_CLASS."""
        return self.application or self.wm_class or self.instance

    @property
    def names(self) -> Tuple[str, ...]:
        """Every name the application goes by, case-folded."""
        names = (self.application, self.wm_class, self.instance)
        return tuple(dict.fromkeys(name.casefold() for name in names if name))

    def as_dict(self, active: bool) -> Dict[str, Any]:
        """The shape other parts and callers see."""
        return {
            "id": self.id,
            "title": self.title,
            "app_id": self.app_id,
            "class": self.wm_class,
            "pid": self.pid,
            "rect": list(self.rect),
            "frame": list(self.frame),
            "state": list(self.states),
            "desktop": self.desktop,
            "active": active,
            "viewable": self.viewable,
            "type": self.type,
        }

    def brief(self) -> Dict[str, Any]:
        """The shape a launch and a dialog are reported in."""
        return {"id": self.id, "title": self.title, "app_id": self.app_id, "rect": list(self.rect)}


#: Windows that are asked about at once, and bytes that are read of a property: it may be of any length.
_AT_ONCE, _LONGEST = 50, 16384


def read_windows(conn: Connection, ids: Sequence[int]) -> List[Window]:
    """The windows of ``ids`` that are still there, in that order; a round trip for each ``_AT_ONCE`` of them."""
    found: List[Window] = []
    for first in range(0, len(ids), _AT_ONCE):
        found += _read_some(conn, ids[first : first + _AT_ONCE])
    return found


def _read_some(conn: Connection, ids: Sequence[int]) -> List[Window]:
    atoms = dict(zip(_PROPERTIES, conn.atoms(_PROPERTIES)))
    asked = []
    for window in ids:
        body = struct.pack("=I", window)
        properties = {name: core.ask_property(conn, window, atom, length=_LONGEST // 4) for name, atom in atoms.items()}
        others = (
            conn.ask(3, 0, body),  # GetWindowAttributes
            conn.ask(14, 0, body),  # GetGeometry
            conn.ask(40, 0, struct.pack("=IIhh", window, conn.root, 0, 0)),  # TranslateCoordinates
            xres.ask_client_pid(conn, window),
        )
        asked.append((window, properties, others))
    found = []
    for window, properties, others in asked:
        answers = _Answers(conn)
        texts = {name: answers.property(window, atoms[name], number) for name, number in properties.items()}
        attributes, geometry, translated = (answers.reply(number) for number in others[:3])
        server_pid = None if others[3] is None else answers.reply(others[3])
        if attributes is not None and geometry is not None and translated is not None and not answers.gone:
            pid = None if server_pid is None else xres.parse_client_pid(server_pid)
            found.append(_window(conn, window, texts, attributes, geometry, translated, pid))
    return found


class _Answers:
    """Takes every answer of one window, also after an error: none may be left lying in the connection."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.gone = False

    def reply(self, sequence: int) -> Optional[bytes]:
        try:
            return self._conn.reply(sequence)
        except RequestFailed as error:
            self.gone = self.gone or error.error in ("BadWindow", "BadDrawable")
            return None

    def property(self, window: int, name: int, sequence: int) -> core.Property:
        try:
            return core.take_property(self._conn, window, name, sequence, whole=False)
        except RequestFailed:
            self.gone = True
            return core.Property(0, 0, b"")


def _window(
    conn: Connection,
    window: int,
    properties: Dict[str, core.Property],
    attributes: bytes,
    geometry: bytes,
    translated: bytes,
    server_pid: Optional[int],
) -> Window:
    def numbers(name: str) -> List[int]:
        value = properties[name]
        return value.cardinals() if value.format == 32 else []

    def number(name: str) -> Optional[int]:
        return (numbers(name) or [None])[0]  # type: ignore[list-item]

    facts = core.parse_attributes(attributes)
    width, height = struct.unpack_from("=HH", geometry, 16)
    x, y = struct.unpack_from("=hh", translated, 12)
    instance, wm_class = _class(conn, properties["WM_CLASS"])
    claimed = number("_NET_WM_PID")
    machine = _text(conn, properties["WM_CLIENT_MACHINE"])
    local = claimed if claimed and is_this_host(machine) else None
    frame = numbers("_NET_FRAME_EXTENTS")
    hints = numbers("WM_HINTS")
    desktop = number("_NET_WM_DESKTOP")
    transient_for = number("WM_TRANSIENT_FOR") or 0
    return Window(
        id=window,
        title=_text(conn, properties["_NET_WM_NAME"]) or _text(conn, properties["WM_NAME"]),
        application=next((text for text in (_text(conn, properties[name]) for name in _NAMES) if text), ""),
        instance=instance,
        wm_class=wm_class,
        pid=local or server_pid,
        pids=tuple(dict.fromkeys(pid for pid in (local, server_pid) if pid)),
        rect=(x, y, width, height),
        frame=(frame[0], frame[1], frame[2], frame[3]) if len(frame) >= 4 else (0, 0, 0, 0),
        states=tuple(_short(conn, atom, "_NET_WM_STATE_") for atom in numbers("_NET_WM_STATE")),
        wm_state=number("WM_STATE"),
        desktop=-1 if desktop == ALL_DESKTOPS else desktop,
        viewable=facts.map_state == core.MAP_STATE_VIEWABLE,
        override_redirect=facts.override_redirect,
        type=_type(conn, numbers("_NET_WM_WINDOW_TYPE"), transient_for),
        transient_for=transient_for,
        leader=number("WM_CLIENT_LEADER") or 0,
        protocols=tuple(numbers("WM_PROTOCOLS")),
        startup_id=_text(conn, properties["_NET_STARTUP_ID"]),
        user_time=number("_NET_WM_USER_TIME"),
        # ICCCM 4.1.2.4: a client that says nothing is taken to want input.
        takes_input=not (len(hints) > 1 and hints[0] & 1 and not hints[1]),
        launch_mark=_text(conn, properties[LAUNCH_MARK]),
    )


def is_this_host(machine: str) -> bool:
    """Whether WM_CLIENT_MACHINE names this host, so that a pid from there means something here."""
    here = socket.gethostname()
    return bool(machine) and machine.split(".")[0].casefold() in (here.split(".")[0].casefold(), "localhost")


def top_level(conn: Connection, window: int) -> int:
    """The nearest of ``window`` and its ancestors that has WM_STATE; without one, the ancestor below the root window.

    0 for None, PointerRoot, the root window and a window that is gone.
    """
    state = conn.atom("WM_STATE")
    below_root = 0
    for _ in range(_DEEPEST):
        if window in (core.FOCUS_NONE, core.FOCUS_POINTER_ROOT, conn.root):
            return below_root
        try:
            if core.get_property(conn, window, state).type:
                return window
            below_root, window = window, core.query_tree(conn, window)[1]
        except RequestFailed:
            return 0
    return 0


def is_inside(conn: Connection, window: int, ancestor: int) -> bool:
    """Whether ``window`` is ``ancestor`` or somewhere below it."""
    for _ in range(_DEEPEST):
        if window == ancestor:
            return True
        if window in (core.FOCUS_NONE, core.FOCUS_POINTER_ROOT, conn.root):
            return False
        try:
            window = core.query_tree(conn, window)[1]
        except RequestFailed:
            return False
    return False


def watch(conn: Connection, ids: Sequence[int], mask: int) -> None:
    """Select the events of ``mask`` on windows, beside those this connection has selected there already."""
    asked = [(window, conn.ask(3, 0, struct.pack("=I", window))) for window in ids]
    for window, number in asked:
        try:
            mine = core.parse_attributes(conn.reply(number)).your_event_mask
        except RequestFailed:
            continue
        if mine & mask != mask:
            core.select_input(conn, window, mine | mask)


def mark_launched(conn: Connection, window: int, mark: str) -> None:
    """Note on ``window`` that it came of the launch ``mark``; nothing happens when it is gone."""
    core.change_property(conn, window, conn.atom(LAUNCH_MARK), core.ATOM_STRING, 8, mark.encode(), ignore=True)


def _short(conn: Connection, atom: int, prefix: str) -> str:
    try:
        name = conn.atom_name(atom)
    except RequestFailed:  # a number that is no atom: anybody may write a property
        return ""
    return (name[len(prefix) :] if name.startswith(prefix) else name).lower()


def _type(conn: Connection, atoms: List[int], transient_for: int) -> str:
    """EWMH, _NET_WM_WINDOW_TYPE: the first type that is EWMH's; without one a transient window is a dialog."""
    for atom in atoms:
        name = _short(conn, atom, "_NET_WM_WINDOW_TYPE_")
        if name and not name.startswith("_"):
            return name
    return "dialog" if transient_for else "normal"


def _class(conn: Connection, value: core.Property) -> Tuple[str, str]:
    parts = value.value.split(b"\0")
    kind = value.type
    instance, wm_class = ([*parts, b"", b""])[:2]
    return tuple(_text(conn, core.Property(kind, 8, part)) for part in (instance, wm_class))  # type: ignore[return-value]


def _text(conn: Connection, value: core.Property) -> str:
    """A text property in the encoding its type names (ICCCM 2.7.1, TEXT Properties)."""
    if value.format != 8:
        return ""
    raw = value.value.split(b"\0")[0]
    if value.type == conn.atom("COMPOUND_TEXT"):
        return decode_compound_text(raw)
    if value.type != core.ATOM_STRING:
        return raw.decode("utf-8", "replace")
    try:
        # Clients of today put UTF-8 into a STRING; Latin-1 text that happens to be UTF-8 is hardly ever meant.
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


#: Compound Text Encoding, Standard Character Set Encodings: the final byte of ``ESC - F`` to the right half's charset.
_RIGHT_HALVES = {
    b"A": "iso8859-1", b"B": "iso8859-2", b"C": "iso8859-3", b"D": "iso8859-4", b"F": "iso8859-7", b"G": "iso8859-6",
    b"H": "iso8859-8", b"L": "iso8859-5", b"M": "iso8859-9", b"b": "iso8859-15",
}  # fmt: skip
#: ... and of ``ESC $ ( F`` or ``ESC $ ) F`` to the multi-byte set and how its bytes are given to Python's codec.
_MULTI_BYTE = {b"A": "gb2312", b"B": "euc_jp", b"C": "euc_kr"}


def decode_compound_text(raw: bytes) -> str:
    """COMPOUND_TEXT (Compound Text Encoding, version 1.1), best effort: a charset unknown here gives ``?``."""
    out: List[str] = []
    left, right = "ascii", "iso8859-1"
    for number, part in enumerate(raw.split(b"\x1b")):
        text = part
        if number:
            if part[:2] == b"%G":
                out.append(part[2:].decode("utf-8", "replace"))
                continue
            if part[:1] == b"-":
                right, text = _RIGHT_HALVES.get(part[1:2], "ascii"), part[2:]
            elif part[:1] == b"(":
                left, text = "ascii", part[2:]
            elif part[:2] == b"$(":
                left, text = _MULTI_BYTE.get(part[2:3], "ascii"), part[3:]
            elif part[:2] == b"$)":
                right, text = _MULTI_BYTE.get(part[2:3], "ascii"), part[3:]
            elif part[:2] in (b"%@", b")I", b")J"):
                text = part[2:]
        if left != "ascii":
            # These sets stand in the left half here and in the right half in the codec.
            out.append(bytes(byte | 0x80 if byte > 0x20 else byte for byte in text).decode(left, "replace"))
        else:
            out.append(text.decode(right, "replace"))
    return "".join(out)
