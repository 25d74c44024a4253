"""What is installed is used, what is not is done without; the one place that imports any of it."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from deskhand.hand import accelerators

SOURCES = Path(accelerators.__file__).parents[2]


def compressed(data: bytes) -> bytes:
    """In two pieces, as strips of a picture come."""
    deflate = accelerators.deflate()
    return bytes(deflate.compress(data[:500]) + deflate.compress(data[500:]) + deflate.flush())


def test_every_compressor_gives_zlibs_format() -> None:
    data = os.urandom(1000) + bytes(100_000)
    assert zlib.decompress(compressed(data)) == data
    accelerators.without()
    try:
        assert zlib.decompress(compressed(data)) == data
        assert accelerators.pillow() is None
    finally:
        accelerators.again()


def test_nothing_is_imported_before_it_is_used() -> None:
    program = (
        "import sys; import deskhand.hand.picture, deskhand.hand.png, deskhand.hand.screen;"
        "print(sorted({'PIL', 'isal', 'numpy', 'Xlib', 'xcffib'} & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_any_of_it() -> None:
    program = (
        "import sys; sys.modules['PIL'] = None; sys.modules['isal'] = None\n"
        "from deskhand.hand import accelerators as a\n"
        "print(a.pillow(), len(a.deflate().flush()) > 0)"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None True"


def test_pillow_is_found_again() -> None:
    pytest.importorskip("PIL.Image")
    assert accelerators.pillow() is not None
