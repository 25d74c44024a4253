"""Windows that tell what they received: ``Probe`` with a toolkit (``fixtures/probe.py``), ``RawWindow`` without."""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from deskhand.hand.x11 import Connection, core
from deskhand.hand.x11.events import Event
from deskhand.testing import XServer
from tests.toolkits import FIXTURES, PYTHON


class Probe:
    """A running probe; ``events`` is all that it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        self._rest = b""

    def all(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of these kinds, after everything sent until now has arrived."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        before = sum(event["is"] == "end" for event in self.events)
        self.until(lambda: sum(event["is"] == "end" for event in self.events) > before)
        return [event for event in self.events if event["is"] in kinds]

    def until(self, condition: Callable[[], Any], timeout: float = 10.0) -> None:
        """Read what it says until ``condition`` holds."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + timeout
        while not condition():
            left = deadline - time.monotonic()
            assert left > 0, f"the probe did not say it in {timeout:g} s: {self.events[-5:]}"
            if not select.select([self.process.stdout], [], [], left)[0]:
                continue
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, f"the probe has ended: {self.events[-5:]}"
            *lines, self._rest = (self._rest + data).split(b"\n")
            self.events += [json.loads(line) for line in lines]

    def until_all(self, kind: str, count: int) -> list[dict[str, Any]]:
        """The events of that kind as soon as there are ``count``."""
        self.until(lambda: sum(event["is"] == kind for event in self.events) >= count)
        return self.all(kind)


@contextmanager
def probe_window(server: XServer, *arguments: str, shown: bool = True) -> Iterator[Probe]:
    """A probe on ``server``, when it can be seen."""
    if subprocess.run([PYTHON, "-c", "import tkinter"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has no tkinter")
    process = subprocess.Popen(
        [PYTHON, str(FIXTURES / "probe.py"), *arguments], env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    probe = Probe(process)
    try:
        if shown:
            probe.until_all("shown", 1)
        yield probe
    finally:
        process.terminate()
        process.communicate()


class RawWindow:
    """A window of our own over the whole screen, without any toolkit: it gets exactly what the server sends."""

    _KINDS = {2: "key", 3: "up", 4: "press", 5: "release", 6: "motion"}

    def __init__(self, server: XServer) -> None:
        self.conn = Connection.open(server.display, server.xauthority)
        self.received: list[Received] = []
        self.conn.subscribe(self._take)
        size = core.get_geometry(self.conn, self.conn.root)
        mask = 0x1 | 0x2 | 0x4 | 0x8 | 0x40
        self.id = core.create_window(self.conn, 0, 0, size.width, size.height, event_mask=mask, background=0x808080)
        core.map_window(self.conn, self.id)
        self.conn.sync()

    def _take(self, event: Event) -> None:
        kind = self._KINDS.get(event.data[0] & 0x7F)
        if kind is not None:
            at = struct.unpack_from("=hh", event.data, 20)
            (time_ms,), (state,) = struct.unpack_from("=I", event.data, 4), struct.unpack_from("=H", event.data, 28)
            self.received.append(Received(kind, event.data[1], (at[0], at[1]), state, time_ms))

    def all(self, *kinds: str) -> list[Received]:
        """What has come of these kinds (none named: of all), everything sent until now included."""
        self.conn.sync()
        return [event for event in self.received if event.kind in (kinds or self._KINDS.values())]

    def forget(self) -> None:
        self.conn.sync()
        self.received.clear()

    def __enter__(self) -> RawWindow:
        return self

    def __exit__(self, *_: object) -> None:
        self.conn.close()


class Received(NamedTuple):
    """One event: ``detail`` is the button or keycode, ``at`` in root-window pixels, ``time`` the server's, in ms."""

    kind: str
    detail: int
    at: tuple[int, int]
    state: int
    time: int


def pressed(server: XServer) -> list[str]:
    """The keys and buttons that are down, as the server has it."""
    with Connection.open(server.display, server.xauthority) as conn:
        mask = core.query_pointer(conn).mask
        buttons = [f"button {number}" for number in range(1, 6) if mask >> (7 + number) & 1]
        return [*(f"key {code}" for code in core.query_keymap(conn)), *buttons]


def keycode(server: XServer, keysym: int) -> int:
    """The keycode of a keysym on the live map."""
    with Connection.open(server.display, server.xauthority) as conn:
        rows = core.get_keyboard_mapping(conn, 8, 248)
        return next(number for number, row in enumerate(rows, 8) if keysym in row[:2])


@contextmanager
def grabbed(server: XServer) -> Iterator[Connection]:
    """The X server, held by another client: it answers nobody else."""
    with Connection.open(server.display, server.xauthority) as conn:
        core.grab_server(conn)
        conn.sync()
        yield conn
