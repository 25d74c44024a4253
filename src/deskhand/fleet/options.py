"""What a host owns, and what it has done."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from deskhand.desktop.sandbox import SIZE, Isolation
from deskhand.errors import SetupError

#: See ``Options.isolation``.
ISOLATIONS = ("auto", "user", "bwrap")


@dataclass(frozen=True)
class Options:
    """What a host owns.

    Args:
        size: How many desktops can be leased at once.
        spares: How many more are kept ready, so that the next lease does not wait for a start.
        session: The kind of desktop: ``openbox``, ``xfce`` ...
        screen: Of each, in pixels.
        timeout: Seconds for one to be ready.
        starts: How many are started at once; 0: as many as there are processors.
        template: The fingerprint that all must have (see ``fingerprint``); None: that of the first.
        isolation: How far desktops are apart: ``auto``, as root an account of its own for each; ``user``, the same, and
            an error where that can not be; ``bwrap``, besides that a file system and a network of its own.
        home: ``directory``, ``tmpfs`` or ``overlay`` (see ``deskhand.desktop.sandbox``); ``""``: in memory with
            ``bwrap``, else on the disk.
        template_home: The directory under an ``overlay``.
        home_size: MiB that a HOME in memory, and what else the desktop writes, may take.
        see: Directories of this machine that a desktop with a file system of its own sees besides the programs.
    """

    size: int = 1
    spares: int = 1
    session: str = "openbox"
    screen: tuple[int, int] = (1280, 800)
    timeout: float = 60.0
    starts: int = 0
    template: dict[str, Any] | None = None
    isolation: str = "auto"
    home: str = ""
    template_home: str = ""
    home_size: int = SIZE
    see: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "see", tuple(self.see))  # JSON has lists
        if self.size < 1 or self.spares < 0 or self.starts < 0:
            raise ValueError("a host has 1 desktop or more, and 0 spares or more")
        if self.isolation not in ISOLATIONS:
            raise ValueError(f"isolation is {', '.join(ISOLATIONS)}, not {self.isolation!r}")

    @property
    def apart(self) -> Isolation | None:
        """The sandbox of each desktop; None when it has none."""
        own = self.isolation == "bwrap"
        home = self.home or ("overlay" if self.template_home else "tmpfs" if own else "directory")
        if not own and home == "directory" and not self.template_home:
            return None
        return Isolation(own, home, self.template_home, self.home_size, self.see)

    def check(self) -> None:
        """That this machine can isolate desktops as is asked for.

        Raises:
            SetupError: It can not; says why and what to do.
        """
        if self.isolation == "user" and os.geteuid() != 0:
            raise SetupError(
                "isolation 'user' gives each desktop an account of its own, which only root can make: start the fleet"
                " as root, or use isolation 'bwrap'"
            )
        apart = self.apart
        if apart is not None:
            apart.check()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Counts:
    """What a host has done since it began.

    ``expired``: leases that were not renewed in time. ``refused``: desktops that were not like the template.
    ``fenced``: calls whose lease was over. ``none_free``: who waited in vain. ``retried``: starts that succeeded after
    one that had failed. ``orphans``: desktops of hosts that were killed, ended by this one.
    """

    leases: int = 0
    expired: int = 0
    resets: int = 0
    started: int = 0
    ended: int = 0
    failed: int = 0
    refused: int = 0
    died: int = 0
    fenced: int = 0
    none_free: int = 0
    retried: int = 0
    orphans: int = 0
