"""For tests of this project and of others: a real X server and a real window manager as context managers."""

from .xserver import XServer, window_manager, xvfb

__all__ = ["XServer", "window_manager", "xvfb"]
