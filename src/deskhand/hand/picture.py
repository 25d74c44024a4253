"""From a capture to the picture an answer carries: scaled to its limits, encoded, with its facts."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple

from . import accelerators, pixels, png
from .errors import Unsupported
from .screen import Capture

FORMATS = ("png", "jpeg", "webp")
#: The long edge, in pixels, that a picture never exceeds, and its bytes: what the models' vendors take.
MAX_EDGE = 2576
MAX_BYTES = 3_750_000
#: From this many bytes on a thread is worth its start.
BESIDE = 1 << 20


class Picture(NamedTuple):
    """``content`` is the encoded file; ``scale`` is picture pixels per screen pixel."""

    content: bytes
    format: str
    width: int
    height: int
    scale: float
    sequence: int
    time: float
    hash: str
    blank: bool
    region: Tuple[int, int, int, int]
    cursor: Tuple[int, int]
    screen: Tuple[int, int]

    def facts(self) -> Dict[str, Any]:
        """The picture's entry in an answer, without the content."""
        return {
            "format": self.format,
            "width": self.width,
            "height": self.height,
            "scale": self.scale,
            "sequence": self.sequence,
            "time": round(self.time, 4),
            "hash": self.hash,
            "blank": self.blank,
            "region": list(self.region),
            "cursor": list(self.cursor),
            "screen": list(self.screen),
        }


def make_picture(
    taken: Capture,
    sequence: int,
    format: str = "png",
    max_edge: Optional[int] = MAX_EDGE,
    max_bytes: Optional[int] = MAX_BYTES,
) -> Picture:
    """Encode a capture; scaled down until it keeps both limits (None: no limit).

    The hash is over the RGB of the whole capture, before any scaling: equal screens give equal hashes.
    """
    rgb = taken.rgb()
    width, height = taken.width, taken.height
    digest = _Digest(rgb)
    new_width, new_height = pixels.fit(width, height, max_edge) if max_edge else (width, height)
    while True:
        scaled = rgb
        if (new_width, new_height) != (width, height):
            scaled = pixels.shrink(rgb, width, height, new_width, new_height)
        content = _encode(scaled, new_width, new_height, format)
        if not max_bytes or len(content) <= max_bytes or max(new_width, new_height) <= 64:
            break
        # Bytes grow about as the area does; a little more is taken off so that few rounds are needed.
        shrunk = int(max(new_width, new_height) * min(0.9, (max_bytes / len(content)) ** 0.5 * 0.97))
        new_width, new_height = pixels.fit(width, height, max(64, shrunk))
    return Picture(
        content,
        format,
        new_width,
        new_height,
        round(new_width / width, 6),
        sequence,
        taken.time,
        digest.value(),
        pixels.is_blank(rgb),
        taken.region,
        taken.cursor,
        taken.screen,
    )


class _Digest:
    """SHA-1 in hexadecimal, worked out beside the encoding: with a fast deflate it takes as long as that."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._value = ""
        self._thread: Optional[Any] = None
        if len(data) >= BESIDE and accelerators.fast():
            import threading  # the one-file form, which has no fast deflate, does without

            self._thread = threading.Thread(target=self._work, name="digest")
            self._thread.start()

    def value(self) -> str:
        if self._thread is not None:
            self._thread.join()
        else:
            self._work()
        return self._value

    def _work(self) -> None:
        import hashlib  # slow to import, and only pictures need it

        self._value = hashlib.sha1(self._data, usedforsecurity=False).hexdigest()


def check_format(format: str) -> None:
    """Raises Unsupported when this machine can not make pictures of that format."""
    if format != "png" and accelerators.pillow() is None:
        raise Unsupported(f"{format} pictures need Pillow where the hand runs: ask for png")


def _encode(rgb: bytes, width: int, height: int, format: str) -> bytes:
    if format == "png":
        return png.encode(rgb, width, height)
    check_format(format)
    image = accelerators.pillow()
    assert image is not None
    import io

    out = io.BytesIO()
    full = image.frombuffer("RGB", (width, height), rgb, "raw", "RGB", 0, 1)
    full.save(out, "JPEG" if format == "jpeg" else "WEBP", quality=85)
    return out.getvalue()
