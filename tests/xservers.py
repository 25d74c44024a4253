"""X servers with options of their own, and clients of other libraries on them to compare with."""

from __future__ import annotations

import itertools
import os
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Far from those that ``-displayfd`` takes, which are the lowest that are free.
_OWN_NUMBERS = itertools.count(10_000 + os.getpid() % 2000 * 20)


def own_number() -> int:
    """The number of a display that nobody else takes, also when its server is gone: tests run side by side."""
    return next(_OWN_NUMBERS)


def display_of(pid: int) -> str | None:
    """The DISPLAY that a process was started with; None: none, or it has ended."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    found = [line[8:].decode() for line in environment.split(b"\0") if line.startswith(b"DISPLAY=")]
    return found[0] if found else None


@contextmanager
def xvfb_with(*options: str, screen: str = "640x480x24") -> Iterator[str]:
    """Xvfb with these options; gives its display (``:71``)."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writer), "-screen", "0", screen, "-noreset", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=(writer,),
            start_new_session=True,
        )
        os.close(writer)
        try:
            with os.fdopen(reader, "rb") as line:
                number = line.readline().strip()
            assert number, "Xvfb did not start"
            yield f":{int(number)}"
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            process.wait(20)


@contextmanager
def xcb(display: str) -> Iterator[Any]:
    """An xcffib connection; the test is skipped where xcffib is not installed."""
    xcffib = pytest.importorskip("xcffib")
    pytest.importorskip("xcffib.xproto")
    connection = xcffib.connect(display)
    try:
        yield connection
    finally:
        connection.disconnect()


@contextmanager
def xlib(display: str) -> Iterator[Any]:
    """A python-xlib display; the test is skipped where it is not installed."""
    pytest.importorskip("Xlib")
    from Xlib.display import Display

    connection = Display(display)
    try:
        yield connection
    finally:
        connection.close()


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """The first true value of ``condition``: for what no event tells."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{condition} was not true within {seconds:g} s")


def open_fds() -> int:
    """Descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))


def put_pixels(conn: Any, window: int, x: int, y: int, width: int, height: int, pixel: int) -> None:
    """Fill a rectangle with a pixel value, by a client of ours, and wait until it is there."""
    context = conn.new_id()
    conn.send(
        55, 0, struct.pack("=IIIII", context, window, (1 << 2) | (1 << 15), pixel, 1)
    )  # CreateGC, IncludeInferiors
    conn.send(70, 0, struct.pack("=IIhhHH", window, context, x, y, width, height))  # PolyFillRectangle
    conn.send(60, 0, struct.pack("=I", context))
    conn.sync()


def resize(conn: Any, width: int, height: int) -> None:
    """Give the screen another size, at most the one it began with (RANDR, RRSetScreenSize)."""
    extension = conn.extension("RANDR")
    conn.call(extension.major, 0, struct.pack("=II", 1, 5))
    resources = conn.call(extension.major, 25, struct.pack("=I", conn.root))  # RRGetScreenResourcesCurrent
    config_time, count = struct.unpack_from("=IH", resources, 12)
    for crtc in struct.unpack_from(f"={count}I", resources, 32):  # off: what is shown must fit into the screen
        conn.call(extension.major, 21, struct.pack("=IIIhhIH2x", crtc, 0, config_time, 0, 0, 0, 1))
    conn.send(extension.major, 7, struct.pack("=IHHII", conn.root, width, height, width, height))
    conn.sync()
