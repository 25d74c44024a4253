"""Where the desktop is: one file each; ``base`` says what each must answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deskhand.backends.base import Backend, Outcome

if TYPE_CHECKING:
    from deskhand.backends import transports
    from deskhand.backends.guest import Finished, Guest
    from deskhand.backends.local import LocalDisplay
    from deskhand.backends.memory import Memory
    from deskhand.backends.transports import Transport

__all__ = ["Backend", "Finished", "Guest", "LocalDisplay", "Memory", "Outcome", "Transport", "transports"]

_HOME = {
    "Finished": "guest",
    "Guest": "guest",
    "LocalDisplay": "local",
    "Memory": "memory",
    "Transport": "transports",
}


def __getattr__(name: str) -> Any:
    # Late: the command line needs an outcome's words and not asyncio.
    if name == "transports":
        return import_module("deskhand.backends.transports")
    if name in _HOME:
        return getattr(import_module(f"deskhand.backends.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
