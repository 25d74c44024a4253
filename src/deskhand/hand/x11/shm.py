"""Images through shared memory (MIT-SHM Extension, version 1.2: segments passed as file descriptors)."""

from __future__ import annotations

import struct
from typing import Optional, Tuple

from .connection import Connection


def query_version(conn: Connection) -> Optional[Tuple[int, int]]:
    """The version, or None when the server has no MIT-SHM."""
    extension = conn.extension("MIT-SHM")
    if extension is None:
        return None
    major, minor = struct.unpack_from("=HH", conn.call(extension.major, 0), 8)
    return int(major), int(minor)


def attach_fd(conn: Connection, fd: int) -> int:
    """ShmAttachFd: the server maps ``fd``; gives the segment. RequestFailed when the server refuses it."""
    segment = conn.new_id()
    extension = conn.extension("MIT-SHM")
    assert extension is not None
    conn.check(conn.send(extension.major, 6, struct.pack("=IB3x", segment, 0), fds=(fd,)))
    return segment


def detach(conn: Connection, segment: int) -> None:
    extension = conn.extension("MIT-SHM")
    assert extension is not None
    conn.send(extension.major, 2, struct.pack("=I", segment), ignore=True)


def get_image(
    conn: Connection, drawable: int, x: int, y: int, width: int, height: int, segment: int, offset: int = 0
) -> Tuple[int, int, int]:
    """ShmGetImage (ZPixmap, all planes) into the segment. Gives depth, visual and the bytes written."""
    extension = conn.extension("MIT-SHM")
    assert extension is not None
    body = struct.pack("=IhhHHIB3xII", drawable, x, y, width, height, 0xFFFFFFFF, 2, segment, offset)
    data = conn.call(extension.major, 4, body)
    visual, size = struct.unpack_from("=II", data, 8)
    return data[1], visual, size
