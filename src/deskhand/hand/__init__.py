"""Beside the X server: looking, acting, settling, finding and opening applications.

Standard library only, Python 3.9 and newer, imports nothing of the rest of the project: it ships as one file
(``build``) and runs in images that have nothing but ``python3``. Start at ``hand.Hand``.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Hand", "build"]


def __getattr__(name: str) -> Any:
    # Late, so that ``from deskhand.hand import applications`` costs nothing but the lookup.
    if name == "Hand":
        from .hand import Hand

        return Hand
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def build(target: str = "deskhand-hand.pyz") -> str:
    """Write the one-file form to ``target``; the same sources give the same bytes. Gives the path."""
    from .one_file import build as write

    return write(target)
