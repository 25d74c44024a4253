"""Where the desktop is: one file each; ``base`` says what each must answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deskhand.backends.base import Backend, Outcome

if TYPE_CHECKING:
    from deskhand.backends import transports
    from deskhand.backends.daemon import Daemon
    from deskhand.backends.e2b import E2B
    from deskhand.backends.guest import Finished, Guest
    from deskhand.backends.local import LocalDisplay
    from deskhand.backends.memory import Memory
    from deskhand.backends.own_screen import OwnScreen
    from deskhand.backends.transports import Transport

__all__ = [
    "E2B",
    "Backend",
    "Daemon",
    "Finished",
    "Guest",
    "LocalDisplay",
    "Memory",
    "Outcome",
    "OwnScreen",
    "Transport",
    "transports",
]

_HOME = {
    "Daemon": "daemon",
    "E2B": "e2b",
    "Finished": "guest",
    "Guest": "guest",
    "LocalDisplay": "local",
    "Memory": "memory",
    "OwnScreen": "own_screen",
    "Transport": "transports",
}


def __getattr__(name: str) -> Any:
    # Late: the command line needs an outcome's words and not asyncio.
    if name == "transports":
        return import_module("deskhand.backends.transports")
    if name in _HOME:
        return getattr(import_module(f"deskhand.backends.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
