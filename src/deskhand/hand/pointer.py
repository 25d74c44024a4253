"""The pointer: moves, clicks, drags and scrolling, by XTEST.

Every button stands in the ledger before it is pressed. The times between events are waited by the server (the delay of
XTestFakeInput), so they hold exactly, whatever this process is doing.
"""

from __future__ import annotations

from typing import List, Sequence, Tuple

from .errors import ActionFailed, nothing_sent
from .held import BUTTON, Ledger, thawed
from .x11 import Connection, core, xtest

#: Logical buttons (X Window System Protocol, 4, and the common use of 4 to 9).
BUTTONS = {"left": 1, "middle": 2, "right": 3, "back": 8, "forward": 9}
SCROLL_UP, SCROLL_DOWN, SCROLL_LEFT, SCROLL_RIGHT = 4, 5, 6, 7
#: Milliseconds of server time between press and release: clients that poll miss what is shorter than 8.
HOLD_MS = 8
#: Between the clicks of a double click: far inside every toolkit's limit (the shortest, Xt's, is 200 ms).
BETWEEN_CLICKS_MS = 20
#: Motion events of a drag, at least, and the milliseconds between them: toolkits begin a drag only after some.
DRAG_EVENTS, DRAG_STEP_MS = 10, 10
NOTCH_MS = 3

Point = Tuple[int, int]


class Pointer:
    """Moves and presses on one display. Positions are root-window pixels."""

    def __init__(self, conn: Connection, ledger: Ledger) -> None:
        self._conn = conn
        self._ledger = ledger

    def position(self) -> Point:
        at = core.query_pointer(self._conn)
        return at.root_x, at.root_y

    def move(self, point: Point) -> None:
        """Go there, and make sure of it.

        Raises:
            ActionFailed: the pointer ended elsewhere: a client confines it, or a person moves it.
        """
        xtest.fake_input(self._conn, xtest.MOTION, 0, *point)
        self._arrive(point)

    def _arrive(self, point: Point) -> None:
        # Each look is a round trip, so that the motion has been carried out, unless the pointer is frozen.
        if not thawed(self._conn, lambda: self.position() == point):
            at = self.position()
            raise ActionFailed(f"the pointer went to {at} and not to {point}: another program confines or moves it")

    def click(self, button: str, count: int = 1) -> None:
        """Press and release where the pointer is, ``count`` times."""
        physical = self._physical(BUTTONS[button])
        with self._ledger.covering([(BUTTON, physical)]):
            for number in range(count):
                wait = BETWEEN_CLICKS_MS if number else 0
                xtest.fake_input(self._conn, xtest.BUTTON_PRESS, physical, delay_ms=wait)
                xtest.fake_input(self._conn, xtest.BUTTON_RELEASE, physical, delay_ms=HOLD_MS)
            self._conn.sync()

    def press(self, button: str) -> None:
        """Press and keep pressed, until ``release`` or the end of what the ledger allows."""
        physical = self._physical(BUTTONS[button])
        self._ledger.hold(BUTTON, physical)
        xtest.fake_input(self._conn, xtest.BUTTON_PRESS, physical)
        self._conn.sync()

    def release(self, button: str) -> None:
        """Release; nothing happens when it is not down."""
        physical = self._physical(BUTTONS[button])
        xtest.fake_input(self._conn, xtest.BUTTON_RELEASE, physical, delay_ms=HOLD_MS)
        self._conn.sync()
        self._ledger.drop(BUTTON, physical)

    def drag(self, path: Sequence[Point], button: str) -> None:
        """Press at the first point, move through all others in small timed steps, release at the last."""
        physical = self._physical(BUTTONS[button])
        steps = _steps(path)
        self.move(path[0])
        with self._ledger.covering([(BUTTON, physical)]):
            xtest.fake_input(self._conn, xtest.BUTTON_PRESS, physical)
            # The first step must have arrived: of motions that are kept back the server keeps the last alone.
            xtest.fake_input(self._conn, xtest.MOTION, 0, *steps[0], delay_ms=DRAG_STEP_MS)
            self._arrive(steps[0])
            for number, point in enumerate(steps[1:], 1):
                xtest.fake_input(self._conn, xtest.MOTION, 0, *point, delay_ms=DRAG_STEP_MS)
                if number % 5 == 0:  # so that no single wait for the server comes near its deadline
                    self._conn.sync()
            xtest.fake_input(self._conn, xtest.BUTTON_RELEASE, physical, delay_ms=max(HOLD_MS, DRAG_STEP_MS))
            self._conn.sync()

    def scroll(self, dx: int, dy: int) -> None:
        """Turn the wheel by notches: positive ``dy`` down, positive ``dx`` right."""
        wheels = ((dy, SCROLL_DOWN, SCROLL_UP), (dx, SCROLL_RIGHT, SCROLL_LEFT))
        turns = [(abs(n), self._physical(positive if n > 0 else negative)) for n, positive, negative in wheels if n]
        for notches, physical in turns:
            with self._ledger.covering([(BUTTON, physical)]):
                for number in range(1, notches + 1):
                    xtest.fake_input(self._conn, xtest.BUTTON_PRESS, physical, delay_ms=NOTCH_MS)
                    xtest.fake_input(self._conn, xtest.BUTTON_RELEASE, physical, delay_ms=NOTCH_MS)
                    if number % 5 == 0:
                        self._conn.sync()
                self._conn.sync()

    def _physical(self, logical: int) -> int:
        """The physical button that acts as ``logical``: a left-handed mapping changes which that is."""
        mapping = core.get_pointer_mapping(self._conn)
        if logical in mapping:
            return mapping.index(logical) + 1
        raise nothing_sent(f"no button of this display's pointer acts as button {logical}: see 'xmodmap -pp'")


def _steps(path: Sequence[Point]) -> List[Point]:
    """The points of a drag after its first, with enough between them, the path's own points among them."""
    between = -(-DRAG_EVENTS // (len(path) - 1))
    steps: List[Point] = []
    for (x0, y0), (x1, y1) in zip(path, path[1:]):  # noqa: RUF007 (Python 3.9 has no pairwise)
        steps += [(x0 + (x1 - x0) * i // between, y0 + (y1 - y0) * i // between) for i in range(1, between)]
        steps.append((x1, y1))
    return steps
