"""What has come of a session's calls: told to its desktop, and recorded in its trace when there is one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from deskhand.approvals import Answer, Ask
from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.budget import Budget
from deskhand.errors import DeskhandError, DisplayLost, SetupError
from deskhand.trace import TraceRecorder


class Outcomes:
    """Those of one session at ``backend``. ``began`` is seconds since the epoch, ``elapsed`` the seconds until then."""

    def __init__(self, backend: Backend, budget: Budget, trace: TraceRecorder | None) -> None:
        self._backend = backend
        self._budget = budget
        self._trace = trace
        #: What the last call came to, refusals included: ``{"time", "ok", "text"}``.
        self.last: dict[str, Any] | None = None
        #: Whether the session has ended, and with it perhaps its trace.
        self.over = False

    def tell(self, ok: bool, text: str) -> None:
        self.last = {"time": time.time(), "ok": ok, "text": text}
        self._backend.tell(self.last, self._budget.used, self._budget.most)

    def done(self, batch: Envelope, outcome: Outcome, began: float, elapsed: float) -> None:
        """A batch was run.

        Raises:
            SetupError: The trace can not be written.
        """
        self.tell(outcome.ok, outcome.error or "done")
        if self._trace is None:
            return
        kind = outcome.answer.get("picture", {}).get("format", "png")
        try:
            self._trace.batch(dict(batch), outcome.answer, outcome.picture, kind, began, elapsed)
        except SetupError as error:
            # It has happened all the same: who reads only the error must not send it again.
            error.sent = outcome.answer["sent"]
            error.facts["answer"] = outcome.answer
            raise

    def closed(self, batch: Envelope, outcome: Outcome) -> None:
        """What was launched was asked to close: that is recorded, and not told.

        Raises:
            SetupError: The trace can not be written.
        """
        if self._trace is not None:
            self._trace.batch(dict(batch), outcome.answer, None, "png", time.time(), 0.0)

    def failed(self, batch: Envelope, error: DeskhandError, began: float, elapsed: float) -> None:
        """A batch was refused, or is lost."""
        self.tell(False, str(error))
        answer = error.facts.get("answer") if isinstance(error, DisplayLost) else None
        told = answer or {"ok": False, "sent": error.sent, "results": [], "error": str(error)}
        self._record_failure(batch, told, began, elapsed)

    def cancelled(self, batch: Envelope, sent: str, began: float, elapsed: float) -> None:
        text = "cancelled: the batch was stopped, and what it held was released"
        if sent == "none":
            text = "cancelled before anything of the batch was sent"
        self.tell(False, text)
        self._record_failure(batch, {"ok": False, "sent": sent, "results": [], "error": text}, began, elapsed)

    def tool(self, name: str, found: Any) -> None:
        """A call that is no batch was answered.

        Raises:
            SetupError: The trace can not be written.
        """
        self.tell(True, "done")
        if self._trace is not None:
            self._trace.tool(name, found)

    def tool_failed(self, name: str, error: DeskhandError) -> None:
        """It was refused, or failed."""
        self.tell(False, str(error))
        with contextlib.suppress(SetupError):
            if self._trace is not None:
                self._trace.tool(name, {"error": str(error)})

    def answered(self, ask: Ask, answer: Answer, began: float, elapsed: float) -> None:
        """A person was asked, and said so.

        Raises:
            SetupError: The trace can not be written.
        """
        if answer != "allowed":
            self.tell(False, f"{ask.verb} was not allowed ({answer}): {ask.reason}")
        if self._trace is not None:
            facts = {"call": ask.call, "verb": ask.verb, "source": ask.source, "reason": ask.reason}
            with self._trace_may_have_ended():
                self._trace.approval({**facts, "facts": dict(ask.facts), "once": ask.once}, answer, began, elapsed)

    def _record_failure(self, batch: Envelope, told: dict[str, Any], began: float, elapsed: float) -> None:
        # What went wrong first is what the caller must hear of; a trace that can not be written fails again at its end.
        with contextlib.suppress(SetupError), self._trace_may_have_ended():
            if self._trace is not None:
                self._trace.batch(dict(batch), told, None, "png", began, elapsed)

    @contextlib.contextmanager
    def _trace_may_have_ended(self) -> Iterator[None]:
        """A person may answer, and a call end, after the session and its trace did: that is told and not recorded."""
        try:
            yield
        except RuntimeError:
            if not self.over:
                raise
