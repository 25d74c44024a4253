"""What moves by itself: places of the screen that changed again and again while nobody acted.

They are learnt when a wait ends and something is still moving, and looked at again before the next action: what has
stopped by then is forgotten, so that a page's throbber counts again when the next page loads.
"""

from __future__ import annotations

import time
from typing import List

from .screen_watch import Rect, ScreenWatch

#: A place must change this often within a second, and be at most this part of the screen.
CHANGES, AREA = 3, 0.02
#: Places remembered; the oldest goes first.
PLACES = 16
#: Seconds that a place gets before an action to show that it still moves. Spent only when one is remembered.
PATIENCE = 0.100


class Ambient:
    """Remembers the places of one display from one batch to the next."""

    def __init__(self) -> None:
        self._places: List[Rect] = []

    def confirm(self, watch: ScreenWatch) -> None:
        """Before the first action: let the watch ignore the places that still move, and forget the others."""
        if not self._places:
            return
        began = time.monotonic()
        watch.look_until(lambda: all(watch.changed_in(place, began) for place in self._places), began + PATIENCE)
        self._places = [place for place in self._places if watch.changed_in(place, began)]
        watch.ignore(self._places)

    def learn(self, watch: ScreenWatch) -> None:
        """After a wait: remember what is small and still moving."""
        since = time.monotonic() - 1.0
        for x, y, width, height in watch.moving(since):
            place = (x, y, width, height)
            small = width * height <= AREA * watch.area
            if small and place not in self._places and watch.changed_in(place, since) >= CHANGES:
                self._places = [*self._places[1 - PLACES :], place]
