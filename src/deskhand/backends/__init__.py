"""Where the desktop is: one file each; ``base`` says what each must answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand.backends.base import Backend, Outcome

if TYPE_CHECKING:
    from deskhand.backends.local import LocalDisplay

__all__ = ["Backend", "LocalDisplay", "Outcome"]


def __getattr__(name: str) -> Any:
    # Late: the command line needs an outcome's words and not asyncio.
    if name == "LocalDisplay":
        from deskhand.backends.local import LocalDisplay

        return LocalDisplay
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
