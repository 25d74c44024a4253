"""The loop around a model: ask it, do what it asks for, show it what came of that, until it ends the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deskhand.agents.history import without_pictures
from deskhand.agents.instructions import instructions
from deskhand.agents.loop import Check, Done, Progress, RunResult, judge
from deskhand.agents.model import Call, Model, Reply
from deskhand.agents.own_tools import OwnTools, refused
from deskhand.agents.retries import told_of_retries
from deskhand.agents.usage import Prices, Usage
from deskhand.approvals import Ask, Declined, declined
from deskhand.backends.base import Outcome, in_words
from deskhand.errors import ActionError, BatchRefused, SetupError, Unsupported
from deskhand.session import Session
from deskhand.tools import Launching, ToolAnswer
from deskhand.vendors.base import Adapter, Finish, Turn
from deskhand.vendors.results import CallResult
from deskhand.vendors.running import first_look, run_turn

#: Replies one after the other of which nothing can be used, before the run is given up.
MAX_USELESS = 3
_CUT = "Your reply ran out of tokens, so nothing of it was done. Answer again, with less."
_MALFORMED = "Your call could not be read, so nothing was done. Send it again."
_SAY_SO = "If the goal is reached, or can not be reached, call finish and say which. Otherwise go on."
_END_IT = "If the goal is reached, or can not be reached, use the action that ends the run. Otherwise go on."
_NOT_SENT = "Not executed: another call of this reply was refused, so nothing of it was done."
_SKIPPED = "Not executed: an earlier call of this reply failed."


@dataclass
class ModelRun:
    """One run of a model at a session's desktop.

    Args:
        goal: What it is asked to do.
        model: The model; the caller closes it.
        session: The desktop; the caller closes it. It asks the person, where one is needed: what the vendor wants a
            person to allow before anything of the reply is done, what its own policy names before each batch.
        launching: What is known of opening applications there.
        progress: Gets one line for each thing that happens.
        prices: For what it costs; without them no money is spoken of.
    """

    goal: str
    model: Model
    session: Session
    launching: Launching = "by_name"
    progress: Progress = lambda line: None
    prices: Prices | None = None
    #: Tokens of all requests so far.
    usage: Usage = field(default_factory=Usage)
    #: Requests so far.
    turns: int = 0

    async def run(self, checks: Sequence[Callable[[], Check]] = (), max_turns: int = 100) -> RunResult:
        """Work towards the goal; a turn is one reply of the model.

        Raises:
            ModelUnavailable: The model can not be asked. What was done until then is done; nothing is replayed.
            BackendError: The desktop was lost.
            SetupError: The desktop can not be reached, the trace not be written, or the model has had another run.
        """
        if self.model.history:
            raise SetupError("this model has had its conversation: make another one for another run")
        screen = (await self.session.backend.info())["size"]
        self._adapter = self.model.begin((screen[0], screen[1]))
        tools = OwnTools(self.session, self._adapter, self.launching, not self.model.ends_by_itself)
        self._tools = tools
        text = instructions(self.launching, self._adapter is None, not self.model.ends_by_itself)
        look = await tools.look()
        self.model.open(text, tools.offered if self.model.takes_tools else [], self.goal, look)
        self.model.given = [f"{self.goal} (picture)"]
        done = await self._turns(max_turns)
        result = judge(done, self.turns, checks, self.progress)
        self.progress(self.spent())
        return result

    def spent(self) -> str:
        """Tokens, and money when there are prices, in one line."""
        read = f"{self.usage.read:,} tokens read"
        if self.usage.cache_read:
            read += f" ({self.usage.cache_read:,} of them cached)"
        line = f"{self.model.name}: {self.turns} turns, {read}, {self.usage.output:,} written"
        return line if self.prices is None else f"{line}, cost {self.prices.cost(self.usage):.4f}"

    async def _turns(self, max_turns: int) -> Done:
        useless = 0
        said_nothing = out_of_budget = False
        while self.turns < max_turns:
            reply = await self._ask()
            if reply.stop in ("refused", "full"):
                why = "the model refused" if reply.stop == "refused" else "the conversation is full"
                return Done(f"{why}: {reply.reason or reply.say or 'it gave no reason'}", success=False)
            if reply.stop in ("cut", "malformed"):
                useless += 1
                if useless == MAX_USELESS:
                    return Done(f"nothing of {MAX_USELESS} replies in a row could be used ({reply.reason})", False)
                self.progress(f"  nothing of the reply can be used: {reply.reason}")
                self.model.tell(_CUT if reply.stop == "cut" else _MALFORMED)
                continue
            useless = 0
            if reply.stop == "paused":
                continue
            if not reply.pieces:
                if said_nothing:
                    return Done(f"the model stopped without saying whether the goal is reached: {reply.say}", False)
                said_nothing = True
                self.model.tell(_END_IT if self.model.ends_by_itself else _SAY_SO)
                continue
            said_nothing = False
            done = await self._do(reply)
            if done is not None:
                return done
            if self.session.actions_left == 0:
                if out_of_budget:
                    return Done(f"the run's {self.session.max_actions} actions are used up", success=False)
                out_of_budget = True
        return Done(f"the model was not done after {max_turns} turns", success=False)

    async def _ask(self) -> Reply:
        given, retries = self.model.given, 0

        def again(seconds: float) -> None:
            nonlocal retries
            retries += 1
            self.progress(f"  {self.model.vendor} does not answer now; asked again in {seconds:.1f} s")

        began, started = time.time(), time.monotonic()
        with told_of_retries(self.model.retry_logger, again):
            reply = await self.model.ask()
        elapsed = time.monotonic() - started
        self.turns += 1
        self.usage += reply.usage
        if reply.say:
            self.progress(reply.say)
        if self.session.trace is not None:
            self.session.trace.model_turn(
                self.model.name,
                given=given,
                reply=without_pictures(reply.raw, self.model.is_picture),
                text=reply.say,
                facts={
                    "stop": reply.stop,
                    "reason": reply.reason,
                    "tokens": reply.usage.facts(),
                    "pictures": self.model.pictures_sent,
                    "retries": retries,
                    "cost": None if self.prices is None else self.prices.cost(reply.usage),
                },
                started=began,
                elapsed_s=elapsed,
            )
        return reply

    async def _do(self, reply: Reply) -> Done | None:
        """Check the whole reply, then do its pieces in order until one fails; every call gets a result."""
        try:
            await self._check(reply)
        except _Refused as refusal:
            self.progress(f"  refused: {refusal.error}")
            if self.session.trace is not None and not isinstance(refusal.error, Declined):
                self.session.trace.error(f"Nothing of the reply was done: {refusal.error}")
            self.model.hear(await self._all_refused(reply, refusal))
            return None
        results: list[dict[str, Any]] = []
        failed = False
        finish: Finish | None = None
        for piece in reply.pieces:
            if failed:
                results += await self._not_done(piece, "skipped", _SKIPPED)
            elif isinstance(piece, Call):
                answer = await self._call(piece)
                failed = answer.is_error
                results += self.model.result(piece, answer)
                if self._tools.done is not None:
                    return self._tools.done
            else:
                assert self._adapter is not None
                watched = _Watched(self.session, self.progress)
                told, finish = await run_turn(self._adapter, piece, watched)
                failed = watched.failed
                results += told
        if finish is not None and not failed:
            return Done(finish.say, finish.success)
        self.model.hear(results)
        return None

    async def _check(self, reply: Reply) -> None:
        """Read the whole reply; only then ask what its vendor wants a person to allow.

        Raises:
            _Refused: Something in it can not be done, or may not.
        """
        asks: list[tuple[int, Ask]] = []
        for number, piece in enumerate(reply.pieces):
            try:
                if isinstance(piece, Call):
                    self._tools.check(piece.name, piece.arguments)
                else:
                    assert self._adapter is not None
                    asks += [(number, ask) for ask in self._adapter.read(piece).asks]
            except BatchRefused as error:
                raise _Refused(number, error) from None
        for number, ask in asks:
            self.progress(f"  {ask.source}: {ask.reason}")
            if not await self.session.allow(ask):
                raise _Refused(number, Declined(declined(ask), ask.call))

    async def _all_refused(self, reply: Reply, refusal: _Refused) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        for number, piece in enumerate(reply.pieces):
            if number != refusal.piece:
                results += await self._not_done(piece, "not sent", _NOT_SENT)
            elif isinstance(piece, Call):
                results += self.model.result(piece, refused(refusal.error))
            else:
                assert self._adapter is not None
                results += self._adapter.refuse(piece, refusal.error, await self._look_where_needed(self._adapter))
        return results

    async def _not_done(self, piece: Any, status: str, text: str) -> list[dict[str, Any]]:
        if isinstance(piece, Call):
            return self.model.result(piece, ToolAnswer(text, {}, is_error=True))
        adapter = self._adapter
        assert adapter is not None
        try:
            calls = adapter.calls(piece)
        except BatchRefused:
            calls = []
        told = [CallResult(number, status) for number in range(len(calls))]
        return adapter.results(Turn(calls, [""] * len(calls)), told, await self._look_where_needed(adapter))

    async def _look_where_needed(self, adapter: Adapter) -> Outcome | None:
        return await first_look(adapter, self.session) if adapter.needs_picture else None

    async def _call(self, call: Call) -> ToolAnswer:
        try:
            answer = await self._tools.call(call.name, call.arguments or {})
        except (ActionError, Unsupported) as error:
            answer = refused(error)
        if call.name != "finish":
            self.progress(f"  {call.name}: {_in_a_line(answer)}")
        return answer


class _Refused(Exception):
    """A piece of a reply was refused before anything of it was done."""

    def __init__(self, piece: int, error: BatchRefused) -> None:
        super().__init__(str(error))
        self.piece = piece
        self.error = error


class _Watched:
    """The session, for a run of calls on the computer: tells of each batch, and remembers whether one failed."""

    def __init__(self, session: Session, progress: Progress) -> None:
        self._session = session
        self._progress = progress
        self.failed = False

    async def act(self, batch: Mapping[str, Any]) -> Outcome:
        try:
            outcome = await self._session.act(batch)
        except ActionError as error:
            self.failed = True
            self._progress(f"  refused: {error}")
            raise
        self.failed = not outcome.ok
        self._progress("  " + in_words(outcome))
        return outcome

    async def screenshot(self, **wish: Any) -> Outcome:
        return await self._session.screenshot(**wish)

    async def allow(self, ask: Ask) -> bool:
        return True  # it was asked before anything of the reply was done


def _in_a_line(answer: ToolAnswer) -> str:
    apps = answer.data.get("apps")
    if isinstance(apps, list):
        more = f" and {len(apps) - 8} more" if len(apps) > 8 else ""
        return f"{len(apps)} applications: {', '.join(app['name'] for app in apps[:8])}{more}"
    if answer.data.get("results") and "settle" in answer.data:
        return in_words(Outcome(answer.data))
    lines = answer.text.split("\n")
    return lines[0][:200] + (f" and {len(lines) - 1} more" if len(lines) > 1 else "")
