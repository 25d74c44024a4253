"""A backend that answers what the test says, and what such answers are made of."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from deskhand import Backend, Outcome
from deskhand.backends.base import Envelope


def ok(*names: str, picture: int | None = None, **more: Any) -> Outcome:
    """The outcome of a batch that went well."""
    return outcome([{"action": name, "status": "ok"} for name in names], True, picture, **more)


def outcome(results: list[dict[str, Any]], fine: bool, picture: int | None = None, **more: Any) -> Outcome:
    answer: dict[str, Any] = {"ok": fine, "sent": "all" if fine else "part", "results": results, "settle": "none"}
    answer.update(settled=True, settle_ms=0, moving=[], **more)
    if picture is not None:
        answer["picture"] = {"format": "png", "width": 1, "height": 1, "sequence": picture}
    return Outcome(answer, b"picture" if picture is not None else None)


class Told(Backend):
    """A backend that answers what the test says, one item a batch, and keeps what it was sent."""

    def __init__(self, *answers: Outcome | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[dict[str, Any]] = []
        self.closed = 0
        self.at_once = 0

    async def info(self) -> dict[str, Any]:
        return {}

    async def act(self, batch: Envelope) -> Outcome:
        self.sent.append(dict(batch))
        self.at_once += 1
        assert self.at_once == 1, "two batches at once"
        await asyncio.sleep(0)
        self.at_once -= 1
        answer = self.answers.pop(0) if self.answers else ok(*(action["action"] for action in batch["actions"]))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def apps(self) -> list[dict[str, str]]:
        return [{"id": "a", "name": "A", "path": "/a"}]

    async def windows(self) -> list[dict[str, Any]]:
        return []

    async def aclose(self) -> None:
        self.closed += 1


def batch(*names: str, **more: Any) -> dict[str, Any]:
    return {"actions": [{"action": name} for name in names], **more}


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "trace.jsonl").read_text("utf-8").splitlines()]
