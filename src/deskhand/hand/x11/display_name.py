"""What DISPLAY names: the forms of X(7), DISPLAY NAMES."""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple

from ..errors import NoDisplay

SOCKET_DIRECTORY = "/tmp/.X11-unix"


class DisplayName(NamedTuple):
    """``host`` is empty for this machine's unix socket; ``screen`` is the screen number."""

    host: str
    number: int
    screen: int

    @property
    def socket_path(self) -> str:
        return f"{SOCKET_DIRECTORY}/X{self.number}"

    def __str__(self) -> str:
        return f"{self.host}:{self.number}"


def parse_display(text: str) -> DisplayName:
    """``:1``, ``:1.0``, ``unix:1``, ``unix/:1``, ``host:1``, ``[::1]:1`` to their parts.

    Raises:
        NoDisplay: ``text`` is none of these.
    """
    match = re.fullmatch(
        r"(?:(?P<proto>tcp|unix|inet6?|local)/)?(?P<host>\[[^\]]+\]|[^:/\s]*):(?P<number>\d{1,5})(?:\.(?P<screen>\d{1,3}))?",
        text,
        re.ASCII,
    )
    if match is None:
        raise NoDisplay(f"{text!r} is not a display name: it looks like ':1' or 'host:1'{found_displays()}")
    host = match["host"].strip("[]")
    if host == "unix" or match["proto"] in ("unix", "local"):
        host = ""
    return DisplayName(host, int(match["number"]), int(match["screen"] or 0))


def running_displays() -> List[str]:
    """Displays whose unix socket exists here, in numeric order. A socket may be left from a dead server."""
    try:
        names = os.listdir(SOCKET_DIRECTORY)
    except OSError:
        return []
    numbers = sorted(int(name[1:]) for name in names if re.fullmatch(r"X\d+", name))
    return [f":{number}" for number in numbers]


def found_displays() -> str:
    """The tail of a sentence that names the displays found here."""
    found = running_displays()
    return f" (found {', '.join(found)})" if found else " (none found on this machine)"
