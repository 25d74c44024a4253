"""From a hand's answer that came over a wire back to an ``Outcome``, or to the error it tells of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskhand.backends.base import Outcome
from deskhand.errors import (
    ActionFailed,
    BackendError,
    BatchRefused,
    CaptureFailed,
    DeskhandError,
    DesktopInUse,
    DisplayLost,
    DisplayTimeout,
    NoDisplay,
    SetupError,
    Unsupported,
)

#: The classes of errors by the ``kind`` that answers tell.
KINDS: dict[str, type[DeskhandError]] = {
    "timeout": DisplayTimeout,
    "lost": DisplayLost,
    "no_display": NoDisplay,
    "unsupported": Unsupported,
    "in_use": DesktopInUse,
    "failed": ActionFailed,
    "capture": CaptureFailed,
    "setup": SetupError,
    "backend": BackendError,
}
#: What every answer has, be it of an error or not.
_ENVELOPE = {"ok", "error", "kind", "sent", "index", "status", "results", "settled", "settle", "settle_ms", "moving"}

#: What an error's own parameters are called, so that no fact of an answer can be.
_PARAMETERS = {"self", "message"}


def outcome_of(answer: dict[str, Any], picture: bytes | None = None) -> Outcome:
    """The outcome of a batch.

    Raises:
        DeskhandError: What the hand raised beside the display, of the same kind and with the same ``sent``.
        BackendError: It is no answer of a hand.
    """
    raise_error(answer)
    if not _is_an_outcome(answer):
        raise BackendError(
            "the answer is none that a hand gives: see what else answers there; it is unknown what happened"
        )
    body = {name: value for name, value in answer.items() if name != "status"}
    if "picture" in body:  # how many bytes came over the wire is no fact of the picture
        body["picture"] = {name: value for name, value in body["picture"].items() if name != "bytes"}
    return Outcome(body, picture)


def _is_an_outcome(answer: dict[str, Any]) -> bool:
    results = answer.get("results")
    return (
        isinstance(answer.get("ok"), bool)
        and isinstance(answer.get("sent"), str)
        and isinstance(answer.get("picture", {}), dict)
        and isinstance(results, list)
        and all(isinstance(result, dict) and {"action", "status"} <= result.keys() for result in results)
    )


def raise_error(answer: dict[str, Any]) -> None:
    """Raise the error an answer tells of; nothing when it tells of none. A failed action is no error of the call."""
    kind = answer.get("kind")
    if kind is None:
        return
    message = str(answer.get("error", "no reason was given"))
    facts = {name: value for name, value in answer.items() if name not in _ENVELOPE and name not in _PARAMETERS}
    error: DeskhandError
    if kind == "refused":
        error = BatchRefused(message, answer.get("index"), **facts)
    else:
        error = KINDS.get(str(kind), BackendError)(message, **facts)
    if isinstance(error, DisplayLost) and answer.get("results"):
        error.facts = {"answer": {name: value for name, value in answer.items() if name not in ("kind", "status")}}
    error.sent = str(answer.get("sent", "unknown"))
    raise error


def answer_in_problem(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The hand's answer in a problem of computerd's (RFC 9457): what ``raise_error`` makes the same error of."""
    answer = {name: value for name, value in problem.items() if name not in ("type", "title", "status", "detail")}
    answer["error"] = str(problem["detail"])
    if answer["kind"] == "not_now":  # a batch that is as it must be, and not for this desktop as it is now
        answer["kind"] = "refused"
    return answer
