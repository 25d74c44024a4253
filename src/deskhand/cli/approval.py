"""Ask the person at the terminal what a model may not do by itself."""

from __future__ import annotations

import asyncio
import sys

from deskhand.vendors.base import Ask
from deskhand.vendors.running import Approve

#: Seconds a person has to answer; nobody there means no.
ANSWER_SECONDS = 300.0


def approval(approve: bool) -> Approve | None:
    """Who is asked: nobody (all is allowed), the person at the terminal, or nobody (all is declined, None)."""
    if approve:
        return _allow
    return _ask_terminal if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() else None


async def _allow(ask: Ask) -> bool:
    return True


async def _ask_terminal(ask: Ask) -> bool:
    print(f"Allow {ask.verb}? {ask.reason} [y/N] ", end="", flush=True)
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
