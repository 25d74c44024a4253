"""What a session launched, and how it is asked to close when the session's policy says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.errors import ActionError

#: How often the windows are looked at when they are asked to close.
_ROUNDS = 3


@dataclass(frozen=True)
class Launched:
    """One application that a session opened: its window, the process of that window, and the application's id."""

    window: int
    pid: int | None
    app_id: str


def launches_of(batch: Envelope, outcome: Outcome) -> list[Launched]:
    """What ``batch`` opened that may be closed again: not what is to stay open, and not what ran before."""
    found = []
    for action, result in zip(batch["actions"], outcome.results, strict=False):
        window = result.get("window")
        started = result["action"] == "launch" and result["status"] == "ok" and result.get("outcome") == "window"
        if started and isinstance(window, dict) and not action.get("keep_open"):
            found.append(Launched(int(window["id"]), result.get("pid"), str(window.get("app_id", ""))))
    return found


async def close_all(backend: Backend, wanted: Sequence[Launched]) -> AsyncIterator[tuple[dict[str, Any], Outcome]]:
    """Ask every window of ``wanted`` that is still open to close, one batch each; each batch and what came of it.

    A dialog of an application is left to its main window; but what was launched may itself be one. One that closes may
    open the next (it asked something first), so the windows are looked at again, a few times.

    Raises:
        DeskhandError: The desktop can not be reached.
    """
    tried: set[int] = set()
    for _ in range(_ROUNDS):
        found = [window for window in await backend.windows() if window["id"] not in tried and _ours(window, wanted)]
        if not found:
            return
        for window in found:
            tried.add(window["id"])
            batch = {"actions": [{"action": "quit", "window": window["id"]}], "settle": {"mode": "none"}}
            try:
                yield batch, await backend.act(batch)
            except ActionError as error:  # it closed by itself meanwhile
                result = {"action": "quit", "status": "failed", "error": str(error)}
                answer = {"ok": False, "sent": error.sent, "results": [result], "settle": "none", "moving": []}
                yield batch, Outcome(answer)


def _ours(window: Mapping[str, Any], wanted: Sequence[Launched]) -> bool:
    for one in wanted:
        # Ids of windows are used again: one that is another application's by now is left alone.
        if window["id"] == one.window and window["app_id"] == one.app_id:
            return True
        if one.pid is not None and window["pid"] == one.pid and window["type"] == "normal":
            return True
    return False
