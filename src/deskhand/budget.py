"""The budget of a run: how many actions it may try."""

from __future__ import annotations

from typing import Any

from deskhand.backends.base import Envelope
from deskhand.errors import BudgetSpent


class Budget:
    """``most`` actions, or None for no limit.

    Every action that was tried counts, the failing one of a stopped batch included; skipped ones do not.
    """

    def __init__(self, most: int | None = None) -> None:
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise ValueError("max_actions must be a whole number, 1 or more, or None for no limit")
        self.most = most
        #: Actions tried so far.
        self.used = 0

    @property
    def left(self) -> int | None:
        """Actions that may still be tried; None when there is no limit."""
        return None if self.most is None else max(0, self.most - self.used)

    def check(self, batch: Envelope) -> None:
        """Whether ``batch`` may be tried; one that is none is the backend's to refuse.

        Raises:
            BudgetSpent: It holds more actions than are left.
        """
        actions = batch.get("actions")
        if self.left is None or not isinstance(actions, list) or len(actions) <= self.left:
            return
        raise BudgetSpent(
            f"the batch holds {len(actions)} actions and the run has {self.left} of {self.most} left:"
            " send fewer, or finish"
        )

    def count(self, answer: dict[str, Any]) -> None:
        """Count what an answer says was tried."""
        self.used += sum(result["status"] != "skipped" for result in answer["results"])

    def count_failed(self, batch: Envelope, sent: str, answer: dict[str, Any] | None) -> None:
        """Of a batch that is lost nobody knows how much was tried, so all of it counts."""
        actions = batch.get("actions")
        if answer is not None:
            self.count(answer)
        elif sent != "none" and isinstance(actions, list):
            self.used += len(actions)
