"""What OSWorld's two action spaces share: ``computer_13`` (``osworld``) and code (``pyautogui``).

The prompt describes both to the model, and the last word of a run is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deskhand.backends.base import Outcome
from deskhand.pictures import Limits, Size
from deskhand.vendors.base import Adapter, Finish, Turn
from deskhand.vendors.chat import chat_message, data_url, said
from deskhand.vendors.results import CallResult

#: OSWorld waits this long for WAIT (desktop_env.py, step, pause).
WAIT_SECONDS = 2
MAX_NOTCHES = 1000
ENDINGS = {
    "DONE": Finish("the model says that it is done"),
    "FAIL": Finish("the model gave up", success=False),
}


class OSWorldSpace(Adapter):
    """One of them, with positions in pixels of the picture the model saw, or of the screen."""

    def __init__(self, screen: Size, positions: str = "picture", limits: Limits | None = None) -> None:
        if positions not in ("picture", "screen"):
            raise ValueError("positions must be picture or screen")
        super().__init__(screen, limits)
        self.positions = positions

    @property
    def space(self) -> Any:
        return "screen" if self.positions == "screen" else super().space

    def tools(self) -> list[dict[str, Any]]:
        return []

    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """One user message of chat completions: the newest picture, and what has to be said."""
        picture = None if look is None else data_url(look)
        lines = []
        for result in results:
            picture = data_url(result) or picture
            name = f"{result.verb or 'action'} {result.call + 1}: " if len(results) > 1 else ""
            lines += [f"{name}{said(result)}"] if not result.ok or result.text else []
        return [chat_message("\n".join(lines) or "Done.", picture)]
