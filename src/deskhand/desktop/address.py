"""The address that computerd serves a desktop at."""

from __future__ import annotations

import socket


def tcp_socket(listen: str) -> socket.socket:
    """A socket that listens at HOST:PORT.

    Raises:
        OSError, ValueError, OverflowError: It can not be had.
    """
    host, _, port = listen.rpartition(":")
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
