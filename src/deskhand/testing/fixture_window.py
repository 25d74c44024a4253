"""A window that says on standard output what it receives: ``python -m deskhand.testing.fixture_window`` on DISPLAY.

It fills the screen, without a toolkit, and takes part in _NET_WM_PING as toolkits do: it reads the keyboard map anew
when it is told that the map has changed, before it answers. One JSON object a line::

    {"is": "press"|"release"|"motion", "button": 1, "at": [x, y], "state": bits}
    {"is": "key"|"up", "keysym": number, "name": "Return", "text": "a", "state": bits}
    {"is": "shown"}, once it can be seen and has the focus; {"is": "end"} for a line on standard input

A line ``paint RRGGBB`` fills it with that colour first. It ends with standard input.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
from collections import deque

from ..hand.key_names import character_of, name_of
from ..hand.x11 import Connection, Event, core, xkb

TITLE = "Deskhand conformance"
COLOUR = 0x336699
_INPUT = {2: "key", 3: "up", 4: "press", 5: "release", 6: "motion"}
_MASK = 0x1 | 0x2 | 0x4 | 0x8 | 0x40 | 1 << 15 | core.STRUCTURE_NOTIFY | core.FOCUS_CHANGE
_EXPOSE, _FOCUS_IN, _MAPPING_NOTIFY, _CLIENT_MESSAGE = 12, 9, 34, 33
_SHIFT, _LOCK = 1, 2
_NEW_KEYBOARD_NOTIFY, _MAP_NOTIFY, _CORE_KEYBOARD = 1, 2, 0x100
_LEVEL_3 = 0xFE03
_FIRST, _COUNT = 8, 248


class Keyboard:
    """The core keyboard map (X Window System Protocol, section 5, Keyboards; XKB Protocol, Core Keyboard Mapping)."""

    def __init__(self, conn: Connection) -> None:
        self._rows = core.get_keyboard_mapping(conn, _FIRST, _COUNT)
        self._level_3 = 0
        for bit, codes in enumerate(core.get_modifier_mapping(conn)):
            if any(_LEVEL_3 in self._rows[code - _FIRST] for code in codes if code >= _FIRST):
                self._level_3 |= 1 << bit

    def keysym(self, code: int, state: int) -> int:
        """The keysym of a key pressed with those modifiers and that group."""
        row = self._rows[code - _FIRST]
        first = 2 * (state >> 13 & 1)
        if state & self._level_3:
            first = 4 if not first else 6
        lower, upper = (*row[first : first + 2], 0, 0)[:2]
        found = upper if state & _SHIFT and upper else lower
        if state & _LOCK and not state & _SHIFT and upper and (character_of(upper) or "").isupper():
            return upper
        return found


class FixtureWindow:
    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._events: deque[Event] = deque()
        self._keyboard = Keyboard(conn)
        self._exposed = self._focused = self._told = False
        self._protocols, self._ping = conn.atoms(["WM_PROTOCOLS", "_NET_WM_PING"])
        conn.subscribe(self._events.append)
        # As toolkits do: a client that does not use it is told of the second group by a modifier.
        extension = xkb.use(conn)
        self._map_events = extension.first_event
        both = _NEW_KEYBOARD_NOTIFY | _MAP_NOTIFY
        conn.send(extension.major, 1, struct.pack("=6H", _CORE_KEYBOARD, both, 0, both, 0, 0))  # XkbSelectEvents
        core.select_input(conn, conn.root, core.PROPERTY_CHANGE)
        size = core.get_geometry(conn, conn.root)
        self._size = (size.width, size.height)
        self._window = core.create_window(
            conn, 0, 0, *self._size, override_redirect=False, event_mask=_MASK, background=COLOUR
        )
        self._describe()
        core.map_window(conn, self._window)
        conn.sync()

    def _describe(self) -> None:
        conn, window = self._conn, self._window
        utf8 = conn.atom("UTF8_STRING")
        core.change_property(conn, window, conn.atom("_NET_WM_NAME"), utf8, 8, TITLE.encode())
        core.change_property(
            conn, window, core.ATOM_WM_CLASS, core.ATOM_STRING, 8, b"deskhand-conformance\0Conformance\0"
        )
        core.change_property(conn, window, self._protocols, core.ATOM_ATOM, 32, struct.pack("=I", self._ping))
        pid = struct.pack("=I", os.getpid())
        core.change_property(conn, window, conn.atom("_NET_WM_PID"), core.ATOM_CARDINAL, 32, pid)
        # Over panels and without a frame, so that (0,0) is its own (EWMH, _NET_WM_STATE).
        full = struct.pack("=I", conn.atom("_NET_WM_STATE_FULLSCREEN"))
        core.change_property(conn, window, conn.atom("_NET_WM_STATE"), core.ATOM_ATOM, 32, full)

    def run(self) -> None:
        """Tell what comes until standard input ends."""
        rest = b""
        while True:
            while not self._conn.wait(self._spoken_to, 3600.0, fds=[0]):
                pass
            data = os.read(0, 1 << 12)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._obey(line.decode())

    def _spoken_to(self) -> bool:
        self._handle()
        return bool(select.select([0], [], [], 0)[0])

    def _obey(self, line: str) -> None:
        if line.startswith("paint "):
            context = self._conn.new_id()
            self._conn.send(55, 0, struct.pack("=IIII", context, self._window, 1 << 2, int(line[6:], 16)))  # CreateGC
            self._conn.send(70, 0, struct.pack("=IIhhHH", self._window, context, 0, 0, *self._size))
            self._conn.send(60, 0, struct.pack("=I", context))
        self._conn.sync()
        self._handle()
        _say(**{"is": "end"})

    def _handle(self) -> None:
        while self._events:
            event = self._events.popleft()
            kind = event.data[0] & 0x7F
            if kind in _INPUT:
                self._tell(_INPUT[kind], event)
            elif kind in (_MAPPING_NOTIFY, self._map_events):
                self._keyboard = Keyboard(self._conn)
            elif kind == _CLIENT_MESSAGE and event["type"] == self._protocols and event["data0"] == self._ping:
                self._answer(event)
            self._exposed = self._exposed or kind == _EXPOSE
            self._focused = self._focused or kind == _FOCUS_IN
        if not self._told and self._exposed and self._focused and self._is_active():
            self._told = True
            _say(**{"is": "shown"})

    def _is_active(self) -> bool:
        """A window manager says so after it has given the focus (EWMH, _NET_ACTIVE_WINDOW)."""
        conn = self._conn
        if not core.get_property(conn, conn.root, conn.atom("_NET_SUPPORTING_WM_CHECK")).value:
            return True
        active = core.get_property(conn, conn.root, conn.atom("_NET_ACTIVE_WINDOW"), core.ATOM_WINDOW).cardinals()
        return active[:1] == [self._window]

    def _answer(self, event: Event) -> None:
        values = [event[f"data{number}"] for number in range(5)]
        mask = core.SUBSTRUCTURE_NOTIFY | core.SUBSTRUCTURE_REDIRECT
        core.send_client_message(self._conn, self._conn.root, mask, self._conn.root, self._protocols, values)
        self._conn.flush()

    def _tell(self, kind: str, event: Event) -> None:
        detail = event.data[1]
        (state,) = struct.unpack_from("=H", event.data, 28)
        if kind in ("key", "up"):
            keysym = self._keyboard.keysym(detail, state)
            _say(**{"is": kind}, keysym=keysym, name=name_of(keysym), text=character_of(keysym) or "", state=state)
        else:
            _say(**{"is": kind}, button=detail, at=list(struct.unpack_from("=hh", event.data, 20)), state=state)


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    try:
        with Connection.open() as connection:
            FixtureWindow(connection).run()
    except BrokenPipeError:
        sys.exit(1)
