"""The X server of a desktop: its cookie file, and what dead servers left in the way (Xserver(1); Xau(3))."""

from __future__ import annotations

import os
import re
import secrets
import socket
from dataclasses import dataclass

from ..hand.x11 import auth

LOCK_DIRECTORY = "/tmp"
SOCKET_DIRECTORY = "/tmp/.X11-unix"
ICE_DIRECTORY = "/tmp/.ICE-unix"


def xvfb_command(width: int, height: int, depth: int, displayfd: int, xauthority: str | None) -> list[str]:
    """The command line of Xvfb on a free display, whose number it writes to the descriptor ``displayfd``.

    ``-noreset``: the server keeps its keymap and atoms when the last client leaves. ``-s 0 -dpms``: it never blanks.
    """
    access = ["-auth", xauthority] if xauthority else ["-ac"]
    return [
        *("Xvfb", "-displayfd", str(displayfd), "-screen", "0", f"{width}x{height}x{depth}"),
        *("-noreset", "-nolisten", "tcp", "-s", "0", "-dpms", *access),
    ]


def new_cookie() -> bytes:
    """128 random bits, as MIT-MAGIC-COOKIE-1 takes."""
    return secrets.token_bytes(16)


def write_xauthority(path: str, cookie: bytes, number: int | None, owner: tuple[int, int] | None = None) -> None:
    """Write the authorization file for display ``number`` (None: any), readable by ``owner`` (uid, gid) alone.

    FamilyWild too, because the name of the host may change while the desktop runs. The file is put in place whole:
    the server reads it again when it changed, and lets everybody in when it is gone.
    """
    display = b"" if number is None else str(number).encode()
    entries = [
        auth.AuthEntry(auth.FAMILY_LOCAL, socket.gethostname().encode(), display, auth.MIT_MAGIC_COOKIE, cookie),
        auth.AuthEntry(auth.FAMILY_WILD, b"", display, auth.MIT_MAGIC_COOKIE, cookie),
    ]
    temporary = path + ".new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if owner is not None:
            os.fchown(descriptor, *owner)
        file.write(b"".join(auth.pack_entry(entry) for entry in entries))
    os.replace(temporary, path)


@dataclass(frozen=True)
class Leftover:
    """A lock file or socket whose server looked dead, with what it was then: a newer file of that name is not it."""

    path: str
    number: int
    identity: tuple[int, int]


def find_leftovers() -> list[Leftover]:
    """Lock files and sockets of X servers that do not answer.

    A pid in a lock file proves nothing by itself: after a restart the number may be another process's. What counts is
    whether anybody listens on the display's socket. A process that is an X server is left alone in any case, as it
    may be just about to listen.
    """
    found = []
    for path, number in _server_files():
        try:
            facts = os.lstat(path)
        except OSError:
            continue
        if not _listens(number) and not _lock_of_server(number):
            found.append(Leftover(path, number, (facts.st_ino, facts.st_mtime_ns)))
    return found


def clear_leftovers(leftovers: list[Leftover]) -> list[str]:
    """Remove what still is as ``find_leftovers`` saw it and still dead; gives the paths removed.

    Two looks some time apart, so that a server caught between its lock file and its socket is not hurt. Files of
    other users that we may not remove stay: ``-displayfd`` goes round them.
    """
    removed = []
    for leftover in leftovers:
        try:
            facts = os.lstat(leftover.path)
            same = (facts.st_ino, facts.st_mtime_ns) == leftover.identity
            if same and not _listens(leftover.number) and not _lock_of_server(leftover.number):
                os.unlink(leftover.path)
                removed.append(leftover.path)
        except OSError:
            continue
    return removed


def make_socket_directories() -> None:
    """As root, make the directories of X11 and ICE sockets as X servers and session managers want them, root's own."""
    for path in (SOCKET_DIRECTORY, ICE_DIRECTORY):
        if os.geteuid() == 0 and not os.path.lexists(path):
            os.mkdir(path)
            os.chmod(path, 0o1777)


def _server_files() -> list[tuple[str, int]]:
    found = []
    for directory, pattern in ((LOCK_DIRECTORY, r"\.X(\d{1,5})-lock"), (SOCKET_DIRECTORY, r"X(\d{1,5})")):
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            match = re.fullmatch(pattern, name)
            if match:
                found.append((os.path.join(directory, name), int(match[1])))
    return sorted(found)


def _listens(number: int) -> bool:
    """Whether somebody takes connections on the display's socket, in the file system or abstract."""
    for address in (f"{SOCKET_DIRECTORY}/X{number}", f"\0{SOCKET_DIRECTORY}/X{number}"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            try:
                sock.connect(address)
                return True
            except (FileNotFoundError, ConnectionRefusedError):
                continue
            except OSError:
                return True  # a full backlog, or a socket we may not use: somebody is there
    return False


def _lock_of_server(number: int) -> bool:
    """Whether the pid in the display's lock file is that of an X server."""
    try:
        with open(f"{LOCK_DIRECTORY}/.X{number}-lock", "rb") as file:
            pid = int(file.read(32).strip())
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read(1) == b"X"
    except (OSError, ValueError):
        return False
