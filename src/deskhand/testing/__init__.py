"""For tests of this project and of others: a real X server and a real window manager as context managers."""

import sys

from .xserver import XServer, window_manager, xvfb

__all__ = ["XServer", "window_manager", "xvfb"]

if "pytest" in sys.modules:  # so that its failures say what was compared
    for _name in ("conformance", "backend_conformance", "lease_conformance"):
        sys.modules["pytest"].register_assert_rewrite(f"{__name__}.{_name}")
