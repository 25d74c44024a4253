"""What a model may not do by itself: the options that say so, and asking the person at the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from deskhand.approvals import Approve, Ask, Policy

#: Seconds a person has to answer; nobody there means no.
ANSWER_SECONDS = 300.0


def policy_of(rules: list[str] | None) -> Policy:
    """What ``--ask`` names."""
    from deskhand.approvals import Policy

    return Policy.parse(rules or [])


def _some_rules(rules: list[str] | None) -> list[str] | None:
    try:
        policy_of(rules)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return rules


AskOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ask",
        metavar="RULE",
        callback=_some_rules,
        help="What a person has to allow first: launch, forced-quit, secret, input (all that types or clicks, once),"
        " window:NAME. Again for another rule; by default nothing.",
    ),
]
ApproveOption = Annotated[
    bool, typer.Option("--approve", help="Allow everything that needs a person, without asking one.")
]


def approval(approve: bool) -> Approve | None:
    """Who is asked: nobody (all is allowed), the person at the terminal, or nobody (all is declined, None)."""
    if approve:
        return _allow
    return _ask_terminal if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() else None


async def _allow(ask: Ask) -> bool:
    return True


async def _ask_terminal(ask: Ask) -> bool:
    import asyncio

    from deskhand.trace.words import action_in_words

    what = action_in_words(ask.facts) if "action" in ask.facts else ask.verb
    print(f"Allow {what}? {ask.source}: {ask.reason} [y/N] ", end="", flush=True)
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not answered.done():
            answered.set_result(sys.stdin.readline())

    # A thread that reads the terminal could not be ended when the run is.
    loop.add_reader(sys.stdin, read)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return (await answered).strip().lower() in ("y", "yes")
    except TimeoutError:
        print("no answer: declined", flush=True)
        return False
    finally:
        loop.remove_reader(sys.stdin)
