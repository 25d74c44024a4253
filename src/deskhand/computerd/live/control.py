"""A person takes over: what they do at the live view becomes batches on the same path as everybody's.

Meanwhile the agents' batches are refused with a sentence. What the person types is in no record: it may be a password.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from deskhand.backends.base import Outcome
from deskhand.computerd.problems import Problem
from deskhand.computerd.served import ServedDesktop
from deskhand.errors import BatchRefused, DeskhandError

#: What a person can do here.
ALLOWED = frozenset({"click", "move", "mouse_down", "mouse_up", "drag", "scroll", "type", "key"})
#: Actions in one message.
MOST_ACTIONS = 50
#: Seconds without anything done after which the desktop is given back.
SILENCE = 300.0


class Control:
    """Who has taken over the desktop; one person at a time."""

    #: The session that what a person does belongs to.
    session = "a person at the live view"

    def __init__(self, served: ServedDesktop, silence: float = SILENCE) -> None:
        self._served = served
        self._silence = silence
        self._timer: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        #: The number of the viewer who has taken over; None when nobody has.
        self.holder: int | None = None
        #: Called when another one, or nobody, has.
        self.changed: Callable[[], None] = lambda: None

    async def take(self, viewer: int) -> str | None:
        """Let ``viewer`` take over; why not, in a sentence, when another one has."""
        if self.holder is not None and self.holder != viewer:
            return "somebody else has taken over: wait until they give it back"
        if self._ending is not None:
            await asyncio.shield(self._ending)  # a viewer who leaves meanwhile must not take the release with them
        self.holder = viewer
        self._listen()
        self.changed()
        await self._served.take_over(self.session)
        return None

    async def give_back(self, viewer: int) -> None:
        """Release what ``viewer`` holds and let the agents go on; does nothing for who has not taken over."""
        if self.holder == viewer:
            self._ending = self._ending or asyncio.create_task(self._end())
            await asyncio.shield(self._ending)

    async def act(self, viewer: int, actions: Any) -> str | None:
        """Do what ``viewer`` did; why it was not done, in a sentence, else None."""
        if self.holder != viewer or self._ending is not None:
            return "you have not taken over: press Take over first"
        self._listen()
        outcome: Outcome | None = None
        try:
            running = self._served.begin(_batch(actions), self.session, None)
            try:
                # A person who leaves in the middle is followed by a release of what they hold, when this has ended.
                outcome = await asyncio.shield(asyncio.wrap_future(running.outcome))
            finally:
                self._served.ended(running, self.session, outcome)
        except (DeskhandError, Problem) as error:
            return str(error)
        return outcome.error

    def _listen(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._silence, self._fell_silent)

    def _fell_silent(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        try:
            if self._timer is not None:
                self._timer.cancel()
            with contextlib.suppress(DeskhandError):  # the display is gone, and what was held on it
                await self._served.give_back(self.session)
        finally:
            self.holder = None
            self._ending = None
            self.changed()


def _batch(actions: Any) -> dict[str, Any]:
    if not isinstance(actions, list) or not 1 <= len(actions) <= MOST_ACTIONS:
        raise BatchRefused(f"a person's message holds 1 to {MOST_ACTIONS} actions")
    for index, action in enumerate(actions):
        if not isinstance(action, dict) or action.get("action") not in ALLOWED:
            raise BatchRefused(f"here only {', '.join(sorted(ALLOWED))} can be done", index)
        if action["action"] == "type":
            action["secret"] = True
    return {"actions": actions, "settle": {"mode": "none"}, "picture": False}
