"""Outcomes and a session, as a desktop would give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskhand.approvals import Approve, Ask
from deskhand.backends.base import Outcome
from deskhand.errors import ActionError

PNG = b"\x89PNG\r\n\x1a\nnot a real one"


def facts(width: int = 1280, height: int = 800, region: list[int] | None = None) -> dict[str, Any]:
    screen = [1280, 800]
    return {"width": width, "height": height, "screen": screen, "region": region or [0, 0, *screen], "format": "png"}


def outcome(*statuses: str, error: str = "", png: bytes | None = PNG, answer: Any = None) -> Outcome:
    """One result for each status; the failed one says ``error``; ``answer`` replaces fields of the answer."""
    results: list[dict[str, Any]] = [{"status": status, "point": [1, 2]} for status in statuses]
    for result in results:
        if result["status"] == "failed":
            result["error"] = error or "it broke"
    told: dict[str, Any] = {"ok": all(status == "ok" for status in statuses), "results": results, "settle": "settled"}
    if png is not None:
        told["picture"] = facts()
    return Outcome({**told, **(answer or {})}, png)


class PretendSession:
    """Answers each batch with the next of ``answers``, or with all ok; remembers what it was asked."""

    def __init__(self, *answers: Outcome | ActionError) -> None:
        self.answers = list(answers)
        self.batches: list[dict[str, Any]] = []
        self.looks = 0
        #: Asks a person, as a session's.
        self.approve: Approve | None = None

    async def allow(self, ask: Ask) -> bool:
        return self.approve is not None and await self.approve(ask)

    async def act(self, batch: Mapping[str, Any]) -> Outcome:
        self.batches.append(dict(batch))
        answer = self.answers.pop(0) if self.answers else outcome(*["ok"] * len(batch["actions"]))
        if isinstance(answer, ActionError):
            raise answer
        return answer

    async def screenshot(self, **wish: Any) -> Outcome:
        self.looks += 1
        return outcome("ok")
