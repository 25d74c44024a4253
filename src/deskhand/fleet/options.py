"""What a host owns, and what it has done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
    """

    size: int = 1
    spares: int = 1
    session: str = "openbox"
    screen: tuple[int, int] = (1280, 800)
    timeout: float = 60.0
    starts: int = 0
    template: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.size < 1 or self.spares < 0 or self.starts < 0:
            raise ValueError("a host has 1 desktop or more, and 0 spares or more")

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
