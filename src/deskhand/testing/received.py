"""What a fixture window received, and what the X server has as pressed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..hand.x11 import Connection, core
from .xserver import XServer

_SOURCES = str(Path(__file__).resolve().parents[2])
_TYPED = {"Return": "\n", "Tab": "\t"}


class Received:
    """A running fixture window (``fixture_window``); ``events`` is all that it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._rest = b""
        self.events: list[dict[str, Any]] = []

    def all(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of these kinds, everything that the X server has sent until now included."""
        self._order("")
        return [event for event in self.events if event["is"] in kinds]

    def until(self, kind: str, count: int = 1, timeout: float = 20.0) -> None:
        """Wait until there are ``count`` events of a kind.

        Raises:
            AssertionError: They did not come in time.
        """
        self._read_until(lambda: sum(event["is"] == kind for event in self.events) >= count, timeout)

    def text(self) -> str:
        """What was typed: the characters of the keys pressed, Return and Tab among them."""
        keys = self.all("key")
        return "".join(_TYPED.get(event["name"], event["text"]) for event in keys)

    def paint(self, colour: int) -> None:
        """Fill it with a colour (0xRRGGBB); it is there when this returns."""
        self._order(f"paint {colour:06x}")

    def forget(self) -> None:
        """Start anew: what has come until now is not in ``events`` any more."""
        self._order("")
        self.events.clear()

    def _order(self, line: str) -> None:
        assert self._process.stdin is not None
        before = sum(event["is"] == "end" for event in self.events)
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        self._read_until(lambda: sum(event["is"] == "end" for event in self.events) > before)

    def _read_until(self, condition: Callable[[], bool], timeout: float = 20.0) -> None:
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise AssertionError(f"the fixture window did not get it in {timeout:g} s: {self.events[-5:]}")
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                raise AssertionError(f"the fixture window has ended: {self.events[-5:]}")
            *lines, self._rest = (self._rest + data).split(b"\n")
            self.events += [json.loads(line) for line in lines]


@contextmanager
def fixture_window(server: XServer) -> Iterator[Received]:
    """A window over the whole screen of ``server`` that has the focus and tells what it receives."""
    paths = [_SOURCES, *filter(None, [server.env.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", "deskhand.testing.fixture_window"],
        env={**server.env, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    received = Received(process)
    try:
        received.until("shown")
        yield received
    finally:
        process.terminate()
        process.communicate()


def pressed(server: XServer) -> list[str]:
    """The keys and buttons that are down, as the X server has it: ``["key 50", "button 1"]``."""
    with Connection.open(server.display, server.xauthority) as conn:
        mask = core.query_pointer(conn).mask
        buttons = [f"button {number}" for number in range(1, 6) if mask >> (7 + number) & 1]
        return [*(f"key {code}" for code in core.query_keymap(conn)), *buttons]
