"""The served desktop as a backend, for sessions that run in the daemon itself: those of MCP clients."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.backends.lease import DesktopLease
from deskhand.computerd.leases import Leases
from deskhand.computerd.problems import Problem
from deskhand.computerd.served import ServedDesktop, Told
from deskhand.errors import BackendError


class InProcess(Backend):
    """One session's way to the desktop; ``info`` gives what ``GET /info`` gives."""

    def __init__(self, served: ServedDesktop, info: Mapping[str, Any], name: str) -> None:
        self._served = served
        self._info = info
        self._name = f"{name} {uuid.uuid4().hex[:8]}"
        #: The token of the lease that was taken last.
        self.lease_token: str | None = None
        self._closed = False

    async def info(self) -> dict[str, Any]:
        return {**self._info, **await self._served.info()}

    async def act(self, batch: Envelope) -> Outcome:
        if self._closed:
            raise RuntimeError("this backend is closed")
        try:
            running = self._served.begin(batch, self._name, self.lease_token)
        except Problem as problem:
            raise _busy(problem) from None
        outcome: Outcome | None = None
        try:
            outcome = await asyncio.shield(asyncio.wrap_future(running.outcome))
            return outcome
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.wrap_future(running.stop()))
            raise
        finally:
            self._served.ended(running, self._name, outcome)

    async def apps(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = (await self._served.apps())["apps"]
        return found

    async def windows(self) -> list[dict[str, Any]]:
        return await self._served.windows()

    def lease(self, holder: str) -> DesktopLease:
        return ServedLease(self, self._served.leases, holder)

    def tell(self, outcome: Mapping[str, Any], used: int, limit: int | None) -> None:
        self._served.tell(Told(self._name, bool(outcome["ok"]), str(outcome["text"]), used=used, limit=limit))

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await self._served.release(self._name)


class ServedLease(DesktopLease):
    """A lease of the daemon's."""

    def __init__(self, backend: InProcess, leases: Leases, holder: str) -> None:
        self._backend = backend
        self._leases = leases
        self._holder = holder
        self._token: str | None = None

    async def take(self, seconds: float, wait: float = 0.0) -> None:
        try:
            if self._token is not None:
                try:
                    await self._leases.renew(self._token, seconds)
                except Problem:
                    self._token = None  # it was over long ago
            if self._token is None:
                self._token = await self._leases.take(self._holder, seconds, wait)
        except Problem as problem:
            raise _busy(problem) from None
        self._backend.lease_token = self._token

    async def release(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            await self._leases.give_back(token)


def _busy(problem: Problem) -> BackendError:
    error = BackendError(problem.detail)
    error.sent = "none"
    return error
