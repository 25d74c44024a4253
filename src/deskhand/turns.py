"""How a session takes its turn at a desktop that others may want too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deskhand.backends.base import Backend, Envelope
from deskhand.errors import Unsupported

#: Seconds that a parked session keeps its desktop at most.
PARKED = 3600.0


@dataclass(frozen=True)
class LeaseTerms:
    """The terms of a session's lease.

    Args:
        ttl: Seconds after its last call for which it keeps the desktop; it can be taken from it after that.
        wait: Seconds to queue while another session has it; 0 is refused at once, with that session's name.
    """

    ttl: float = 300.0
    wait: float = 0.0

    def __post_init__(self) -> None:
        if not self.ttl > 0 or not self.wait >= 0:
            raise ValueError("ttl must be more than 0 seconds, and wait 0 or more")


def terms_at(backend: Backend, wait: float = 0.0) -> LeaseTerms | None:
    """The usual terms; None where the desktop knows no leases, being one session's alone, or they can not be had."""
    try:
        backend.lease("")  # not taken by that
    except Unsupported:
        return None
    return LeaseTerms(wait=wait)


def longest(batch: Envelope) -> float:
    """Seconds that ``batch`` may take at most, roughly and not too few: for so long its session keeps the desktop."""
    actions, settle = batch.get("actions"), batch.get("settle")
    # It settles at the end, and before each look on the way.
    settling = _seconds(settle.get("timeout")) if isinstance(settle, dict) else 0.0
    total = settling
    for action in actions if isinstance(actions, list) else []:
        if isinstance(action, dict):
            total += 20.0 + _seconds(action.get("seconds")) + _seconds(action.get("timeout"))
            total += 0.05 * len(str(action.get("text", "")))
            total += settling if action.get("action") in ("screenshot", "zoom") else 0.0
    return total


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and 0 <= value <= 60 else 0.0
