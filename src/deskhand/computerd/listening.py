"""The socket that computerd serves: one made here, or one that was listened on before us and is kept by who started us.

With the second, nobody else on this machine can take the address while computerd is started again, and with it the
tokens that clients send there; a client that comes in between waits. Source: sd_listen_fds(3).
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator, MutableMapping
from typing import Any

from deskhand.desktop.address import tcp_socket
from deskhand.errors import SetupError

#: The first descriptor that a service manager passes (sd_listen_fds(3), SD_LISTEN_FDS_START).
FIRST_PASSED = 3


@contextlib.contextmanager
def listening(listen: str, environment: MutableMapping[str, str] = os.environ) -> Iterator[socket.socket]:
    """A listening socket. ``listen`` is one of:

    - HOST:PORT; port 0 is any that is free;
    - ``unix:PATH``, a path that is for its owner alone, and removed at the end;
    - ``systemd``, the one that a service manager's socket unit passes; the variables that say so are taken out of
      ``environment``, as no child of ours is meant;
    - ``fd:NUMBER``, a descriptor that whoever started us says the number of.

    Raises:
        SetupError: It can not be had.
    """
    if listen.startswith("unix:"):
        with _unix_socket(listen.removeprefix("unix:")) as sock:
            yield sock
        return
    try:
        if listen == "systemd":
            sock = _given(_passed(environment))
        elif listen.startswith("fd:"):
            sock = _given(int(listen.removeprefix("fd:")))
        else:
            sock = tcp_socket(listen)
    except (OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        what = "start it by its socket unit" if listen == "systemd" else "give --listen HOST:PORT or unix:PATH"
        raise SetupError(f"{listen} can not be listened on ({why}): {what}") from None
    with sock:
        yield sock


def address_of(sock: socket.socket) -> str:
    """Where a socket listens, as a client is told it."""
    name: Any = sock.getsockname()
    if sock.family == socket.AF_UNIX:
        return f"unix:{name}"
    return f"[{name[0]}]:{name[1]}" if sock.family == socket.AF_INET6 else f"{name[0]}:{name[1]}"


def _passed(environment: MutableMapping[str, str]) -> int:
    """The descriptor that a service manager passed to this process, and not to one before it."""
    pid, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()):
        raise ValueError("no socket was passed to this process")
    if count != "1":
        raise ValueError(f"{count or 'no'} sockets were passed, and one is served: leave one ListenStream in the unit")
    return FIRST_PASSED


def _given(descriptor: int) -> socket.socket:
    sock = socket.socket(fileno=descriptor)
    sock.set_inheritable(False)
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise ValueError("it is no socket that is listened on")
    sock.setblocking(False)
    return sock


@contextlib.contextmanager
def _unix_socket(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            _remove_dead(path)
            before = os.umask(0o177)
            try:
                sock.bind(path)
            finally:
                os.umask(before)
            sock.listen(512)
            sock.setblocking(False)
        except OSError as error:
            raise SetupError(f"no socket can be made at {path}: {error.strerror or error}") from None
        ours = os.lstat(path)
        try:
            yield sock
        finally:
            with contextlib.suppress(OSError):
                there = os.lstat(path)
                if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                    os.unlink(path)


def _remove_dead(path: str) -> None:
    """Remove the socket that a killed daemon left; touch nothing else."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except TimeoutError:
            pass
