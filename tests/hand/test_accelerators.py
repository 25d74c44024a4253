"""What is installed is used, what is not is done without; the one place that imports any of it."""

from __future__ import annotations

import io
import operator
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from deskhand.hand import accelerators, picture
from deskhand.hand.errors import Unsupported

SOURCES = Path(accelerators.__file__).parents[2]


def compressed(data: bytes) -> bytes:
    """In two pieces, as strips of a picture come."""
    deflate = accelerators.deflate()
    return bytes(deflate.compress(data[:500]) + deflate.compress(data[500:]) + deflate.flush())


@pytest.fixture(autouse=True)
def nothing_stays_hidden() -> Iterator[None]:
    yield
    accelerators.again()


def test_every_compressor_gives_zlibs_format() -> None:
    data = os.urandom(1000) + bytes(100_000)
    for name, module in (("isal.isal_zlib", "isal"), ("zlib_ng.zlib_ng", "zlib_ng"), ("", "zlib")):
        if find_spec(module) is not None:
            assert type(accelerators.deflate()).__module__.startswith(module)
            assert zlib.decompress(compressed(data)) == data
        accelerators.without(name)
    accelerators.without()
    assert accelerators.pillow() is None


def test_jpegs_are_the_same_picture_with_and_without_libjpeg_turbo() -> None:
    pytest.importorskip("simplejpeg")
    image = pytest.importorskip("PIL.Image")
    rgb = b"".join(bytes((x * 4, y * 8, 128)) for y in range(32) for x in range(64))
    pixels = []
    for _ in range(2):
        with image.open(io.BytesIO(picture._encode(rgb, 64, 32, "jpeg"))) as made:
            assert (made.format, made.size, made.mode) == ("JPEG", (64, 32), "RGB")
            pixels.append(made.tobytes())
        accelerators.without("simplejpeg")
    assert max(map(abs, map(operator.sub, *pixels))) <= 4
    assert max(map(abs, map(operator.sub, pixels[0], rgb))) <= 40


def test_a_jpeg_needs_either_of_the_two() -> None:
    accelerators.without("PIL.Image")
    assert accelerators.has_jpeg() == (find_spec("simplejpeg") is not None)
    accelerators.without()
    for kind in ("jpeg", "webp"):
        with pytest.raises(Unsupported, match="Pillow"):
            picture.check_format(kind)


def test_nothing_is_imported_before_it_is_used() -> None:
    program = (
        "import sys; import deskhand.hand.picture, deskhand.hand.png, deskhand.hand.screen;"
        "print(sorted({'PIL', 'isal', 'numpy', 'simplejpeg', 'zlib_ng', 'Xlib', 'xcffib'} & set(sys.modules)))"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_any_of_it() -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('PIL', 'isal', 'zlib_ng', 'simplejpeg')))\n"
        "from deskhand.hand import accelerators as a\n"
        "print(a.pillow(), len(a.deflate().flush()) > 0)"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None True"


def test_pillow_is_found_again() -> None:
    pytest.importorskip("PIL.Image")
    assert accelerators.pillow() is not None
