"""Faster ways to do what the standard library does, where they are installed: the one place they are imported.

Everything here is optional and imported at first use; the hand gives the same pixels without any of it.
"""

from __future__ import annotations

import zlib
from typing import Any, Optional

_UNKNOWN: Any = object()
_isal: Any = _UNKNOWN
_pillow: Any = _UNKNOWN


def deflate() -> Any:
    """A zlib compressor (``compress``, ``flush``), fast rather than small: isal's igzip, else zlib level 1."""
    global _isal
    if _isal is _UNKNOWN:
        try:
            from isal import isal_zlib as _isal
        except ImportError:
            _isal = None
    return (zlib if _isal is None else _isal).compressobj(1)


def pillow() -> Optional[Any]:
    """The module ``PIL.Image``, or None."""
    global _pillow
    if _pillow is _UNKNOWN:
        try:
            from PIL import Image as _pillow
        except ImportError:
            _pillow = None
    return _pillow


def without() -> None:
    """Go on as if nothing were installed (tests compare both ways)."""
    global _isal, _pillow
    _isal = _pillow = None


def again() -> None:
    """Look for what is installed at the next use."""
    global _isal, _pillow
    _isal = _pillow = _UNKNOWN
