"""Makers of desktops for tests: a server that is there already, and pretended ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from deskhand.errors import SetupError
from deskhand.fleet.making import Made
from deskhand.testing import XServer

#: The fingerprint of a desktop that is not looked at.
ANY: dict[str, object] = {}


@dataclass
class Given:
    """ "Makes" a display that is there already, and leaves it there."""

    server: XServer
    ended: int = 0

    def make(self) -> Made:
        server = self.server
        return Made(server.display, server.display, server.xauthority, (1280, 800), dict(server.env), None)

    def end(self, made: Made) -> None:
        self.ended += 1


@dataclass
class Pretended:
    """Desktops that are only counted: ``alive`` are those that were made and not ended."""

    fail: Callable[[int], str | None] = lambda number: None
    made: int = 0
    alive: set[str] = field(default_factory=set)
    most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make(self) -> Made:
        with self._lock:
            self.made += 1
            number = self.made
            why = self.fail(number)
            if why is not None:
                raise SetupError(why)
            self.alive.add(f"d{number}")
            self.most = max(self.most, len(self.alive))
        return Made(f"d{number}", f":{4000 + number}", None, (1280, 800), {}, None)

    def end(self, made: Made) -> None:
        with self._lock:
            self.alive.remove(made.id)
