"""Which process a window's client is, by the server's word (X-Resource Extension 1.2, XResQueryClientIds)."""

from __future__ import annotations

import struct
from typing import Optional, Set

from ..errors import RequestFailed
from .connection import Connection

LOCAL_CLIENT_PID = 2


def client_pid(conn: Connection, window: int) -> Optional[int]:
    """The pid of the local client that made ``window``, as the server sees it; None when it can not tell."""
    asked = ask_client_pid(conn, window)
    if asked is None:
        return None
    try:
        return parse_client_pid(conn.reply(asked))
    except RequestFailed as error:
        if error.error == "BadRequest":  # a server older than version 1.2
            return None
        raise


def local_pids(conn: Connection) -> Set[int]:
    """The pids of all clients on the server's host; empty when it can not tell."""
    extension = conn.extension("X-Resource")
    if extension is None:
        return set()
    try:
        data = conn.call(extension.major, 4, struct.pack("=III", 1, 0, LOCAL_CLIENT_PID))
    except RequestFailed:  # a server older than version 1.2
        return set()
    found, at = set(), 32
    for _ in range(struct.unpack_from("=I", data, 8)[0]):
        _client, mask, length = struct.unpack_from("=III", data, at)
        if mask & LOCAL_CLIENT_PID and length == 4:
            found.add(int(struct.unpack_from("=I", data, at + 12)[0]))
        at += 12 + length
    return found


def ask_client_pid(conn: Connection, window: int) -> Optional[int]:
    """QueryClientIds without waiting: the number to give ``conn.reply``; None when the server has no X-Resource."""
    extension = conn.extension("X-Resource")
    if extension is None:
        return None
    return conn.ask(extension.major, 4, struct.pack("=III", 1, window, LOCAL_CLIENT_PID))


def parse_client_pid(data: bytes) -> Optional[int]:
    """The pid in the reply of QueryClientIds; None when the client is not on the server's host."""
    (count,) = struct.unpack_from("=I", data, 8)
    at = 32
    for _ in range(count):
        _client, mask, length = struct.unpack_from("=III", data, at)
        if mask & LOCAL_CLIENT_PID and length == 4:
            (pid,) = struct.unpack_from("=I", data, at + 12)
            return int(pid) or None
        at += 12 + length
    return None
