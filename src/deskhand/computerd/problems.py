"""Errors as HTTP tells them: ``application/problem+json`` (RFC 9457, Problem Details for HTTP APIs), and back.

A problem has ``type``, ``title``, ``status`` and ``detail`` (what happened, and what to do), and beside them what every
answer of the hand has: ``ok`` false, ``sent``, ``kind``, ``results``; and the error's own facts (``near``, ``index``,
``holder``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from deskhand.backends.answers import KINDS
from deskhand.errors import (
    BatchRefused,
    CaptureFailed,
    DeskhandError,
    DesktopInUse,
    DisplayLost,
    NoDisplay,
    Unsupported,
)
from deskhand.hand.answering import error_reply

MEDIA_TYPE = "application/problem+json"
#: Where a scope tells which kind of problem its request came to.
KIND = "deskhand.problem"


class Meaning(NamedTuple):
    """The status and the title of a kind of problem."""

    status: int
    title: str


#: By ``kind``. The first are those of errors of ours, which have the same kind wherever they are told of.
MEANINGS: dict[str, Meaning] = {
    "refused": Meaning(422, "The request is not as it must be"),
    "not_now": Meaning(409, "The batch is not one for this desktop as it is now"),
    "in_use": Meaning(409, "Another session has the desktop"),
    "unsupported": Meaning(501, "This desktop can not do it"),
    "no_display": Meaning(503, "The display can not be reached"),
    "lost": Meaning(503, "The display was lost in the middle"),
    "timeout": Meaning(503, "The display does not answer"),
    "capture": Meaning(503, "No picture could be taken"),
    "failed": Meaning(503, "It was tried and did not work"),
    "setup": Meaning(503, "Something around the desktop is not as it must be"),
    "backend": Meaning(503, "The desktop did not answer as it must"),
    "fault": Meaning(500, "A fault in computerd"),
    "unauthorized": Meaning(401, "The token is missing or wrong"),
    "foreign": Meaning(403, "The request comes from elsewhere"),
    "not_found": Meaning(404, "There is nothing at this path"),
    "no_lease": Meaning(404, "There is no such lease"),
    "method": Meaning(405, "This path has no such method"),
    "slow": Meaning(408, "The request came too slowly"),
    "key_reused": Meaning(422, "The Idempotency-Key was used for another request"),
    "answered": Meaning(409, "The request was carried out before"),
    "stopped": Meaning(409, "The request's client had gone away"),
    "too_large": Meaning(413, "The request is too large"),
    "not_json": Meaning(415, "The body is not JSON"),
    "busy": Meaning(503, "Too many requests wait already"),
    "malformed": Meaning(400, "The request is malformed"),
}


class ProblemResponse(Response):
    """A response that tells the log and the counters which kind of problem it is, in the scope of its request."""

    kind = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[KIND] = self.kind
        await super().__call__(scope, receive, send)


class Problem(Exception):
    """A request that is answered with a problem which is no error of the desktop."""

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None = None, sent: str = "none") -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.sent = sent

    def response(self) -> Response:
        return respond({"ok": False, "sent": self.sent, "kind": self.kind, "error": self.detail}, self.headers)


def kind_of(error: Exception) -> str:
    """The kind of an error of ours, the one that ``backends.answers`` makes the same error of."""
    for kind, error_class in KINDS.items():
        if type(error) is error_class:
            return kind
    for error_class, kind in (
        (BatchRefused, "refused"),
        (DisplayLost, "lost"),
        (NoDisplay, "no_display"),
        (Unsupported, "unsupported"),
        (DesktopInUse, "in_use"),
        (CaptureFailed, "capture"),
    ):
        if isinstance(error, error_class):
            return kind
    return str(error_reply(error).answer["kind"])


def problem_of(error: Exception, request: Any = None, kind: str | None = None) -> Response:
    """The problem that tells of ``error``, which a request with the body ``request`` came to.

    ``kind`` where it is known better.
    """
    body = dict(error_reply(error, request).answer)
    body["kind"] = kind or kind_of(error)
    if isinstance(error, DeskhandError):
        body["sent"] = error.sent  # also of what only looks: the hand's error, and not what the route makes of it
    headers = {"Retry-After": "1"} if body["kind"] in ("no_display", "timeout", "lost") else {}
    return respond(body, headers)


def respond(answer: dict[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """An answer with ``kind`` and ``error`` as a problem."""
    answer = dict(answer)
    kind = answer["kind"]
    meaning = MEANINGS.get(kind, MEANINGS["fault"])
    body = {
        "type": f"urn:deskhand:problem:{kind.replace('_', '-')}",
        "title": meaning.title,
        "status": meaning.status,
        "detail": answer.pop("error"),
        **answer,
    }
    response = ProblemResponse(
        json.dumps(body, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace"),
        meaning.status,
        headers=dict(headers or {}),
        media_type=MEDIA_TYPE,
    )
    response.kind = kind
    return response
