"""The options that newer versions of Harbor check an agent's keyword arguments with."""

from __future__ import annotations

from harbor.agents.computer_1.computer_1 import Computer1Options
from pydantic import Field


class ExistingDesktopOptions(Computer1Options):  # type: ignore[misc]
    """Those of computer-1, and ours. Their values are checked by ``Settings``."""

    display: str | None = Field(default=None, description="The display in the sandbox. Default: :1.")
    xauthority: str | None = Field(default=None, description="Its cookie file there. Omit to have it found.")
    settle: str | None = Field(default=None, description="quiet: until the screen stops changing; or fixed.")
    settle_sec: float | None = Field(default=None, description="Seconds; the bound of quiet. Default: 2.0.")
    screenshot_size: str | tuple[int, int] | None = Field(default=None, description="WIDTHxHEIGHT of the pictures.")
    keep_screenshots: int | None = Field(default=None, description="Pictures in a request at most. Omit for all.")
    coordinate_space: str | None = Field(default=None, description="normalized_0_999. Omit for pixels.")
    driver: str | None = Field(default=None, description="hand or tools. Omit for hand where there is python3.")
