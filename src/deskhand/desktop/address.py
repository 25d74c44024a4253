"""The address that computerd serves a desktop at."""

from __future__ import annotations

import re
import socket


def tcp_socket(listen: str) -> socket.socket:
    """A socket that listens at HOST:PORT.

    Raises:
        OSError, ValueError, OverflowError: It can not be had.
    """
    host, _, port = listen.rpartition(":")
    if not re.fullmatch("[0-9]{1,5}", port):
        raise ValueError(f"it names no port: {port[:40]!r} is no number")
    if not host.strip("[]"):  # an empty one would be every address of this machine
        raise ValueError(f"it names no host: 127.0.0.1:{port} is this machine alone")
    # By its protocol's name: asyncio turns Nagle's algorithm off only then, which costs 40 ms an answer.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host.strip("[]"), int(port)))
        sock.listen(512)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock
