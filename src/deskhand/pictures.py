"""How large a picture each vendor's models take: sized before it is sent, so the model clicks in the pixels it saw.

An oversized picture is scaled down by the vendor out of our sight, and then the model's positions are in a space nobody
here knows. So the hand is asked for a picture that fits (``picture.max_edge`` of the envelope); it never enlarges one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from deskhand.hand.picture import MAX_EDGE
from deskhand.hand.pixels import fit

Size = tuple[int, int]


@dataclass(frozen=True)
class Limits:
    """What a vendor's models take without scaling it: each in pixels, None where there is no such limit.

    ``max_patches`` counts squares of ``patch`` pixels, each begun one in full: the visual tokens of a picture.
    """

    max_edge: int = MAX_EDGE
    max_short_edge: int | None = None
    max_pixels: int | None = None
    max_patches: int | None = None
    patch: int = 28

    def allow(self, size: Size) -> bool:
        """Whether a picture of ``size`` keeps every limit."""
        width, height = size
        patches = math.ceil(width / self.patch) * math.ceil(height / self.patch)
        return (
            max(size) <= self.max_edge
            and (self.max_short_edge is None or min(size) <= self.max_short_edge)
            and (self.max_pixels is None or width * height <= self.max_pixels)
            and (self.max_patches is None or patches <= self.max_patches)
        )


#: Claude API documentation, Images and vision, Resolution and token cost: models up to the 4.6 family.
ANTHROPIC = Limits(max_edge=1568, max_pixels=1_150_000, max_patches=1568)
#: The same page: the 4.7 models and later, which are all that take the computer toolset.
ANTHROPIC_HIGH_RESOLUTION = Limits(max_edge=2576, max_pixels=3_750_000, max_patches=4784)
#: OpenAI API documentation, Images and vision, detail "original": at most 6000 pixels and 10,000 patches of 32, which a
#: picture of the hand's never reaches.
OPENAI = Limits(max_edge=2576, max_patches=10_000, patch=32)
#: The same page, detail "high": fitted into 2048x2048, then the short edge to 768.
OPENAI_PREVIEW = Limits(max_edge=2048, max_short_edge=768)
#: Gemini API documentation, Computer Use: it answers in thousandths whatever the size, and 1440x900 is recommended.
GOOGLE = Limits(max_edge=1440)
#: Qwen-VL answers in thousandths whatever the size; this many patches keep small text readable at a fair cost.
QWEN = Limits(max_edge=2560, max_patches=2560, patch=32)
#: UI-TARS repository, codes/ui_tars/action_parser.py, MAX_PIXELS: 16384 patches.
UI_TARS = Limits(max_edge=2560, max_pixels=16384 * 28 * 28)


def picture_size(screen: Size, limits: Limits) -> Size:
    """The size of the largest picture of ``screen`` that keeps ``limits``: never larger than the screen, same shape.

    It is exactly the size the hand makes of ``{"picture": {"max_edge": max(size)}}``.

    Raises:
        ValueError: ``screen`` is not at least one pixel each way.
    """
    width, height = screen
    if width < 1 or height < 1:
        raise ValueError(f"a screen has at least 1x1 pixels, not {width}x{height}")
    low, high = 1, min(max(width, height), limits.max_edge)
    # A larger edge gives a picture that is larger or equal both ways, so the limits hold up to some edge and not above.
    while low < high:
        middle = (low + high + 1) // 2
        if limits.allow(fit(width, height, middle)):
            low = middle
        else:
            high = middle - 1
    return fit(width, height, low)


def resized_by_model(size: Size, factor: int = 28, min_pixels: int = 78_400, max_pixels: int = 12_845_056) -> Size:
    """The size a model of the Qwen2.5-VL family gives a picture before it looks: both edges multiples of ``factor``.

    UI-TARS 1.5 answers in these pixels (UI-TARS repository, codes/ui_tars/action_parser.py, smart_resize).
    """
    width, height = size
    new_width, new_height = (max(factor, round(edge / factor) * factor) for edge in size)
    if new_width * new_height > max_pixels:
        beta = math.sqrt(width * height / max_pixels)
        new_width, new_height = (math.floor(edge / beta / factor) * factor for edge in size)
    elif new_width * new_height < min_pixels:
        beta = math.sqrt(min_pixels / (width * height))
        new_width, new_height = (math.ceil(edge * beta / factor) * factor for edge in size)
    return new_width, new_height
