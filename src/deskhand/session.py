"""A session: one agent at one desktop.

It keeps the run's budget, the numbers of the pictures given out, what was launched and the last outcome, and records
everything in a trace when there is one. Every run has a session of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from types import TracebackType
from typing import Any

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.errors import BatchRefused, BudgetSpent, DeskhandError, DisplayLost, SetupError
from deskhand.trace import TraceRecorder


class Session:
    """One agent at the desktop of ``backend``, which the session closes at its end.

    Args:
        backend: Where the desktop is.
        max_actions: How many actions the run may take; None for no limit. Every action that was tried counts, the
            failing one of a stopped batch included; skipped ones do not.
        trace: Records every batch when given.
    """

    def __init__(self, backend: Backend, max_actions: int | None = None, trace: TraceRecorder | None = None) -> None:
        if max_actions is not None and max_actions < 1:
            raise ValueError("max_actions must be 1 or more, or None for no limit")
        self.backend = backend
        self.max_actions = max_actions
        self.trace = trace
        #: Actions tried so far.
        self.actions_used = 0
        #: The number of the newest picture this session was given; None before the first.
        self.sequence: int | None = None
        #: What was launched and had a window: the results of the ``launch`` actions, in order.
        self.launched: list[dict[str, Any]] = []
        #: What the last batch came to, refusals included: ``{"time", "ok", "text"}``.
        self.last_outcome: dict[str, Any] | None = None
        # The budget is looked at before a batch and counted after it, so one batch runs at a time.
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release what is held and let go of the desktop."""
        await self.backend.aclose()

    @property
    def actions_left(self) -> int | None:
        """Actions the run may still take; None when there is no limit."""
        return None if self.max_actions is None else max(0, self.max_actions - self.actions_used)

    async def act(self, batch: Envelope) -> Outcome:
        """Run a batch, see ``Backend.act``; its actions count against the budget.

        Raises:
            BudgetSpent: The batch holds more actions than are left. Nothing was sent.
        """
        return await self._act(batch, counts=True)

    async def _act(self, batch: Envelope, counts: bool) -> Outcome:
        async with self._turn:
            began, started = time.time(), time.monotonic()
            try:
                if counts:
                    self._check_budget(batch)
                outcome = await self.backend.act(self._guarded(batch))
            except DeskhandError as error:
                self._failed(batch, error, began, time.monotonic() - started)
                raise
            except asyncio.CancelledError:
                self._cancelled(batch, began, time.monotonic() - started)
                raise
            self._done(batch, outcome, counts, began, time.monotonic() - started)
            return outcome

    def _done(self, batch: Envelope, outcome: Outcome, counts: bool, began: float, elapsed: float) -> None:
        answer = outcome.answer
        if counts:
            self._count(answer)
        self.launched += [r for r in outcome.results if r["action"] == "launch" and r["status"] == "ok"]
        picture = answer.get("picture", {})
        self.sequence = picture.get("sequence", self.sequence)
        self._tell(outcome.ok, outcome.error or "done")
        if self.trace is None:
            return
        try:
            self.trace.batch(dict(batch), answer, outcome.picture, picture.get("format", "png"), began, elapsed)
        except SetupError as error:
            # It has happened all the same: who reads only the error must not send it again.
            error.sent = answer["sent"]
            error.facts["answer"] = answer
            raise

    async def screenshot(self, **wish: Any) -> Outcome:
        """Look only: a batch of one ``screenshot``. ``wish`` is the envelope's ``picture``; costs no budget."""
        batch = {"actions": [{"action": "screenshot"}], "picture": wish or True}
        return await self._act(batch, counts=False)

    async def apps(self) -> list[dict[str, str]]:
        """The applications that can be launched, see ``Backend.apps``; costs no budget."""
        try:
            found = await self.backend.apps()
        except DeskhandError as error:
            self._tell(False, str(error))
            raise
        if self.trace is not None:
            self.trace.tool("computer_apps", found)
        return found

    async def windows(self) -> list[dict[str, Any]]:
        """The windows, see ``Backend.windows``."""
        return await self.backend.windows()

    def _check_budget(self, batch: Envelope) -> None:
        actions = batch.get("actions")
        left = self.actions_left
        if left is None or not isinstance(actions, list) or len(actions) <= left:
            return
        raise BudgetSpent(
            f"the batch holds {len(actions)} actions and the run has {left} of {self.max_actions} left:"
            " send fewer, or finish"
        )

    def _guarded(self, batch: Envelope) -> Envelope:
        """The batch, with ``expect.sequence`` checked here.

        It counts this session's pictures, also where several sessions share a backend, whose newest picture may be
        another session's.
        """
        expected = batch.get("expect")
        if not isinstance(expected, dict):
            return batch  # none, or one that the backend refuses
        sequence = expected.get("sequence")
        if not isinstance(sequence, int) or isinstance(sequence, bool):
            return batch
        if sequence != self.sequence:
            raise BatchRefused(
                f"the picture {sequence} is not the newest this session was given"
                f" ({self.sequence if self.sequence is not None else 'it was given none'}): look again before acting",
                0,
            )
        rest = {name: value for name, value in expected.items() if name != "sequence"}
        return {**batch, "expect": rest}

    def _count(self, answer: dict[str, Any]) -> None:
        self.actions_used += sum(result["status"] != "skipped" for result in answer["results"])

    def _failed(self, batch: Envelope, error: DeskhandError, began: float, elapsed: float) -> None:
        self._tell(False, str(error))
        answer = error.facts.get("answer") if isinstance(error, DisplayLost) else None
        if answer is not None:
            self._count(answer)
        told = answer or {"ok": False, "sent": error.sent, "results": [], "error": str(error)}
        self._trace_failure(batch, told, began, elapsed)

    def _cancelled(self, batch: Envelope, began: float, elapsed: float) -> None:
        text = "cancelled: the batch was stopped, and what it held was released"
        self._tell(False, text)
        self._trace_failure(batch, {"ok": False, "sent": "unknown", "results": [], "error": text}, began, elapsed)

    def _trace_failure(self, batch: Envelope, told: dict[str, Any], began: float, elapsed: float) -> None:
        # What went wrong first is what the caller must hear of; a trace that can not be written fails again at its end.
        with contextlib.suppress(SetupError):
            if self.trace is not None:
                self.trace.batch(dict(batch), told, None, "png", began, elapsed)

    def _tell(self, ok: bool, text: str) -> None:
        self.last_outcome = {"time": time.time(), "ok": ok, "text": text}
