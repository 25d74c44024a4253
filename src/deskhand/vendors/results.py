"""What came of each call of a reply, put together from the outcomes of the batches it became."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from deskhand.backends.base import Outcome
from deskhand.errors import ActionError


@dataclass(frozen=True)
class Part:
    """One batch of a reply: its envelope, and for every action the place of the call it came from."""

    envelope: dict[str, Any]
    owners: list[int]


@dataclass
class CallResult:
    """What came of one call.

    ``status``: ``ok``; ``failed`` (``text`` says why); ``skipped``, an earlier call of the reply failed; ``not sent``,
    another call of the reply was refused before anything was sent.
    """

    call: int
    status: str = "ok"
    text: str = ""
    verb: str = ""
    #: The results of its actions, as the hand gave them.
    actions: list[dict[str, Any]] = field(default_factory=list)
    #: The encoded picture, when the call is the last of its batch.
    picture: bytes | None = None

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def call_results(
    verbs: Sequence[str], parts: Sequence[Part], outcomes: Sequence[Outcome | ActionError]
) -> list[CallResult]:
    """One result for every call; ``outcomes`` are those of the first parts, the last one may have failed."""
    results = [CallResult(number, verb=verb) for number, verb in enumerate(verbs)]
    for number, part in enumerate(parts):
        if number >= len(outcomes):
            for owner in part.owners:
                if results[owner].status == "ok":
                    results[owner].status = "skipped"
            continue
        outcome = outcomes[number]
        if isinstance(outcome, Outcome):
            _carried_out(results, part, outcome)
        else:
            _refused(results, part, outcome)
    _skip_after_failure(results)
    return results


def _carried_out(results: list[CallResult], part: Part, outcome: Outcome) -> None:
    for owner, result in zip(part.owners, outcome.results, strict=False):
        call = results[owner]
        call.actions.append(result)
        if result["status"] == "failed":
            call.status, call.text = "failed", str(result.get("error", "it did not work"))
        elif result["status"] == "skipped" and call.status == "ok":
            call.status = "skipped"
    last = results[part.owners[-1]]
    last.picture = outcome.picture
    if outcome.ok:
        if outcome.answer.get("settle") in ("timeout", "animating"):
            last.text = "The screen was still changing when the picture was taken."
    elif all(result["status"] == "ok" for result in outcome.results):
        why = outcome.error or "no picture was taken"
        last.status, last.text = "failed", f"The actions were carried out, but {why}."


def _refused(results: list[CallResult], part: Part, error: ActionError) -> None:
    index = getattr(error, "index", None)
    culprit = part.owners[index] if isinstance(index, int) and index < len(part.owners) else part.owners[0]
    for owner in part.owners:
        if results[owner].status == "ok":
            results[owner].status = "not sent"
    results[culprit].status, results[culprit].text = "failed", without_index(str(error))


def _skip_after_failure(results: list[CallResult]) -> None:
    """A call without actions of its own (one that ends the run) is not done either when an earlier one failed."""
    failed = False
    for result in results:
        if failed and result.status == "ok":
            result.status = "skipped"
        failed = failed or result.status in ("failed", "not sent")


def without_index(text: str) -> str:
    """A refusal without the place in our batch, which the model does not know."""
    return re.sub(r"^action \d+(?: \(\w+\))?:? ", "", text)
