"""Refusals come slowly when there are many: who is refused asks again later, and the desktop's own clients do not wait.

A few are answered at once, as a person's slip is; a flood, which each time costs a connection, is thinned out. What a
desktop itself says of a batch (409, 422) is no refusal of this kind.
"""

from __future__ import annotations

import asyncio
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Statuses of requests that did not get as far as the desktop.
REFUSED = frozenset({400, 401, 403, 408, 413, 415})
#: How many in a row are answered at once, how many a second in the long run, and the seconds that the others wait.
AT_ONCE, A_SECOND, WAIT = 20.0, 50.0, 0.5


class Refusals:
    """Counts them."""

    def __init__(self) -> None:
        self._left = AT_ONCE
        self._when = time.monotonic()

    def wait(self) -> float:
        """Seconds until the next one is to be answered."""
        now = time.monotonic()
        self._left = min(AT_ONCE, self._left + (now - self._when) * A_SECOND)
        self._when = now
        if self._left < 1.0:
            return WAIT
        self._left -= 1.0
        return 0.0


#: Of this process: a flood is one, whatever connections it comes by.
REFUSALS = Refusals()


class SlowRefusals:
    """ASGI middleware that has refusals wait."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def later(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in REFUSED:
                await asyncio.sleep(REFUSALS.wait())
            await send(message)

        await self._app(scope, receive, later if scope["type"] == "http" else send)
