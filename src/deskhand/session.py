"""A session: one agent at one desktop.

It keeps the run's budget, the numbers of the pictures given out, what was launched and the last outcome, takes its turn
at the desktop, asks a person where one is needed, and records everything in a trace when there is one. Every run has a
session of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from deskhand.approvals import Answer, Approve, Ask, Declined, Policy, answer_of, declined
from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.budget import Budget
from deskhand.errors import ActionError, BackendError, BatchRefused, DeskhandError, SetupError
from deskhand.hand.envelope import parse_batch
from deskhand.launched import Launched, close_all, launches_of
from deskhand.outcomes import Outcomes
from deskhand.trace import TraceRecorder
from deskhand.turns import PARKED, LeaseTerms, longest

CloseLaunched = Literal["never", "idle", "end"]


class Session:
    """One agent at the desktop of ``backend``, which the session closes at its end.

    Args:
        backend: Where the desktop is.
        max_actions: How many actions the run may take; None for no limit. Every action that was tried counts, the
            failing one of a stopped batch included; skipped ones do not. Of a batch whose answer is lost all count.
        trace: Records every batch when given.
        name: What others are told who has the desktop.
        lease: Take turns with the other sessions at this desktop; None neither takes a turn nor waits for one.
        close_launched: Whether what the session launched is closed by itself: "never", after ``idle_s`` seconds without
            an action ("idle"), or when the session ends ("end"). What was launched with ``keep_open`` stays open, and
            so does what ran before. It is asked to close; what asks back (unsaved changes) stays open, see
            ``left_open``.
        policy: What needs a person; None: what the backend says, which is nothing but on a person's own screen.
        approve: Asks a person; without it what needs one is declined.
    """

    def __init__(
        self,
        backend: Backend,
        max_actions: int | None = None,
        trace: TraceRecorder | None = None,
        *,
        name: str | None = None,
        lease: LeaseTerms | None = None,
        close_launched: CloseLaunched = "never",
        idle_s: float = 600.0,
        policy: Policy | None = None,
        approve: Approve | None = None,
    ) -> None:
        self._budget = Budget(max_actions)
        if close_launched not in ("never", "idle", "end"):
            raise ValueError('close_launched must be "never", "idle" or "end"')
        if idle_s <= 0:
            raise ValueError("idle_s must be more than 0 seconds")
        self.backend = backend
        self.trace = trace
        self.name = name or f"deskhand-{os.getpid()}"
        self.close_launched: CloseLaunched = close_launched
        self.idle_s = idle_s
        self.policy = backend.policy if policy is None else policy
        self.approve = approve
        #: The number of the newest picture this session was given; None before the first.
        self.sequence: int | None = None
        #: What was launched and had a window: the results of the ``launch`` actions, in order.
        self.launched: list[dict[str, Any]] = []
        #: The windows that stayed open though they were to be closed: what ``quit`` answered, or why it failed.
        self.left_open: list[dict[str, Any]] = []
        self._outcomes = Outcomes(backend, self._budget, trace)
        self._terms = lease
        self._lease = backend.lease(self.name) if lease is not None else None
        self._to_close: list[Launched] = []
        self._allowed: set[str] = set()
        self._parked = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._running: asyncio.Task[Outcome] | None = None
        self._closed = False
        # The budget is looked at before a batch and counted after it, so one batch runs at a time.
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Session:
        """Take the desktop, when there is a lease.

        Raises:
            DesktopInUse: Another session has it.
        """
        await self._take_turn()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self, quit_launched: bool = False) -> None:
        """Stop a batch that is running, release what is held and let go of the desktop. Again, it does nothing.

        Args:
            quit_launched: Close what the session launched first, whatever its policy: the conversation is over. What
                was launched with ``keep_open`` stays.
        """
        if self._closed:
            return
        self._closed = self._outcomes.over = True
        if self._idle is not None:
            self._idle.cancel()
        try:
            if self._running is not None:
                self._running.cancel()
                await asyncio.wait([self._running])  # nobody else may have the desktop before it has ended
            if quit_launched or self.close_launched == "end":
                await self._close_launched()
            elif self._closing is not None:
                await self._closing
        finally:
            # A call that is still on its way must not take the desktop again after this.
            lease, self._lease = self._lease, None
            try:
                if lease is not None:
                    await lease.release()
            finally:
                await self.backend.aclose()

    @contextlib.asynccontextmanager
    async def parked(self) -> AsyncIterator[None]:
        """Keep the desktop, and everything that was launched open, while a person thinks; an hour at most."""
        self._parked += 1
        try:
            await self._take_turn(PARKED)
            yield
        except BaseException:
            self._parked -= 1
            # What went wrong is what the caller must hear of; but nobody is kept out for an hour any more.
            if not self._closed:
                with contextlib.suppress(DeskhandError):
                    await self._take_turn()
            raise
        self._parked -= 1
        if not self._closed:  # else the desktop is somebody else's by now
            await self._take_turn()

    async def allow(self, ask: Ask) -> bool:
        """Ask the person, with the session parked, and record the answer.

        False when there is nobody to ask, or no answer comes within an hour.

        Raises:
            DesktopInUse: Another session has the desktop, so it is not asked; or took it over within that hour.
        """
        if ask.once and ask.source in self._allowed:
            return True
        began, started = time.time(), time.monotonic()
        answer: Answer = "nobody"
        if self.approve is not None:
            try:
                async with self.parked():
                    answer = await answer_of(self.approve, ask, PARKED)
            except asyncio.CancelledError:
                with contextlib.suppress(SetupError):
                    self.answered(ask, "cancelled", began, time.monotonic() - started)
                raise
        self.answered(ask, answer, began, time.monotonic() - started)
        return answer == "allowed"

    def answered(self, ask: Ask, answer: Answer, began: float | None = None, elapsed: float = 0.0) -> None:
        """Keep and record what a person said to ``ask``, also when somebody else asked.

        A yes that holds for the session is not asked for again. ``began`` is when it was asked, in seconds since the
        epoch (None: now), ``elapsed`` the seconds until the answer.

        Raises:
            SetupError: The trace can not be written.
        """
        if answer == "allowed" and ask.once:
            self._allowed.add(ask.source)
        self._outcomes.answered(ask, answer, time.time() if began is None else began, elapsed)

    async def asks(self, batch: Envelope) -> list[Ask]:
        """What the policy wants a person to allow before ``batch`` is sent, and was not allowed for the session yet.

        Raises:
            BatchRefused: It will be refused, so nobody is asked about it.
        """
        if self.policy.asks_nothing:
            return []
        parse_batch(dict(batch))
        self._budget.check(batch)
        windows: Sequence[dict[str, Any]] = ()
        width, height = 1, 1
        if self.policy.windows:
            windows = await self.backend.windows()
            width, height = (await self.backend.info())["size"]
        found = self.policy.asks(batch, windows, (width, height))
        wanted: list[Ask] = []
        for ask in found:
            if not ask.once or ask.source not in self._allowed | {other.source for other in wanted if other.once}:
                wanted.append(ask)
        return wanted

    @property
    def max_actions(self) -> int | None:
        """How many actions the run may take; None when there is no limit."""
        return self._budget.most

    @property
    def actions_used(self) -> int:
        """Actions tried so far."""
        return self._budget.used

    @property
    def actions_left(self) -> int | None:
        """Actions the run may still take; None when there is no limit."""
        return self._budget.left

    @property
    def last_outcome(self) -> dict[str, Any] | None:
        """What the last call came to, refusals included: ``{"time", "ok", "text"}``; None before the first."""
        return self._outcomes.last

    async def act(self, batch: Envelope, *, approved: bool = False) -> Outcome:
        """Run a batch, see ``Backend.act``; its actions count against the budget.

        Args:
            batch: The envelope.
            approved: A person has allowed what the policy asks for.

        Raises:
            BudgetSpent: The batch holds more actions than are left. Nothing was sent.
            Declined: It needs a person, who said no. Nothing was sent.
            DesktopInUse: Another session has the desktop. Nothing was sent.
        """
        return await self._act(batch, counts=True, approved=approved)

    async def _act(self, batch: Envelope, counts: bool, approved: bool = True) -> Outcome:
        if self._closed:
            raise RuntimeError("this session is closed")
        if not approved:
            await self._ask(batch)
        async with self._turn:
            began, started = time.time(), time.monotonic()
            given_to_backend = False
            try:
                if self._closed:
                    raise BackendError("the session was closed before the batch began, so nothing was sent")
                if counts:
                    self._budget.check(batch)
                guarded = self._guarded(batch)
                await self._take_turn(longest(batch))
                given_to_backend = True
                outcome = await self._run(guarded)
            except DeskhandError as error:
                if not given_to_backend:
                    error.sent = "none"  # whatever became of the lease
                if counts:
                    self._budget.count_failed(batch, error.sent, error.facts.get("answer"))
                self._outcomes.failed(batch, error, began, time.monotonic() - started)
                if isinstance(error, ActionError):
                    await self._renew()
                raise
            except asyncio.CancelledError:
                sent = "unknown" if given_to_backend else "none"
                if counts:
                    self._budget.count_failed(batch, sent, None)
                self._outcomes.cancelled(batch, sent, began, time.monotonic() - started)
                raise
            self._done(batch, outcome, counts, began, time.monotonic() - started)
            await self._renew()
            return outcome

    async def _run(self, batch: Envelope) -> Outcome:
        # A task of its own, so that the end of the session can stop it, whoever waits for it.
        self._running = asyncio.get_running_loop().create_task(self.backend.act(batch))
        try:
            return await self._running
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._closed or (task is not None and task.cancelling()):
                raise
            raise BackendError(
                "the session was closed in the middle of a batch, and what it held was released"
            ) from None
        finally:
            self._running = None

    async def _ask(self, batch: Envelope) -> None:
        began, started = time.time(), time.monotonic()
        try:
            for ask in await self.asks(batch):
                if not await self.allow(ask):
                    raise Declined(declined(ask), ask.call)
        except DeskhandError as error:
            self._outcomes.failed(batch, error, began, time.monotonic() - started)
            raise

    async def _take_turn(self, more: float = 0.0) -> None:
        if self._lease is not None and self._terms is not None:
            longest = PARKED if self._parked else 0.0
            await self._lease.take(max(self._terms.ttl + more, longest), self._terms.wait)

    async def _renew(self) -> None:
        """The lease runs from the end of a batch; one that can not be kept is told at the next."""
        with contextlib.suppress(DeskhandError):
            await self._take_turn()
        if self.close_launched == "idle" and not self._closed:
            if self._idle is not None:
                self._idle.cancel()
            self._idle = asyncio.get_running_loop().call_later(self.idle_s, self._when_idle)

    def _when_idle(self) -> None:
        if self._parked:
            self._idle = asyncio.get_running_loop().call_later(self.idle_s, self._when_idle)
        elif self._closing is None or self._closing.done():
            self._closing = asyncio.get_running_loop().create_task(self._close_launched())

    async def _close_launched(self) -> None:
        """Ask what was launched to close. It is a courtesy to the next one: what goes wrong stands in ``left_open``."""
        async with self._turn:
            wanted, self._to_close = self._to_close, []
            if not wanted:
                return
            try:
                await self._take_turn(longest({"actions": [{"action": "quit"}] * len(wanted)}))
                async for batch, outcome in close_all(self.backend, wanted):
                    self._outcomes.closed(batch, outcome)
                    result = outcome.results[0]
                    if result.get("outcome") != "closed":
                        self.left_open.append(result)
            except DeskhandError as error:
                self.left_open.append({"action": "quit", "status": "failed", "error": str(error)})

    def _done(self, batch: Envelope, outcome: Outcome, counts: bool, began: float, elapsed: float) -> None:
        if counts:
            self._budget.count(outcome.answer)
        self.launched += [r for r in outcome.results if r["action"] == "launch" and r["status"] == "ok"]
        self._to_close += launches_of(batch, outcome)
        self.sequence = outcome.answer.get("picture", {}).get("sequence", self.sequence)
        self._outcomes.done(batch, outcome, began, elapsed)

    async def screenshot(self, *, space: Any = "screen", **wish: Any) -> Outcome:
        """Look only: a batch of one ``screenshot``. ``wish`` is the envelope's ``picture``; costs no budget.

        ``region`` in it, ``[x0, y0, x1, y1]``, is in ``space``: the answer's picture is that part of the screen.
        """
        region = wish.pop("region", None)
        look = {"action": "screenshot"} if region is None else {"action": "zoom", "region": region}
        batch = {"actions": [look], "space": space, "picture": wish or True}
        return await self._act(batch, counts=False)

    async def apps(self) -> list[dict[str, str]]:
        """The applications that can be launched, see ``Backend.apps``; costs no budget."""
        try:
            found = await self.backend.apps()
        except DeskhandError as error:
            self._outcomes.tool_failed("computer_apps", error)
            raise
        self._outcomes.tool("computer_apps", found)
        return found

    def refused(self, tool: str, arguments: Any, error: DeskhandError) -> None:
        """Tell and record that a call was refused before it became a batch of this session."""
        if tool == "computer_act" and isinstance(arguments, Mapping):
            self._outcomes.failed(arguments, error, time.time(), 0.0)
        else:
            self._outcomes.tool_failed(tool, error)

    async def windows(self) -> list[dict[str, Any]]:
        """The windows, see ``Backend.windows``."""
        return await self.backend.windows()

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
