"""The owner of the desktops of one machine: has them made, keeps spares warm, and alone says who has which.

Everything that decides is here, beside the desktops: a lease is given, renewed and ended by the host, and its token is
checked by the host at every call. Who stands before hosts (a manager of many) only chooses which of them to ask.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from deskhand.backends.base import Envelope, Outcome
from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet.commands import Command, run_on
from deskhand.fleet.errors import LeaseLost, NoneFree
from deskhand.fleet.holding import DEATH, Holding
from deskhand.fleet.making import Made, Maker
from deskhand.fleet.options import Options
from deskhand.fleet.pool import PATIENCE, Lease, checked_ttl, lost
from deskhand.fleet.record import Record
from deskhand.fleet.stock import Stock
from deskhand.hand.state import is_alive


@dataclass
class _Waiting:
    holder: str
    ttl: float
    given: asyncio.Future[Holding] = field(repr=False)
    began: float = field(default_factory=time.monotonic)


class Host:
    """Desktops of this machine; for one event loop.

    ``maker`` None: they are made by ``deskhand.desktop``, and end with this process also when it is killed.
    """

    def __init__(self, options: Options, name: str = "local", maker: Maker | None = None) -> None:
        self.options = options
        self.name = name
        self.record = Record()
        self.counts = self.record.counts
        self._held: dict[str, Holding] = {}
        self._stock = Stock(
            options, name, maker, self.record, lambda: len(self._held), self._give, self._announce, self._died
        )
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._numbers = int(time.time() * 1000) << 10  # grows over restarts of the host too
        #: Grows with every change, over restarts too.
        self.version = self._numbers
        self._changed = asyncio.Event()
        self._closed = False

    @property
    def template(self) -> dict[str, Any] | None:
        """What all its desktops must be like, once the first is up."""
        return self._stock.template

    # -- beginning and end ----------------------------------------------------------------------------------------

    async def start(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the desktops and the spares; returns when all are ready, and goes on when not.

        ``progress`` is called with how many are ready, of how many.

        Raises:
            SetupError: None came up; says why.
        """
        await self._stock.begin()
        ready, wanted = self._stock.ready, self.options.size + self.options.spares
        while self._stock.coming and not self._closed:
            if progress is not None:
                progress(len(ready) + len(self._held), wanted)
            await self.change()
        if progress is not None:
            progress(len(ready) + len(self._held), wanted)
        if not ready and not self._held and self._stock.failure is not None:
            await self.aclose()
            raise SetupError(f"no desktop of the fleet came up: {self._stock.failure}")

    async def aclose(self) -> None:
        """End every lease and every desktop."""
        if self._closed:
            return
        self._closed = True
        for waiting in self._waiting:
            if not waiting.given.done():
                waiting.given.set_exception(SetupError("the fleet ends: nothing more is leased"))
        for holding in list(self._held.values()):
            self._end(holding, "the fleet has ended")
        await self._stock.aclose()
        self._announce()

    # -- leases -----------------------------------------------------------------------------------------------------

    async def acquire(self, holder: str, ttl: float, wait: float = 0.0) -> Lease:
        """See ``Pool.acquire``."""
        return self._lease(await self._acquire(holder, checked_ttl(ttl), wait))

    async def renew(self, token: str, ttl: float | None = None) -> None:
        """See ``Pool.renew``."""
        with self._fence():
            holding = self._of(token)
        holding.renew(holding.ttl if ttl is None else checked_ttl(ttl))
        self._set_timer(holding)

    async def release(self, token: str) -> None:
        """See ``Pool.release``; the desktop is ended afterwards."""
        holding = self._held.get(token)
        if holding is not None:
            self._end(holding, "it was given back")

    async def reset(self, token: str, wait: float = PATIENCE) -> Lease:
        """See ``Pool.reset``."""
        with self._fence():
            holding = self._of(token)
        self.counts.resets += 1
        self._end(holding, "it was reset", "reset", fill=False)
        return self._lease(await self._acquire(holding.holder, holding.ttl, wait, first=True))

    async def health(self) -> dict[str, Any]:
        """What the host has and has done; ``ok`` is false when its desktops do not come up."""
        options, stock = self.options, self._stock
        now = time.monotonic()
        return {
            "name": self.name,
            "version": self.version,
            "ok": not self._closed and stock.in_a_row < 3,
            "session": options.session,
            "size": options.size,
            "spares": options.spares,
            "free": max(0, min(len(stock.ready), options.size - len(self._held))),
            "ready": len(stock.ready),
            "leased": len(self._held),
            "coming": stock.coming,
            "waiting": len(self._waiting),
            "failure": str(stock.failure) if stock.failure is not None else None,
            "began": self.record.began,
            **asdict(self.counts),
            "lease_seconds": self.record.lease_seconds.as_dict(),
            "wait_seconds": self.record.wait_seconds.as_dict(),
            "leases_now": [
                {
                    "desktop": one.made.id,
                    "display": one.made.display,
                    "holder": one.holder,
                    "number": one.number,
                    "left_s": round(one.until - now, 1),
                    "batches": one.batches,
                    "dead": one.dead,
                }
                for one in self._held.values()
            ],
            "displays_ready": [made.display for made in stock.ready],
        }

    async def detail(self) -> dict[str, Any]:
        """``health``, and ``desktops`` with the state of each, and ``events``, the last that have happened."""
        desktops = self.record.desktops(list(self._stock.ready), list(self._held.values()))
        return {**await self.health(), "desktops": desktops, "events": self.record.events()}

    async def change(self) -> None:
        """Returns when something has changed: a desktop is ready, was given, or is gone."""
        await self._changed.wait()

    # -- the desktop of a lease ---------------------------------------------------------------------------------------

    async def info(self, token: str) -> dict[str, Any]:
        with self._fence():
            return await self._of(token).info()

    async def act(self, token: str, batch: Envelope) -> Outcome:
        with self._fence():
            return await self._of(token).act(batch)

    async def apps(self, token: str) -> list[dict[str, str]]:
        with self._fence():
            return await self._of(token).apps()

    async def windows(self, token: str) -> list[dict[str, Any]]:
        with self._fence():
            return await self._of(token).windows()

    async def run(
        self, token: str, command: str, stdin: str, env: dict[str, str], cwd: str | None, wait: float
    ) -> dict[str, Any]:
        """Run a command on the desktop; see ``commands.RunsCommands.run``. Input and output are base64."""
        with self._fence():
            holding = self._of(token)
            holding.check()
            ran = await run_on(holding.made, Command(command, base64.b64decode(stdin), env, cwd, wait))
            if holding.over is not None:
                raise lost(holding.over)
        return {
            "code": ran.code,
            "stdout": base64.b64encode(ran.stdout).decode("ascii"),
            "stderr": base64.b64encode(ran.stderr).decode("ascii"),
        }

    async def quiet(self, token: str) -> None:
        """Release what is held down; the lease stands."""
        with contextlib.suppress(DeskhandError):
            await self._of(token).with_hand(lambda hand: hand.release() if hand.connected else None)

    @contextlib.contextmanager
    def _fence(self) -> Iterator[None]:
        """Counts what is refused, or stopped, because its lease is over."""
        try:
            yield
        except LeaseLost as error:
            self.record.fenced(str(error))
            raise

    def _of(self, token: str) -> Holding:
        holding = self._held.get(token)
        if holding is None:
            raise lost("its host does not know it any more: it was not renewed in time, or was given back")
        if holding.over is None and time.monotonic() >= holding.until:
            self._expire(holding)
        if holding.over is not None:
            raise lost(holding.over)
        return holding

    # -- giving and taking --------------------------------------------------------------------------------------------

    async def _acquire(self, holder: str, ttl: float, wait: float, first: bool = False) -> Holding:
        if self._closed:
            raise SetupError("the fleet has ended: nothing is leased any more")
        waiting = _Waiting(holder, ttl, asyncio.get_running_loop().create_future())
        (self._waiting.appendleft if first else self._waiting.append)(waiting)
        self._give()
        try:
            async with asyncio.timeout(None if waiting.given.done() else max(0.0, wait)):
                return await asyncio.shield(waiting.given)
        except TimeoutError:
            if waiting.given.done() and not waiting.given.exception():
                return waiting.given.result()
            self.record.none_free(holder, max(0.0, wait))
            failure = self._stock.failure
            why = f"; the last that was started failed: {failure}" if failure is not None else ""
            raise NoneFree(
                f"none of the {self.options.size} desktops became free within {max(0.0, wait):g} s{why}: wait longer,"
                " or make the fleet larger"
            ) from None
        except asyncio.CancelledError:
            if waiting.given.done() and not waiting.given.cancelled() and not waiting.given.exception():
                self._end(waiting.given.result(), "nobody waited for it any more")
            raise
        finally:
            if not waiting.given.done():
                waiting.given.cancel()
            if waiting in self._waiting:
                self._waiting.remove(waiting)

    def _give(self) -> None:
        """Give what is free to those who wait, in their order."""
        while self._waiting and self._stock.ready and len(self._held) < self.options.size:
            waiting = self._waiting.popleft()
            if waiting.given.done():
                continue
            made = self._stock.ready[0]
            if not all(is_alive(*process) for process in made.vital):
                self._waiting.appendleft(waiting)
                self._died(made)
                continue
            self._stock.ready.popleft()
            self._numbers += 1
            token = f"{self._numbers}.{secrets.token_urlsafe(18)}"
            holding = Holding(made, waiting.holder, self._numbers, token, waiting.ttl)
            self._held[token] = holding
            self.record.given(holding, time.monotonic() - waiting.began)
            self._set_timer(holding)
            waiting.given.set_result(holding)
        self._announce()

    def _lease(self, holding: Holding) -> Lease:
        made = holding.made
        return Lease(self.name, made.id, made.display, holding.number, holding.holder, holding.ttl, holding.token)

    def _set_timer(self, holding: Holding) -> None:
        if holding.timer is not None:
            holding.timer.cancel()
        left = holding.until - time.monotonic()
        holding.timer = asyncio.get_running_loop().call_later(max(0.0, left), self._expire, holding)

    def _expire(self, holding: Holding) -> None:
        if time.monotonic() < holding.until:
            self._set_timer(holding)
        elif self._held.get(holding.token) is holding:
            self.counts.expired += 1
            self._end(holding, "it was not renewed in time", "expired")

    def _end(self, holding: Holding, why: str, what: str = "released", fill: bool = True) -> None:
        """From here on no call with its token reaches a desktop; the rest is done behind."""
        if self._held.pop(holding.token, None) is None:
            return
        if holding.over is None:
            holding.over = why
        self.record.ended(holding, why, what)
        self._stock.take_back(holding.made, holding.end(why))
        if not self._closed:
            self._stock.fill()
            if fill:
                self._give()

    def _died(self, made: Made) -> None:
        """A desktop has lost a process without which it is none: that of a lease, or a free one."""
        holding = next((one for one in self._held.values() if one.made is made), None)
        self.record.died(made, holding)
        if holding is not None:
            # Its client is told by the next call, and resets the lease; a spare stands in for the desktop.
            holding.dead = DEATH
        self._stock.lose(made)
        self._announce()

    def _announce(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
