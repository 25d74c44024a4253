"""Faster ways to do what the standard library does, where they are installed: the one place they are imported.

Everything here is optional and imported at first use; the hand gives the same pixels without any of it.
"""

from __future__ import annotations

import importlib
import zlib
from typing import Any, Dict, Optional

#: Module name to the module, or None for one that is not there; what was not looked for yet is missing.
_found: Dict[str, Any] = {}
_NAMES = ("isal.isal_zlib", "zlib_ng.zlib_ng", "PIL.Image", "simplejpeg", "numpy")
#: Of 0 to 100, for JPEG and WebP: text stays readable, and a screen is a third of its PNG.
QUALITY = 85


def deflate() -> Any:
    """A zlib compressor (``compress``, ``flush``), fast rather than small: isal's igzip, else zlib-ng, else zlib.

    On a picture of a desktop they take about 1, 1.5 and 7 times as long, and make the same bytes within 20 %.
    """
    fastest = _module("isal.isal_zlib") or _module("zlib_ng.zlib_ng") or zlib
    return fastest.compressobj(1)


def pillow() -> Optional[Any]:
    """The module ``PIL.Image``, or None."""
    return _module("PIL.Image")


def jpeg(rgb: bytes, width: int, height: int) -> Optional[bytes]:
    """A JPEG of ``height`` rows of ``width`` pixels, three bytes each, by libjpeg-turbo; None where it is missing."""
    simplejpeg, numpy = _module("simplejpeg"), _module("numpy")
    if simplejpeg is None or numpy is None:
        return None
    rows = numpy.frombuffer(rgb, dtype=numpy.uint8).reshape(height, width, 3)
    return bytes(simplejpeg.encode_jpeg(rows, quality=QUALITY, colorspace="RGB", colorsubsampling="420"))


def has_jpeg() -> bool:
    """Whether ``jpeg`` gives any."""
    return _module("simplejpeg") is not None and _module("numpy") is not None


def without(*names: str) -> None:
    """Go on as if these modules (all that are known here, when none is named) were not installed: for comparisons."""
    _found.update(dict.fromkeys(names or _NAMES))


def again() -> None:
    """Look for what is installed at the next use."""
    _found.clear()


def _module(name: str) -> Optional[Any]:
    if name not in _found:
        try:
            _found[name] = importlib.import_module(name)
        except ImportError:
            _found[name] = None
    return _found[name]
