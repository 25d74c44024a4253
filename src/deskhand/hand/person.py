"""The person at a display, known by the input of its physical devices.

What programs send by XTEST comes from slave devices of its own (property "XTEST Device"); all else is a person's.
Somebody who is let in by a program that uses XTEST (x11vnc) can not be told from a program.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, Optional, Set, Tuple

from .errors import DeskhandError, RequestFailed, Unsupported
from .state import find_desktop
from .stop_key import StopKey
from .x11 import Connection, Event, core, sync, xinput2
from .x11.connection import DEFAULT_TIMEOUT

_RAW = (
    xinput2.RAW_KEY_PRESS,
    xinput2.RAW_KEY_RELEASE,
    xinput2.RAW_BUTTON_PRESS,
    xinput2.RAW_BUTTON_RELEASE,
    xinput2.RAW_MOTION,
    xinput2.RAW_TOUCH_BEGIN,
    xinput2.RAW_TOUCH_UPDATE,
    xinput2.RAW_TOUCH_END,
)
_DOWN = (xinput2.RAW_KEY_PRESS, xinput2.RAW_BUTTON_PRESS, xinput2.RAW_TOUCH_BEGIN)
_UP = (xinput2.RAW_KEY_RELEASE, xinput2.RAW_BUTTON_RELEASE, xinput2.RAW_TOUCH_END)
#: Seconds that a key or button which is down counts as the person's doing: a release may get lost (a console switch).
HELD = 30.0
#: Seconds after which it is worth asking again whether what they hold is still down.
_LOOK_AGAIN = 0.1
#: Milliseconds from a release to the next press of a key within which no finger pressed it: the server of a nested
#: display repeats a key that is held in this way.
_REPEAT_MS = 20


class Person:
    """Watches the physical devices of a display, in a thread of its own, over a connection of its own.

    ``on_input`` is called in that thread for everything the person does, with whether it was the last press of the stop
    key; it must return at once. ``close`` ends it.

    Raises:
        Unsupported: the server has no XInput 2.2, or no key for the stop key.
        NoDisplay, DisplayTimeout: the display can not be reached.
    """

    def __init__(
        self,
        display: Optional[str],
        xauthority: Optional[str] = None,
        stop_key: Optional[StopKey] = None,
        on_input: Callable[[bool], None] = lambda stop: None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        if xauthority is None and display is not None:
            desktop = find_desktop(display)
            xauthority = str(desktop["xauthority"]) if desktop is not None else None
        self._stop_key = stop_key
        self._on_input = on_input
        self._physical: Dict[int, bool] = {}
        self._down: Dict[Tuple[int, int], float] = {}
        self._released: Dict[int, int] = {}
        self._knows_keyboard = False
        self._last = float("-inf")
        self._conn = Connection.open(display, xauthority, timeout)
        try:
            self._begin()
        except BaseException:
            self._conn.close()
            raise
        self._thread = threading.Thread(target=self._watch, name="deskhand-person", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> bool:
        """Whether the display is gone, or this was closed: nothing is seen any more."""
        return not self._thread.is_alive()

    def active_since(self, moment: float) -> bool:
        """Whether the person has done anything after ``moment`` (``time.monotonic()``)."""
        return self._last > moment

    def busy_for(self, quiet: float) -> float:
        """Seconds until the person will have been quiet for ``quiet`` s, if they do nothing more; 0: they have been.

        While they hold something down it is never 0.
        """
        now = time.monotonic()
        held = any(now - since < HELD for since in list(self._down.values()))
        return max(0.0, self._last + quiet - now, max(quiet, _LOOK_AGAIN) if held else 0.0)

    def close(self) -> None:
        """End the watch. Calling it again does nothing."""
        self._conn.cut()
        self._thread.join(DEFAULT_TIMEOUT)

    def _begin(self) -> None:
        conn = self._conn
        if not xinput2.available(conn):
            raise Unsupported(
                f"display {conn.name} has no XInput 2.2, so what a person does there can not be seen:"
                " drive it as a display that is the agent's alone, or use another X server"
            )
        conn.subscribe(self._take)
        self._learn_keyboard()
        if self._stop_key is not None and self._stop_key.missing:
            raise Unsupported(self._stop_key.missing)
        xinput2.select_events(conn, conn.root, xinput2.ALL_MASTER_DEVICES, _RAW)
        xinput2.select_events(conn, conn.root, xinput2.ALL_DEVICES, [xinput2.HIERARCHY_CHANGED])
        conn.sync()
        idle = sync.device_idle_times(conn)
        for device in xinput2.query_devices(conn):
            if self._is_physical(device.id) and device.id in idle:
                self._last = max(self._last, time.monotonic() - idle[device.id])

    def _watch(self) -> None:
        try:
            while True:
                self._conn.wait(lambda: False, 3600.0)
        except DeskhandError:
            pass  # the display is gone, or ``close`` was called
        finally:
            self._conn.close()

    def _take(self, event: Event) -> None:
        if event.name == "MappingNotify":
            self._knows_keyboard = False  # asked for at the next key of a person: we change the map when we type
            return
        raw = xinput2.raw_event(self._conn, event)
        if raw is None:
            return
        if raw.kind == xinput2.HIERARCHY_CHANGED:
            self._physical.clear()  # a number may have been given to another device
            self._down.clear()
            return
        if not self._is_physical(raw.source):
            return
        self._last = time.monotonic()
        stop = raw.kind == xinput2.RAW_KEY_PRESS and self._is_stop(raw)
        if raw.kind == xinput2.RAW_KEY_RELEASE:
            self._released[raw.detail] = raw.time
        kind = _DOWN[_UP.index(raw.kind)] if raw.kind in _UP else raw.kind
        if raw.kind in _DOWN:
            self._down[kind, raw.detail] = self._last
        else:
            self._down.pop((kind, raw.detail), None)
        self._on_input(stop)

    def _is_stop(self, raw: xinput2.Raw) -> bool:
        if self._stop_key is None or (raw.kind, raw.detail) in self._down:  # a key that is held repeats
            return False
        if raw.detail in self._released and (raw.time - self._released[raw.detail]) & 0xFFFFFFFF < _REPEAT_MS:
            return False
        if not self._knows_keyboard:
            self._learn_keyboard()
        held: Set[int] = {code for kind, code in self._down if kind == raw.kind}
        return self._stop_key.pressed(raw.detail, held, raw.time)

    def _learn_keyboard(self) -> None:
        if self._stop_key is not None:
            self._knows_keyboard = True
            setup = self._conn.setup
            first, count = setup.min_keycode, setup.max_keycode - setup.min_keycode + 1
            self._stop_key.learn(first, core.get_keyboard_mapping(self._conn, first, count))

    def _is_physical(self, device: int) -> bool:
        known = self._physical.get(device)
        if known is None:
            slaves = (xinput2.SLAVE_POINTER, xinput2.SLAVE_KEYBOARD)
            uses = {found.id: found.use for found in xinput2.query_devices(self._conn)}
            try:
                known = uses.get(device) in slaves and not xinput2.is_xtest(self._conn, device)
            except RequestFailed:
                known = False  # it was unplugged just now
            self._physical[device] = known
        return known
