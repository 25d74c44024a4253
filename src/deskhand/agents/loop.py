"""The agent loop: ask what to do next, do it, show what came of it, until the agent is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from deskhand.backends.base import Outcome, in_words
from deskhand.errors import ActionError
from deskhand.session import Session


@dataclass(frozen=True)
class Observation:
    """What the agent is shown before its next turn: one of these, or only ``error``, or nothing at the first turn."""

    goal: str
    outcome: Outcome | None = None
    apps: list[dict[str, str]] | None = None
    error: str | None = None


@dataclass(frozen=True)
class Turn:
    """Run a batch. ``say`` is what the agent said with it."""

    batch: dict[str, Any]
    say: str = ""


@dataclass(frozen=True)
class ListApps:
    """Ask what applications there are."""

    say: str = ""


@dataclass(frozen=True)
class Done:
    """The agent ends the run: it says that the goal is reached, or that it is not."""

    say: str
    success: bool = True


class Agent(Protocol):
    """Decides what to do next. A script and a model look the same from here."""

    #: Shown in the trace: ``scripted:demo.jsonl``, ``anthropic:...``.
    name: str

    async def next(self, seen: Observation) -> Turn | ListApps | Done:
        """The next turn, given what came of the last one."""
        ...


@dataclass(frozen=True)
class Check:
    """One thing looked at after the run, with what was expected and what was found."""

    what: str
    expected: str
    found: str
    ok: bool


@dataclass
class RunResult:
    """How a run ended. ``ok``: the agent said it was done, and every check holds."""

    ok: bool
    text: str
    turns: int
    checks: list[Check] = field(default_factory=list)


Progress = Callable[[str], None]


async def run_goal(
    goal: str,
    agent: Agent,
    session: Session,
    checks: Sequence[Callable[[], Check]] = (),
    max_turns: int = 100,
    progress: Progress = lambda line: None,
) -> RunResult:
    """Have ``agent`` work towards ``goal`` at the session's desktop, then look whether it was reached.

    A batch that fails is shown to the agent, which may try another way; ``progress`` gets one line for each thing that
    happens.

    Raises:
        BackendError: The desktop was lost.
        SetupError: The desktop can not be reached.
    """
    seen = Observation(goal)
    for number in range(1, max_turns + 1):
        turn = await agent.next(seen)
        if turn.say:
            progress(turn.say)
            if session.trace is not None:
                session.trace.say(turn.say)
        if isinstance(turn, Done):
            return judge(turn, number, checks, progress)
        try:
            if isinstance(turn, ListApps):
                apps = await session.apps()
                progress(f"  {len(apps)} applications: {', '.join(app['name'] for app in apps[:8])}" + _more(apps))
                seen = Observation(goal, apps=apps)
            else:
                outcome = await session.act(turn.batch)
                progress("  " + in_words(outcome))
                seen = Observation(goal, outcome=outcome, error=outcome.error)
        except ActionError as error:
            progress(f"  refused: {error}")
            seen = Observation(goal, error=str(error))
    return RunResult(False, f"the agent was not done after {max_turns} turns", max_turns)


def judge(done: Done, turns: int, checks: Sequence[Callable[[], Check]], progress: Progress) -> RunResult:
    """The end of a run: what the agent says is not taken for true where it can be checked."""
    results = [check() for check in checks] if done.success else []
    for result in results:
        sign = "ok" if result.ok else "WRONG"
        progress(f"check {sign}: {result.what}" + ("" if result.ok else f": {result.found}"))
    wrong = [result for result in results if not result.ok]
    text = done.say
    if wrong:
        text = f"{wrong[0].what}: expected {wrong[0].expected}, found {wrong[0].found}"
    return RunResult(done.success and not wrong, text, turns, results)


def _more(apps: list[Any]) -> str:
    return f" and {len(apps) - 8} more" if len(apps) > 8 else ""
