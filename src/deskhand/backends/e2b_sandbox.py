"""The life of one E2B sandbox: made or found when it is first needed, kept alive while it is used, ended at the end."""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deskhand.backends.e2b_process import SILENCE_S, E2BProcess, in_one_line
from deskhand.backends.places import Place, Process
from deskhand.errors import BackendError, DeskhandError, DisplayLost, SetupError
from deskhand.extras import needs

if TYPE_CHECKING:
    from e2b import AsyncSandbox

#: Seconds within which a sandbox must have been made or found.
_OPENING_S = 120.0
#: Seconds for the SDK's threads to return after their last answer.
_HANDED_OVER_S = 0.1


class E2BSandbox(Place):
    """A sandbox made from ``template``, or the one with the id ``known``.

    Args:
        template: The template's name or id.
        known: The id of a sandbox that runs, or is paused.
        timeout: Seconds after its last use for which it lives.
        keep: Leave it running at the end.
        connection: Passed on to the SDK (``ApiParams``): ``api_key``, ``domain`` and others.
    """

    hand_options = ("--text", "--silence", f"{SILENCE_S:g}")

    def __init__(
        self, template: str, known: str | None, timeout: float, keep: bool, connection: dict[str, Any]
    ) -> None:
        with needs("The E2B backend", "e2b", "e2b"):
            import e2b  # noqa: F401
        self._template = template
        self._known = known
        self._timeout = timeout
        self._keep = keep
        self._connection = connection
        self._opening: asyncio.Task[AsyncSandbox] | None = None
        self._lives_until = 0.0
        self._processes: set[E2BProcess] = set()
        #: Why there is none any more.
        self._gone: str | None = None

    @property
    def id(self) -> str | None:
        """The sandbox's id; None before there is one."""
        opened = self._opened()
        return self._known if opened is None else str(opened.sandbox_id)

    async def start(self, argv: Sequence[str], stream: bool = False) -> Process:
        sandbox = await self._open()
        process = E2BProcess(self._note)
        self._processes = {one for one in self._processes if one.busy} | {process}
        try:
            # The SDK gives it to a shell, which has no more to do than this.
            await process.start(sandbox, f"exec {shlex.join(argv)}", stream)
        except Exception as error:  # of the SDK's many
            raise self._translated(error, "no command can be started in the sandbox") from None
        return process

    async def stay(self, seconds: float) -> None:
        """See to it that it lives for ``seconds`` more, and its timeout after that.

        Raises:
            DisplayLost: There is none any more; nothing was sent.
        """
        sandbox = await self._open()
        now = time.monotonic()
        if self._lives_until - now >= seconds + self._timeout / 2:
            return
        lifetime = math.ceil(seconds + self._timeout)
        try:
            await sandbox.set_timeout(lifetime)
        except Exception as error:  # of the SDK's many
            translated = self._translated(error, "the sandbox's time can not be extended")
            if self._gone is not None or now >= self._lives_until:
                raise translated from None
            return  # it lives, and the next call tries again
        self._lives_until = now + lifetime

    async def end(self) -> None:
        """End it, unless it is to be kept. Again, it does nothing.

        Raises:
            BackendError: That did not work: it lives on until its time is over.
        """
        opening, self._opening = self._opening, None
        gone, self._gone = self._gone, self._gone or "it was ended here"
        if opening is None:
            return
        try:
            sandbox = await opening
        except DeskhandError:
            return
        try:
            if not self._keep and gone is None:
                await sandbox.kill()
        except Exception as error:  # of the SDK's many
            raise BackendError(
                f"the E2B sandbox {sandbox.sandbox_id} could not be ended ({in_one_line(error)}):"
                f" it ends by itself {self._timeout:g} s after its last use"
            ) from None
        finally:
            await asyncio.gather(*(process.settled() for process in self._processes))
            # The SDK (pyqwest) hands each answer over from a thread of its own, which nothing can be asked to wait for:
            # one that has not returned yet when the interpreter ends aborts the process.
            await asyncio.sleep(_HANDED_OVER_S)

    def _opened(self) -> AsyncSandbox | None:
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
            return None
        return opening.result()

    async def _open(self) -> AsyncSandbox:
        if self._gone is not None:
            error = DisplayLost(f"the E2B sandbox {self.id or ''} is gone ({self._gone}): make a new backend")
            error.sent = "none"
            raise error
        if self._opening is None:
            # A task of its own: one that was asked for and not waited for must be ended too.
            self._opening = asyncio.create_task(self._made())
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except DeskhandError:
            if self._opening is opening:
                self._opening = None
            raise

    async def _made(self) -> AsyncSandbox:
        from e2b import AsyncSandbox

        if not (self._connection.get("api_key") or os.environ.get("E2B_API_KEY")):
            raise SetupError("there is no key for E2B: set E2B_API_KEY, or give api_key")
        began = time.monotonic()
        seconds = math.ceil(self._timeout)
        try:
            async with asyncio.timeout(_OPENING_S):
                if self._known is not None:
                    sandbox = await AsyncSandbox.connect(self._known, timeout=seconds, **self._connection)
                else:
                    sandbox = await AsyncSandbox.create(
                        self._template, timeout=seconds, metadata={"made-by": "deskhand"}, **self._connection
                    )
        except Exception as error:  # of the SDK's many
            what = "made" if self._known is None else "reached"
            raise self._translated(error, f"no E2B sandbox can be {what}") from None
        self._lives_until = began + seconds
        return sandbox

    def _note(self, error: Exception) -> None:
        """Remember that there is none any more, when an error says so."""
        from e2b import SandboxNotFoundException
        from e2b.exceptions import SandboxNotRunningException

        if isinstance(error, (SandboxNotFoundException, SandboxNotRunningException)):
            self._gone = in_one_line(error)

    def _translated(self, error: Exception, what: str) -> DeskhandError:
        """One of ours for one of the SDK's; nothing was sent."""
        from e2b import AuthenticationException, RateLimitException

        if isinstance(error, DeskhandError):
            return error
        said = in_one_line(error)
        if isinstance(error, AuthenticationException):
            return SetupError(f"E2B refuses the key: check E2B_API_KEY or api_key ({said})")
        if isinstance(error, RateLimitException):
            return SetupError(f"{what}: E2B allows no more for now; wait, or end other sandboxes ({said})")
        if self._opened() is None:
            return SetupError(f"{what}: {said}")
        self._note(error)
        lost = DisplayLost(f"{what}: {said}")
        lost.sent = "none"
        return lost
