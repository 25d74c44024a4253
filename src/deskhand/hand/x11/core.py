"""Requests of the X Window System Protocol that the hand needs (section 9 and Appendix B).

Each function sends one request over a ``Connection``; those that give something wait for the reply. A window that is
gone raises ``RequestFailed`` with ``BadWindow`` or ``BadDrawable``.
"""

from __future__ import annotations

import struct
from typing import List, NamedTuple, Optional, Sequence, Tuple

from .connection import Connection

# Event masks (Appendix B, SETofEVENT)
STRUCTURE_NOTIFY = 1 << 17
SUBSTRUCTURE_NOTIFY = 1 << 19
SUBSTRUCTURE_REDIRECT = 1 << 20
FOCUS_CHANGE = 1 << 21
PROPERTY_CHANGE = 1 << 22
#: What this connection selects on windows of others. Selecting replaces, so everybody here selects the same.
WINDOW_EVENTS = STRUCTURE_NOTIFY | PROPERTY_CHANGE | FOCUS_CHANGE

# Predefined atoms (Appendix B)
ATOM_PRIMARY, ATOM_ATOM, ATOM_CARDINAL, ATOM_STRING, ATOM_WINDOW, ATOM_WM_NAME, ATOM_WM_CLASS = 1, 4, 6, 31, 33, 39, 67

MAP_STATE_VIEWABLE = 2
INPUT_ONLY = 2
FOCUS_NONE, FOCUS_POINTER_ROOT = 0, 1


class Geometry(NamedTuple):
    root: int
    depth: int
    x: int
    y: int
    width: int
    height: int
    border_width: int


class Attributes(NamedTuple):
    """``map_state``: 0 unmapped, 1 unviewable, 2 viewable. ``window_class``: 1 InputOutput, 2 InputOnly."""

    window_class: int
    override_redirect: bool
    map_state: int
    visual: int
    your_event_mask: int
    all_event_masks: int


class Property(NamedTuple):
    """``format`` is 8, 16 or 32 bits; ``type`` 0 means there is no such property."""

    type: int
    format: int
    value: bytes

    def cardinals(self) -> List[int]:
        """The value as numbers of its format; none when there is no such property."""
        code = {8: "B", 16: "H", 32: "I"}.get(self.format)
        return list(struct.unpack(f"={len(self.value) * 8 // self.format}{code}", self.value)) if code else []


class Pointer(NamedTuple):
    root: int
    child: int
    root_x: int
    root_y: int
    mask: int


class Image(NamedTuple):
    depth: int
    visual: int
    data: bytes


def get_geometry(conn: Connection, drawable: int) -> Geometry:
    return parse_geometry(conn.call(14, 0, struct.pack("=I", drawable)))


def ask_geometry(conn: Connection, drawable: int) -> int:
    """GetGeometry without waiting; ``parse_geometry`` decodes the reply."""
    return conn.ask(14, 0, struct.pack("=I", drawable))


def parse_geometry(data: bytes) -> Geometry:
    """The reply of GetGeometry, for those who asked for several at once."""
    root, x, y, width, height, border_width = struct.unpack_from("=IhhHHH", data, 8)
    return Geometry(root, data[1], x, y, width, height, border_width)


def get_window_attributes(conn: Connection, window: int) -> Attributes:
    return parse_attributes(conn.call(3, 0, struct.pack("=I", window)))


def ask_window_attributes(conn: Connection, window: int) -> int:
    """GetWindowAttributes without waiting; ``parse_attributes`` decodes the reply."""
    return conn.ask(3, 0, struct.pack("=I", window))


def parse_attributes(data: bytes) -> Attributes:
    """The reply of GetWindowAttributes, for those who asked for several windows at once."""
    visual, window_class = struct.unpack_from("=IH", data, 8)
    map_state, override = data[26], data[27]
    everyone, ours = struct.unpack_from("=II", data, 32)
    return Attributes(window_class, bool(override), map_state, visual, ours, everyone)


