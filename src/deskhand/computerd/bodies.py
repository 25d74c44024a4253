"""Bodies of requests: read whole before anything is done with them, bounded in bytes and in time."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deskhand.computerd.problems import Problem
from deskhand.hand.resident import MAX_REQUEST

#: Seconds a client may take to send a body.
PATIENCE = 20.0
#: What is read of the body of a request that is refused, in bytes and seconds: a client that still sends when the
#: connection is closed would not see the answer (RFC 9112, section 9.6).
_DISCARDED, _DISCARDING = 1 << 20, 1.0


class Disconnected(Exception):
    """The client went away before its request was whole."""


class WholeBodies:
    """ASGI middleware: what stands behind it gets each body in one piece, and only whole ones."""

    def __init__(self, app: ASGIApp, limit: int = MAX_REQUEST, patience: float = PATIENCE) -> None:
        self._app = app
        self._limit = limit
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except Problem as problem:
            await discard(receive)
            await problem.response()(scope, receive, send)
            return
        except Disconnected:
            return
        given = False

        async def whole() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, whole, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self._limit:
                raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Disconnected
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._limit:
                        raise self._too_large()
                    if not message.get("more_body"):
                        return b"".join(parts)
        except TimeoutError:
            raise Problem(
                "slow",
                f"the request's body did not arrive within {self._patience:g} s, and nothing was done: send it faster",
                {"Connection": "close"},
            ) from None

    def _too_large(self) -> Problem:
        return Problem(
            "too_large",
            f"the body is larger than {self._limit >> 20} MiB: send it in parts",
            {"Connection": "close"},
        )


async def discard(receive: Receive) -> None:
    """Read a little of the body that nobody wants, so that its sender gets to see the answer."""
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DISCARDING):
            while size < _DISCARDED:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
