"""The kinds of desktop that can be started, by the name that ``--session`` takes."""

from .gnome import GNOME
from .lxqt import LXQT
from .mate import MATE
from .openbox import OPENBOX
from .session import Session
from .xfce import XFCE

SESSIONS = {"xfce": XFCE, "openbox": OPENBOX, "mate": MATE, "lxqt": LXQT, "gnome": GNOME}

__all__ = ["SESSIONS", "Session"]
