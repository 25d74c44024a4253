"""The authorization file: Xau(3), and X(7), ACCESS CONTROL.

Entries are big-endian and length-prefixed: family, address, display number, name, data.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Iterator, NamedTuple, Optional, Tuple

from .display_name import DisplayName

FAMILY_LOCAL = 256
FAMILY_WILD = 65535
MIT_MAGIC_COOKIE = b"MIT-MAGIC-COOKIE-1"


class AuthEntry(NamedTuple):
    family: int
    address: bytes
    number: bytes
    name: bytes
    data: bytes


def read_entries(content: bytes) -> Iterator[AuthEntry]:
    """The entries of an authorization file, up to the first that is cut short."""
    at = 0
    while at + 2 <= len(content):
        (family,) = struct.unpack_from(">H", content, at)
        at += 2
        parts = []
        for _ in range(4):
            if at + 2 > len(content):
                return
            (length,) = struct.unpack_from(">H", content, at)
            parts.append(content[at + 2 : at + 2 + length])
            if len(parts[-1]) < length:
                return
            at += 2 + length
        yield AuthEntry(family, *parts)


def pack_entry(entry: AuthEntry) -> bytes:
    """One entry as the file holds it."""
    out = struct.pack(">H", entry.family)
    for part in entry[1:]:
        out += struct.pack(">H", len(part)) + part
    return out


def default_file() -> str:
    """XAUTHORITY, else ``~/.Xauthority``."""
    return os.environ.get("XAUTHORITY") or os.path.join(os.path.expanduser("~"), ".Xauthority")


def find_cookie(display: DisplayName, path: str) -> Tuple[Optional[bytes], str]:
    """The cookie for ``display`` in the file at ``path``, and what to tell a person about that file.

    As in XauGetBestAuthByAddr(3): the first entry whose address and display number match, where the family
    FamilyWild and an empty number match anything.
    """
    try:
        content = _read(path)
    except FileNotFoundError:
        return None, f"there is no cookie file {path}"
    except OSError as error:
        return None, f"the cookie file {path} can not be read ({error.strerror})"
    number = str(display.number).encode()
    here = socket.gethostname().encode()
    local = display.host in ("", "localhost", "127.0.0.1", "::1") or display.host.encode() == here
    others = False
    for entry in read_entries(content):
        for_us = entry.family == FAMILY_WILD
        for_us = for_us or (local and entry.family == FAMILY_LOCAL and entry.address == here)
        for_us = for_us or (display.host != "" and _is_address_of(entry, display.host))
        if for_us and entry.name == MIT_MAGIC_COOKIE and entry.number in (b"", number):
            return entry.data, f"the cookie in {path} was tried"
        others = True
    return None, f"{path} holds {'cookies for other displays only' if others else 'no cookie'}"


def _read(path: str) -> bytes:
    # Not blocking, so that a pipe at that path is no hang; a cookie file has some hundred bytes.
    with open(path, "rb", buffering=0, opener=lambda p, flags: os.open(p, flags | os.O_NONBLOCK)) as file:
        return file.read(1 << 20) or b""


def _is_address_of(entry: AuthEntry, host: str) -> bool:
    if entry.family == FAMILY_LOCAL or entry.family not in (0, 6):
        return entry.address == host.encode()
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET6 if entry.family == 6 else socket.AF_INET)
    except OSError:
        return False
    family = socket.AF_INET6 if entry.family == 6 else socket.AF_INET
    return any(socket.inet_pton(family, str(info[4][0]).split("%")[0]) == entry.address for info in found)