def query_tree(conn: Connection, window: int) -> Tuple[int, int, List[int]]:
    """Root, parent (0: none) and children, bottom-most first."""
    return parse_tree(conn.reply(ask_tree(conn, window)))


def ask_tree(conn: Connection, window: int) -> int:
    """QueryTree without waiting; ``parse_tree`` decodes the reply."""
    return conn.ask(15, 0, struct.pack("=I", window))


def parse_tree(data: bytes) -> Tuple[int, int, List[int]]:
    """The reply of QueryTree, for those who asked for several things at once."""
    root, parent, count = struct.unpack_from("=IIH", data, 8)
    return root, parent, list(struct.unpack_from(f"={count}I", data, 32))


def translate_coordinates(conn: Connection, source: int, target: int, x: int, y: int) -> Tuple[int, int, int]:
    """The child of ``target`` there (0: none), and the position in ``target``."""
    data = conn.call(40, 0, struct.pack("=IIhh", source, target, x, y))
    child, target_x, target_y = struct.unpack_from("=Ihh", data, 8)
    return child, target_x, target_y


def query_pointer(conn: Connection, window: Optional[int] = None) -> Pointer:
    """Position in root-window pixels, the child of ``window`` (root by default) under it, buttons and modifiers."""
    data = conn.call(38, 0, struct.pack("=I", window or conn.root))
    root, child, root_x, root_y = struct.unpack_from("=IIhh", data, 8)
    (mask,) = struct.unpack_from("=H", data, 24)
    return Pointer(root, child, root_x, root_y, mask)


def create_window(
    conn: Connection,
    x: int = -1,
    y: int = -1,
    width: int = 1,
    height: int = 1,
    *,
    override_redirect: bool = True,
    event_mask: int = 0,
    background: Optional[int] = None,
    input_only: bool = False,
) -> int:
    """A child of the root window, unmapped. Gives its id."""
    window = conn.new_id()
    values = [(9, int(override_redirect)), (11, event_mask)]
    if background is not None and not input_only:
        values.insert(0, (1, background))
    mask = sum(1 << bit for bit, _ in values)
    head = struct.pack("=IIhhHHHHII", window, conn.root, x, y, width, height, 0, 2 if input_only else 0, 0, mask)
    conn.send(1, 0, head + struct.pack(f"={len(values)}I", *[value for _, value in values]))
    return window


def destroy_window(conn: Connection, window: int) -> None:
    conn.send(4, 0, struct.pack("=I", window), ignore=True)


def map_window(conn: Connection, window: int) -> None:
    conn.send(8, 0, struct.pack("=I", window))


def unmap_window(conn: Connection, window: int) -> None:
    conn.send(10, 0, struct.pack("=I", window), ignore=True)


def configure_window(conn: Connection, window: int, **values: int) -> None:
    """ConfigureWindow with any of x, y, width, height, border_width, sibling, stack_mode."""
    order = ("x", "y", "width", "height", "border_width", "sibling", "stack_mode")
    given = [(bit, values[name] & 0xFFFFFFFF) for bit, name in enumerate(order) if name in values]
    mask = sum(1 << bit for bit, _ in given)
    body = struct.pack("=IHxx", window, mask) + struct.pack(f"={len(given)}I", *[value for _, value in given])
    conn.send(12, 0, body, ignore=True)


def select_input(conn: Connection, window: int, mask: int, ignore: bool = True) -> None:
    """Ask for the events of ``mask`` on ``window``; replaces this connection's earlier mask there."""
    conn.send(2, 0, struct.pack("=III", window, 1 << 11, mask), ignore=ignore)


def get_property(conn: Connection, window: int, name: int, kind: int = 0, delete: bool = False) -> Property:
    """A whole property, however long (``kind`` 0: of any type)."""
    return take_property(conn, window, name, ask_property(conn, window, name, kind, delete), kind, delete)


def ask_property(
    conn: Connection,
    window: int,
    name: int,
    kind: int = 0,
    delete: bool = False,
    offset: int = 0,
    length: int = 1 << 16,
) -> int:
    """GetProperty without waiting; ``take_property`` takes the number it gives. Offset and length count four bytes."""
    return conn.ask(20, int(delete), struct.pack("=IIIII", window, name, kind, offset, length))


