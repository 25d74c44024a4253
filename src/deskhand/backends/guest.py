"""Any place that can run a command: the hand is sent there once, as one file, and run by the ``python3`` it finds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from deskhand.backends.answers import outcome_of, raise_error
from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.backends.guest_lease import GuestLease
from deskhand.backends.installing import RECEIVE, the_hand
from deskhand.backends.lease import DesktopLease
from deskhand.backends.places import Place
from deskhand.backends.running import Finished, RunningHand, no_answer, parse, run_to_its_end
from deskhand.errors import BackendError, DisplayLost, SetupError, Unsupported
from deskhand.turns import longest

__all__ = ["PATIENCE", "Finished", "Guest", "Run"]

#: Seconds the guest may take to take the hand in, and beyond what a batch itself may last.
PATIENCE = 60.0
#: Runs a command in the guest with that standard input: ``await run(argv, stdin)``. When it is cancelled it should end
#: the command, or close the command's standard output.
Run = Callable[[Sequence[str], bytes], Awaitable[Finished]]
_Answered = tuple[dict[str, Any], bytes | None]


class Guest(Backend):
    """The display ``display`` of a guest, reached by ``way``: a ``Transport`` or another ``Place``, or a function that
    runs a command there.

    Every batch is one command there, and the picture comes back with its answer. Nothing is ever sent twice: when an
    answer does not arrive, the error says that it is unknown what happened.

    A cancelled call returns when the hand over there has released what it held. Behind a function it is one more
    command that sees to that, after the function has ended the one that was cancelled.

    A lease is held by one more command there, for as long as that runs; a function can not keep one running.

    Args:
        way: How to run a command in the guest.
        display: The display's name over there.
        xauthority: The cookie file over there; None: what the hand finds by itself.
        python: The Python 3.9 or newer to run the hand with.
        resident: Keep one hand running over there for all batches, with its connection to the display; not behind a
            function.
    """

    def __init__(
        self,
        way: Place | Run,
        display: str = ":0",
        xauthority: str | None = None,
        python: str = "python3",
        *,
        resident: bool = False,
    ) -> None:
        if resident and not isinstance(way, Place):
            raise ValueError("a function runs one command after the other: a resident hand needs a Transport")
        self._way = way
        self._display = display
        self._xauthority = xauthority
        self._python = python
        self._resident = resident
        self._session = f"guest-{uuid.uuid4().hex[:12]}"
        self._path: str | None = None
        self._hand: RunningHand | None = None
        self._acted = False
        self._parting: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    async def info(self) -> dict[str, Any]:
        return (await self._ask({"request": "info"}))[0]

    async def act(self, batch: Envelope) -> Outcome:
        return outcome_of(*await self._ask(dict(batch)))

    async def apps(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = (await self._ask({"request": "apps"}))[0]["apps"]
        return found

    async def windows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._ask({"request": "windows"}))[0]["windows"]
        return found

    def lease(self, holder: str) -> DesktopLease:
        way = self._way
        if not isinstance(way, Place):
            raise Unsupported(
                "a lease is held by a command that stays, and a function runs one after the other: use a Transport, or"
                " open the session without a lease"
            )

        async def start() -> RunningHand:
            if self._path is None:
                async with self._turn:
                    await self._install()
            return await RunningHand.start(way, [*self._command(), "--stream"])

        return GuestLease(start, self._forget, holder, PATIENCE)

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        async with self._turn:
            await self._parted()
            try:
                if self._acted:
                    await self._release()
            finally:
                await self._end_hand()

    async def _ask(self, request: dict[str, Any]) -> _Answered:
        """One request, one command in the guest.

        Raises:
            DeskhandError: What the hand there raised; or that it could not be run, or gave no answer.
        """
        if self._closed:
            raise RuntimeError("this backend is closed")
        async with self._turn:
            await self._parted()
            await self._install()
            acting = "request" not in request
            self._acted = self._acted or acting
            patience = PATIENCE + longest(request)
            try:
                async with asyncio.timeout(patience):
                    answer, picture = await self._request(request)
            except TimeoutError:
                await self._part(acting)
                raise no_answer(f"none came within {patience:.0f} s") from None
            except asyncio.CancelledError:
                # It goes on when this wait, too, is cancelled; the next call waits for it.
                self._parting = asyncio.create_task(self._part(acting))
                await asyncio.shield(self._parting)
                raise
            except DisplayLost:
                self._forget()
                raise
        # With what the hand itself says, the command has run to its end.
        raise_error(answer)
        return answer, picture

    async def _request(self, request: dict[str, Any]) -> _Answered:
        argv = [*self._command(), "--session", self._session]
        if not isinstance(self._way, Place):
            try:
                return parse(await self._way([*argv, "--raw"], json.dumps(request).encode()))
            except OSError as error:
                raise DisplayLost(f"the command in the guest broke off ({error}): nobody knows what happened") from None
        if self._hand is not None and self._hand.ended:
            await self._end_hand()
        if self._hand is None:
            try:
                self._hand = await RunningHand.start(self._way, [*argv, "--stream"])
            except OSError as error:
                raise SetupError(f"no command can be run in the guest: {error}") from None
        answered = await self._hand.ask(request)
        if not self._resident:
            await self._end_hand()
        return answered

    def _command(self) -> list[str]:
        assert self._path is not None
        place = [] if self._xauthority is None else ["--xauthority", self._xauthority]
        return [self._python, self._path, "--display", self._display, *place]

    def _forget(self) -> None:
        """The guest may have been started anew, without what was put into it."""
        self._path = None

    async def _install(self) -> None:
        """Send the hand there when it is not there yet.

        Raises:
            SetupError: It can not be put there; says why.
        """
        if self._path is not None:
            return
        content, digest = the_hand()
        argv = [self._python, "-c", RECEIVE, digest]
        try:
            async with asyncio.timeout(PATIENCE):
                if isinstance(self._way, Place):
                    finished = await run_to_its_end(self._way, argv, content)
                else:
                    finished = await self._way(argv, content)
        except TimeoutError:
            raise SetupError(f"the guest did not take the hand in within {PATIENCE:.0f} s: see what it does") from None
        except OSError as error:
            raise SetupError(f"no command can be run in the guest: {error}") from None
        path = finished.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]  # a shell there may greet first
        if finished.code != 0 or not path:
            raise SetupError(f"the hand can not be put into the guest: {finished.last_words()}")
        self._path = path

    async def _part(self, acting: bool) -> None:
        """Let go of a hand whose answer nobody waits for, and see to it that nothing stays pressed."""
        await self._end_hand()
        if acting:
            await self._release()

    async def _parted(self) -> None:
        if self._parting is not None:
            await asyncio.shield(self._parting)
            self._parting = None

    async def _release(self) -> None:
        """Release what the session holds over there."""
        with contextlib.suppress(SetupError, BackendError, TimeoutError):  # the guest is gone, and what was held there
            async with asyncio.timeout(PATIENCE):
                await self._install()
                await self._request({"request": "release"})
            return
        await self._end_hand()

    async def _end_hand(self) -> None:
        hand, self._hand = self._hand, None
        if hand is not None:
            await hand.end()
