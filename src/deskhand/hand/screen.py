"""Pictures of the screen: the root window, through shared memory where that works.

MIT-SHM with descriptor passing works also when the server runs as another user, where a System V segment of mode 600
gives BadAccess. Over TCP the attach fails, asynchronously; then, and without MIT-SHM, plain GetImage is used.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import NamedTuple, Optional, Tuple

from . import pixels
from .errors import CaptureFailed, RequestFailed, Unsupported
from .x11 import Connection, core, shm, xfixes

Region = Tuple[int, int, int, int]


class Capture(NamedTuple):
    """What was on the screen at ``time`` (seconds, CLOCK_MONOTONIC).

    ``region`` is [x0, y0, x1, y1] of the root window, whose size is ``screen``; ``data`` holds the server's own pixels
    of that region, laid out as ``layout`` says; ``cursor`` is the pointer's position.
    """

    data: bytes
    region: Region
    screen: Tuple[int, int]
    layout: pixels.Layout
    time: float
    cursor: Tuple[int, int]

    @property
    def width(self) -> int:
        return self.region[2] - self.region[0]

    @property
    def height(self) -> int:
        return self.region[3] - self.region[1]

    def rgb(self) -> bytes:
        """RGB, 8 bits a channel, rows from the top, no padding."""
        return pixels.to_rgb(self.data, self.width, self.height, self.layout)


class Screen:
    """Takes pictures over one connection.

    Raises (on creation):
        Unsupported: the display has no X screen to read: a Wayland session behind rootless Xwayland.
    """

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._map: Optional[mmap.mmap] = None
        self._segment = 0
        self._use_shm = not conn.name.host
        try:
            core.get_image(conn, conn.root, 0, 0, 1, 1)
        except RequestFailed as error:
            raise Unsupported(
                f"display {conn.name} has no X screen that can be read ({error.error}): it belongs to a Wayland session"
            ) from None
        self._fixes = xfixes.available(conn)

    def size(self) -> Tuple[int, int]:
        """The root window's size now, in pixels. RandR may change it at any time."""
        geometry = core.get_geometry(self._conn, self._conn.root)
        return geometry.width, geometry.height

    def capture(self, region: Optional[Region] = None, cursor: bool = False) -> Capture:
        """A picture of the whole root window, or of ``region`` of it; with the cursor drawn in when asked.

        Raises:
            CaptureFailed: no picture could be taken. Never an older one instead.
            ValueError: the region is empty or reaches outside the screen.
        """
        for attempt in (1, 2):
            try:
                taken = self._capture(region)
                break
            except RequestFailed as error:
                # The screen changed its size under us, or the segment is gone: read everything anew, once.
                self._drop_segment()
                if attempt == 2:
                    raise CaptureFailed(f"no picture could be taken of display {self._conn.name}: {error}") from None
        return self._with_cursor(taken) if cursor and self._fixes else taken

    def _capture(self, region: Optional[Region]) -> Capture:
        conn = self._conn
        width, height = self.size()
        if region is None:
            region = (0, 0, width, height)
        x0, y0, x1, y1 = region
        if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
            raise ValueError(f"region {list(region)} is not inside the {width}x{height} screen")
        pointer = conn.ask(38, 0, struct.pack("=I", conn.root))  # QueryPointer, answered with the picture
        data: bytes
        if self._use_shm and self._attach(4 * width * height):
            depth, visual, size = shm.get_image(conn, conn.root, x0, y0, x1 - x0, y1 - y0, self._segment)
            taken_at = time.monotonic()
            assert self._map is not None
            data = self._map[:size]
        else:
            depth, visual, data = core.get_image(conn, conn.root, x0, y0, x1 - x0, y1 - y0)
            taken_at = time.monotonic()
        root_x, root_y = struct.unpack_from("=hh", conn.reply(pointer), 16)
        layout = pixels.layout_of(conn.setup, depth, visual or conn.screen.root_visual)
        return Capture(data, region, (width, height), layout, taken_at, (root_x, root_y))

    def _attach(self, size: int) -> bool:
        """Have a segment of at least ``size`` bytes attached; False when the server has no use for one."""
        if self._map is not None and len(self._map) >= size:
            return True
        self._drop_segment()
        version = shm.query_version(self._conn)
        if version is None or version < (1, 2):
            self._use_shm = False
            return False
        fd = os.memfd_create("deskhand-screen")
        try:
            os.ftruncate(fd, size)
            self._map = mmap.mmap(fd, size)
            self._segment = shm.attach_fd(self._conn, fd)
            self._conn.sync()  # a refused attach shows here
        except RequestFailed:
            self._drop_segment()
            self._use_shm = False
            return False
        finally:
            os.close(fd)
        return True

    def _drop_segment(self) -> None:
        if self._segment and not self._conn.closed:
            shm.detach(self._conn, self._segment)
        if self._map is not None:
            self._map.close()
        self._map, self._segment = None, 0

    def close(self) -> None:
        """Give the shared memory back."""
        self._drop_segment()

    def _with_cursor(self, taken: Capture) -> Capture:
        """Blend the cursor in; its pixels are premultiplied by alpha (XFIXES, Cursor Image)."""
        layout = taken.layout
        if layout.bytes_per_pixel != 4 or layout.masks != (0xFF0000, 0xFF00, 0xFF) or layout.big_endian:
            return taken
        image = xfixes.get_cursor_image(self._conn)
        data = bytearray(taken.data)
        stride = layout.stride(taken.width)
        left, top = image.x - image.hot_x - taken.region[0], image.y - image.hot_y - taken.region[1]
        cursor = struct.unpack(f"={image.width * image.height}I", image.argb)
        for row in range(max(0, -top), min(image.height, taken.height - top)):
            for column in range(max(0, -left), min(image.width, taken.width - left)):
                argb = cursor[row * image.width + column]
                alpha = argb >> 24
                if not alpha:
                    continue
                at = (top + row) * stride + 4 * (left + column)
                for channel, shift in ((0, 0), (1, 8), (2, 16)):
                    data[at + channel] = min(255, (argb >> shift & 0xFF) + data[at + channel] * (255 - alpha) // 255)
        return taken._replace(data=bytes(data))