def take_property(
    conn: Connection, window: int, name: int, sequence: int, kind: int = 0, delete: bool = False, whole: bool = True
) -> Property:
    """The answer; ``whole`` asks on for what is longer than was asked for."""
    value = b""
    while True:
        data = conn.reply(sequence)
        part = parse_property(data)
        value += part.value
        (after,) = struct.unpack_from("=I", data, 12)
        if not after or not part.value or not whole:
            return part._replace(value=value)
        sequence = ask_property(conn, window, name, kind, delete, len(value) // 4)


def parse_property(data: bytes) -> Property:
    """One reply of GetProperty, for those who asked for several things at once: what ``length`` let through."""
    found, _after, count = struct.unpack_from("=III", data, 8)
    return Property(found, data[1], data[32 : 32 + count * data[1] // 8])


def change_property(
    conn: Connection,
    window: int,
    name: int,
    kind: int,
    bits: int,
    value: bytes,
    append: bool = False,
    ignore: bool = False,
) -> None:
    """Replace (or append to) a property; ``bits`` is the format, 8, 16 or 32."""
    head = struct.pack("=IIIB3xI", window, name, kind, bits, len(value) * 8 // bits)
    conn.send(18, 2 if append else 0, head + value, ignore=ignore)


def delete_property(conn: Connection, window: int, name: int) -> None:
    conn.send(19, 0, struct.pack("=II", window, name), ignore=True)


def get_selection_owner(conn: Connection, selection: int) -> int:
    (owner,) = struct.unpack_from("=I", conn.call(23, 0, struct.pack("=I", selection)), 8)
    return int(owner)


def set_selection_owner(conn: Connection, owner: int, selection: int, time: int) -> None:
    conn.send(22, 0, struct.pack("=III", owner, selection, time))


def convert_selection(conn: Connection, requestor: int, selection: int, target: int, prop: int, time: int) -> None:
    conn.send(24, 0, struct.pack("=IIIII", requestor, selection, target, prop, time))


def send_event(conn: Connection, destination: int, mask: int, event: bytes, propagate: bool = False) -> None:
    """SendEvent with a 32-byte event; nothing happens when the destination is gone."""
    conn.send(25, int(propagate), struct.pack("=II", destination, mask) + event, ignore=True)


def send_client_message(
    conn: Connection, destination: int, mask: int, window: int, kind: int, data: Sequence[int]
) -> None:
    """A ClientMessage of format 32 about ``window``."""
    values = (list(data) + [0] * 5)[:5]
    send_event(
        conn, destination, mask, struct.pack("=BBHII5I", 33, 32, 0, window, kind, *[v & 0xFFFFFFFF for v in values])
    )


def grab_server(conn: Connection) -> None:
    conn.send(36, 0)


def ungrab_server(conn: Connection) -> None:
    conn.send(37, 0)


def get_input_focus(conn: Connection) -> int:
    """The window with the keyboard focus; 0 is None and 1 is PointerRoot."""
    return parse_focus(conn.reply(ask_input_focus(conn)))


def ask_input_focus(conn: Connection) -> int:
    """GetInputFocus without waiting; ``parse_focus`` decodes the reply."""
    return conn.ask(43, 0)


def parse_focus(data: bytes) -> int:
    """The reply of GetInputFocus, for those who asked for several things at once."""
    (focus,) = struct.unpack_from("=I", data, 8)
    return int(focus)


def set_input_focus(conn: Connection, window: int, time: int = 0, revert_to: int = 2) -> None:
    conn.send(42, revert_to, struct.pack("=II", window, time), ignore=True)


def query_keymap(conn: Connection) -> List[int]:
    """The keycodes that are down, as the core keyboard has them."""
    return _keycodes(conn.call(44, 0))


def _keycodes(data: bytes) -> List[int]:
    return [code for code in range(8, 256) if data[8 + code // 8] >> (code % 8) & 1]


class InputState(NamedTuple):
    """What is down: keycodes, and the state mask of QueryPointer; ``pointer_mapping`` as in GetPointerMapping."""

    keycodes: List[int]
    mask: int
    pointer_mapping: List[int]


def input_state(conn: Connection) -> InputState:
    """QueryKeymap, QueryPointer and GetPointerMapping in one round trip."""
    return take_input_state(conn, ask_input_state(conn))


def ask_input_state(conn: Connection) -> Tuple[int, int, int]:
    """The three requests without waiting; ``take_input_state`` takes what it gives."""
    return conn.ask(44, 0), conn.ask(38, 0, struct.pack("=I", conn.root)), conn.ask(117, 0)


def take_input_state(conn: Connection, asked: Tuple[int, int, int]) -> InputState:
    """What was down when it was asked for."""
    keymap, pointer, mapping = asked
    keycodes = _keycodes(conn.reply(keymap))
    (mask,) = struct.unpack_from("=H", conn.reply(pointer), 24)
    data = conn.reply(mapping)
    return InputState(keycodes, mask, list(data[32 : 32 + data[1]]))


def get_keyboard_mapping(conn: Connection, first: int, count: int) -> List[Tuple[int, ...]]:
    """The keysyms of ``count`` keycodes from ``first`` on, one tuple a keycode, all of one length."""
    data = conn.call(101, 0, struct.pack("=BB2x", first, count))
    each = data[1]
    return [struct.unpack_from(f"={each}I", data, 32 + 4 * each * index) for index in range(count)]


def change_keyboard_mapping(conn: Connection, first: int, keysyms: Sequence[Sequence[int]]) -> None:
    """Give keycodes from ``first`` on these keysyms; every row must be equally long."""
    each = len(keysyms[0])
    flat = [keysym for row in keysyms for keysym in row]
    conn.send(100, len(keysyms), struct.pack("=BB2x", first, each) + struct.pack(f"={len(flat)}I", *flat))


def get_modifier_mapping(conn: Connection) -> List[List[int]]:
    """The keycodes of Shift, Lock, Control, Mod1 to Mod5, in this order."""
    data = conn.call(119, 0)
    each = data[1]
    return [[code for code in data[32 + each * row : 32 + each * (row + 1)] if code] for row in range(8)]


def auto_repeats(conn: Connection) -> bool:
    """Whether the server repeats keys that are held (GetKeyboardControl, global-auto-repeat)."""
    return conn.call(103, 0)[1] == 1


def get_pointer_mapping(conn: Connection) -> List[int]:
    """For each physical button, from 1 on, the logical button it acts as (0: none)."""
    data = conn.call(117, 0)
    return list(data[32 : 32 + data[1]])


def get_image(conn: Connection, drawable: int, x: int, y: int, width: int, height: int) -> Image:
    """The pixels as the server keeps them (ZPixmap, all planes). BadMatch when any of it is not on the screen."""
    data = conn.call(73, 2, struct.pack("=IhhHHI", drawable, x, y, width, height, 0xFFFFFFFF))
    (visual,) = struct.unpack_from("=I", data, 8)
    return Image(data[1], visual, data[32:])


def kill_client(conn: Connection, resource: int) -> None:
    conn.send(113, 0, struct.pack("=I", resource), ignore=True)


def ungrab_keyboard(conn: Connection) -> None:
    """End this connection's own grab of the keyboard; without one, the server reads its clock and no more."""
    conn.send(32, 0, struct.pack("=I", 0))


def server_time(conn: Connection) -> int:
    """The server's present time in milliseconds, by a zero-length append to a property (ICCCM, 2.1)."""
    window = create_window(conn, event_mask=PROPERTY_CHANGE, input_only=True)
    name = conn.atom("_DESKHAND_TIME")
    seen: List[int] = []
    with conn.subscribe(
        lambda e: seen.append(e["time"]) if e.name == "PropertyNotify" and e["window"] == window else None
    ):
        change_property(conn, window, name, ATOM_CARDINAL, 32, b"", append=True)
        conn.sync()
    destroy_window(conn, window)
    return seen[-1] if seen else 0
