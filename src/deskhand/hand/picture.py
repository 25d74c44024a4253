"""From a capture to the picture an answer carries: scaled to its limits, encoded, with its facts."""

from __future__ import annotations

from typing import Any, Dict, Iterator, NamedTuple, Optional, Set, Tuple

from . import accelerators, pixels, png
from .errors import Unsupported
from .screen import Capture

FORMATS = ("png", "jpeg", "webp")
#: The long edge, in pixels, that a picture never exceeds, and its bytes: what the models' vendors take.
MAX_EDGE = 2576
MAX_BYTES = 3_750_000


class Picture(NamedTuple):
    """``content`` is the encoded file; ``scale`` is picture pixels per screen pixel, along the long edge.

    The short edge of a narrow picture is rounded too much to tell.
    """

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
    width, height = taken.width, taken.height
    size = pixels.fit(width, height, max_edge) if max_edge else (width, height)
    rgb = b""
    if format == "png" and size == (width, height):
        content, digest, blank = _encode_while_read(taken)
    else:
        import hashlib  # slow to import, and only pictures need it

        rgb, content = taken.rgb(), b""
        digest, blank = hashlib.sha1(rgb, usedforsecurity=False).hexdigest(), pixels.is_blank(rgb)
    while not content or (max_bytes and len(content) > max_bytes and max(size) > 64):
        if content:
            # Bytes grow about as the area does; a little more is taken off so that few rounds are needed.
            shrunk = int(max(size) * min(0.9, ((max_bytes or 1) / len(content)) ** 0.5 * 0.97))
            size = pixels.fit(width, height, max(64, shrunk))
        rgb = rgb or taken.rgb()
        scaled = rgb if size == (width, height) else pixels.shrink(rgb, width, height, *size)
        content = _encode(scaled, *size, format)
    return Picture(
        content,
        format,
        *size,
        round(max(size) / max(width, height), 6),
        sequence,
        taken.time,
        digest,
        blank,
        taken.region,
        taken.cursor,
        taken.screen,
    )


def _encode_while_read(taken: Capture) -> Tuple[bytes, str, bool]:
    """The PNG, the hash, and whether it is all one colour: everything that is done to a few rows before the next."""
    import hashlib

    digest = hashlib.sha1(usedforsecurity=False)
    colours: Set[Optional[bytes]] = set()

    def strips() -> Iterator[bytes]:
        for strip in taken.strips():
            digest.update(strip)
            if len(colours) < 2:
                colours.add(strip[:3] if pixels.is_blank(strip) else None)
            yield strip

    content = png.encode_strips(strips(), taken.width, taken.height)
    return content, digest.hexdigest(), len(colours) == 1 and None not in colours


def check_format(format: str) -> None:
    """Raises Unsupported when this machine can not make pictures of that format."""
    if format == "png" or accelerators.pillow() is not None or (format == "jpeg" and accelerators.has_jpeg()):
        return
    raise Unsupported(f"{format} pictures need Pillow where the hand runs: ask for png")


def _encode(rgb: bytes, width: int, height: int, format: str) -> bytes:
    if format == "png":
        return png.encode(rgb, width, height)
    check_format(format)
    if format == "jpeg":
        content = accelerators.jpeg(rgb, width, height)
        if content is not None:
            return content
    image = accelerators.pillow()
    assert image is not None
    import io

    out = io.BytesIO()
    full = image.frombuffer("RGB", (width, height), rgb, "raw", "RGB", 0, 1)
    full.save(out, "JPEG" if format == "jpeg" else "WEBP", quality=accelerators.QUALITY)
    return out.getvalue()
