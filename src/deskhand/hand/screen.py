"""Pictures of the screen: the root window, through shared memory where that works.

MIT-SHM with descriptor passing works also when the server runs as another user, where a System V segment of mode 600
gives BadAccess. Over TCP the attach fails, asynchronously; then, and without MIT-SHM, plain GetImage is used.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from typing import Iterator, NamedTuple, Optional, Tuple

from . import pixels
from .errors import CaptureFailed, RequestFailed, Unsupported
from .x11 import Connection, core, shm, xfixes

Region = Tuple[int, int, int, int]
STRIP = 64


class Capture(NamedTuple):
    """What was on the screen at ``time`` (seconds, CLOCK_MONOTONIC).

    ``region`` is [x0, y0, x1, y1] of the root window, whose size is ``screen``; ``data`` holds the server's own pixels
    of that region, laid out as ``layout`` says; ``cursor`` is the pointer's position; ``drawn`` the cursor's picture
    when it is to be drawn in.
    """

    data: bytes
    region: Region
    screen: Tuple[int, int]
    layout: pixels.Layout
    time: float
    cursor: Tuple[int, int]
    drawn: Optional[xfixes.CursorImage] = None

    @property
    def width(self) -> int:
        return self.region[2] - self.region[0]

    @property
    def height(self) -> int:
        return self.region[3] - self.region[1]

    def rgb(self) -> bytes:
        """RGB, 8 bits a channel, rows from the top, no padding."""
        rgb = pixels.to_rgb(self.data, self.width, self.height, self.layout)
        if self.drawn is None:
            return rgb
        left, top = self.drawn.x - self.drawn.hot_x - self.region[0], self.drawn.y - self.drawn.hot_y - self.region[1]
        return pixels.blend(rgb, self.width, self.height, self.drawn.argb, self.drawn.width, left, top)

    def strips(self) -> Iterator[bytes]:
        """What ``rgb`` gives, ``STRIP`` rows at a time: that stays in the processor's cache while it is worked on."""
        if self.drawn is not None:
            yield self.rgb()
            return
        stride = self.layout.stride(self.width)
        for top in range(0, self.height, STRIP):
            rows = min(STRIP, self.height - top)
            yield pixels.to_rgb(self.data[top * stride : (top + rows) * stride], self.width, rows, self.layout)


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
        return taken._replace(drawn=xfixes.get_cursor_image(self._conn)) if cursor and self._fixes else taken

    def _capture(self, region: Optional[Region]) -> Capture:
        conn = self._conn
        width, height = self.size()
        while True:
            wanted = (0, 0, width, height) if region is None else region
            x0, y0, x1, y1 = wanted
            if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
                raise ValueError(f"region {list(wanted)} is not inside the {width}x{height} screen")
            data, depth, visual = self._pixels(x0, y0, x1 - x0, y1 - y0, 4 * width * height)
            taken_at = time.monotonic()
            # Asked for together, and after the picture: a screen that has grown gives a cropped one without an error.
            pointer = conn.ask(38, 0, struct.pack("=I", conn.root))  # QueryPointer
            now = self.size()
            root_x, root_y = struct.unpack_from("=hh", conn.reply(pointer), 16)
            if now == (width, height):
                break
            width, height = now
        layout = pixels.layout_of(conn.setup, depth, visual or conn.screen.root_visual)
        return Capture(data, wanted, (width, height), layout, taken_at, (root_x, root_y))

    def _pixels(self, x: int, y: int, width: int, height: int, room: int) -> Tuple[bytes, int, int]:
        """The pixels of a rectangle, their depth and visual; ``room`` is the size of a segment to keep."""
        conn = self._conn
        if self._use_shm and self._attach(room):
            depth, visual, size = shm.get_image(conn, conn.root, x, y, width, height, self._segment)
            assert self._map is not None
            return self._map[:size], depth, visual
        depth, visual, data = core.get_image(conn, conn.root, x, y, width, height)
        return data, depth, visual

    def _attach(self, size: int) -> bool:
        """Have a segment of at least ``size`` bytes attached; False when the server has no use for one."""
        if self._map is not None and len(self._map) >= size:
            return True
        self._drop_segment()
        version = shm.query_version(self._conn)
        if version is None or version < (1, 2):
            self._use_shm = False
            return False
        fd = -1
        try:
            fd = os.memfd_create("deskhand-screen", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, size)
            # The server runs as another account, and reading what it has cut off would end us with SIGBUS.
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            self._map = mmap.mmap(fd, size)
            self._segment = shm.attach_fd(self._conn, fd)
        except (RequestFailed, OSError, AttributeError):
            # The server refuses descriptors (a proxy lost them), or there is no such memory here (a sandbox forbids
            # it; a Python built for an old C library does not know it).
            self._drop_segment()
            self._use_shm = False
            return False
        finally:
            if fd >= 0:
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
