"""One reply of a model, from its calls to its results: what the loop around any vendor does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from deskhand.approvals import Ask
from deskhand.approvals import declined as declined
from deskhand.backends.base import Outcome
from deskhand.errors import ActionError, BatchRefused
from deskhand.vendors.base import Adapter, Finish


class Acts(Protocol):
    """What ``run_turn`` needs of a session."""

    async def act(self, batch: Mapping[str, Any]) -> Outcome: ...

    async def screenshot(self, **wish: Any) -> Outcome: ...

    async def allow(self, ask: Ask) -> bool: ...


async def first_look(adapter: Adapter, session: Acts) -> Outcome:
    """The picture a run begins with, in the size the model takes."""
    outcome = await session.screenshot(**adapter.wish)
    adapter.saw(outcome)
    return outcome


async def run_turn(adapter: Adapter, reply: Any, session: Acts) -> tuple[list[dict[str, Any]], Finish | None]:
    """Do what a model's reply asks for: the vendor's results, and the end of the run when the reply held it.

    What the vendor wants a person to allow is asked by the session, before anything is sent.

    Raises:
        BackendError: The desktop was lost; how much was sent is not for the model to decide on.
        SetupError: The desktop can not be reached, or can not do it.
    """
    try:
        turn = adapter.read(reply)
        for ask in turn.asks:
            if not await session.allow(ask):
                raise BatchRefused(declined(ask), ask.call)
    except BatchRefused as error:
        look = await first_look(adapter, session) if adapter.needs_picture else None
        return adapter.refuse(reply, error, look), None
    outcomes: list[Outcome | ActionError] = []
    for part in turn.parts:
        try:
            outcome = await session.act(part.envelope)
        except ActionError as error:
            outcomes.append(error)
            break
        outcomes.append(outcome)
        adapter.saw(outcome)
        if not outcome.ok:
            break
    failed = bool(outcomes) and not (isinstance(outcomes[-1], Outcome) and outcomes[-1].ok)
    shown = any(isinstance(outcome, Outcome) and outcome.picture for outcome in outcomes[-1:])
    look = await first_look(adapter, session) if adapter.needs_picture and not shown and turn.calls else None
    return adapter.answer(turn, outcomes, look), None if failed else turn.finish
