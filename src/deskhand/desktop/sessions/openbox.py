"""A bare openbox: a window manager without panel, desktop or settings of its own."""

from __future__ import annotations

from .session import Session

OPENBOX = Session(
    command=("openbox", "--sm-disable"),
    environment={"XDG_CURRENT_DESKTOP": "Openbox"},
    # An empty openbox screen has one colour, which could as well be a broken one.
    asides=(("xsetroot", "-mod", "16", "16", "-fg", "#4d6078", "-bg", "#44566c"),),
    paints=False,
)
