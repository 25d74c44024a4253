"""The owner of the desktops of one machine: makes them, keeps spares warm, and alone says who has which.

Everything that decides is here, beside the desktops: a lease is given, renewed and ended by the host, and its token is
checked by the host at every call. Who stands before hosts (a manager of many) only chooses which of them to ask.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import os
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from deskhand.backends.base import Envelope, Outcome
from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet import fingerprint
from deskhand.fleet.commands import run_on
from deskhand.fleet.errors import LeaseLost, NoneFree
from deskhand.fleet.holding import DEATH, Holding
from deskhand.fleet.making import DesktopMaker, Made, Maker, end_desktop, orphans, own_mark
from deskhand.fleet.options import Options
from deskhand.fleet.pool import PATIENCE, Lease, checked_ttl, lost
from deskhand.fleet.record import Record
from deskhand.fleet.warden import Warden
from deskhand.hand.state import is_alive

#: Seconds before a desktop that did not come up is tried again: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
#: Desktops that may be ending besides those that are up.
_ENDING = 8


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
        self.template = options.template
        self._mark = own_mark(f"{name}/{uuid.uuid4().hex[:8]}")
        self._own = maker is None
        most = options.size + options.spares + _ENDING
        self._maker = maker or DesktopMaker(
            options.session, options.screen, options.timeout, most, self._mark, options.apart
        )
        # Threads that live as long as the host: what a thread has started may ask to end with it (PDEATHSIG).
        starts = options.starts or os.cpu_count() or 1
        self._starts = ThreadPoolExecutor(starts, thread_name_prefix="deskhand-fleet-start")
        self._ends = ThreadPoolExecutor(starts, thread_name_prefix="deskhand-fleet-end")
        self._warden: Warden | None = None
        self._free: collections.deque[Made] = collections.deque()
        self._held: dict[str, Holding] = {}
        self._coming = 0
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._numbers = int(time.time() * 1000) << 10  # grows over restarts of the host too
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: dict[str, list[int]] = {}
        self._failure: DeskhandError | None = None
        self._in_a_row = 0
        #: Grows with every change, over restarts too.
        self.version = self._numbers
        self._changed = asyncio.Event()
        self._templating = asyncio.Lock()
        self._closed = False
        self._pausing = False
        #: Whether a desktop did not end as it must: what is left of it is the warden's.
        self._left_over = False

    # -- beginning and end ----------------------------------------------------------------------------------------

    async def start(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Make the desktops and the spares; returns when all are ready, and goes on when not.

        ``progress`` is called with how many are ready, of how many.

        Raises:
            SetupError: None came up; says why.
        """
        if self._own:
            await asyncio.to_thread(self.options.check)
            self._warden = await asyncio.to_thread(Warden, self._mark)
            left = await asyncio.to_thread(orphans)
            self.counts.orphans += len(left)
            for facts in left:
                self._do(self._end_orphan(facts))
        self._fill()
        while self._coming and not self._closed:
            if progress is not None:
                progress(len(self._free) + len(self._held), self.options.size + self.options.spares)
            await self.change()
        if progress is not None:
            progress(len(self._free) + len(self._held), self.options.size + self.options.spares)
        if not self._free and not self._held and self._failure is not None:
            await self.aclose()
            raise SetupError(f"no desktop of the fleet came up: {self._failure}")

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
        while self._free:
            self._do(self._retire(self._free.popleft()))
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        for threads in (self._starts, self._ends):
            threads.shutdown(wait=False)
        if self._warden is not None:
            if self._left_over:
                self._warden.take_over()
            else:
                self._warden.dismiss()
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
        options = self.options
        now = time.monotonic()
        return {
            "name": self.name,
            "version": self.version,
            "ok": not self._closed and self._in_a_row < 3,
            "session": options.session,
            "size": options.size,
            "spares": options.spares,
            "free": max(0, min(len(self._free), options.size - len(self._held))),
            "ready": len(self._free),
            "leased": len(self._held),
            "coming": self._coming,
            "waiting": len(self._waiting),
            "failure": str(self._failure) if self._failure is not None else None,
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
            "displays_ready": [made.display for made in self._free],
        }

    async def detail(self) -> dict[str, Any]:
        """``health``, and ``desktops`` with the state of each, and ``events``, the last that have happened."""
        desktops = self.record.desktops(list(self._free), list(self._held.values()))
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
        """Run a command on the desktop; see ``commands.RunsCommands``. Input and output are base64."""
        with self._fence():
            holding = self._of(token)
            holding.check()
            ran = await run_on(holding.made, command, base64.b64decode(stdin), env, cwd, wait)
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
            why = f"; the last that was started failed: {self._failure}" if self._failure is not None else ""
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
        while self._waiting and self._free and len(self._held) < self.options.size:
            waiting = self._waiting.popleft()
            if waiting.given.done():
                continue
            made = self._free.popleft()
            if not all(is_alive(*process) for process in made.vital):
                self._waiting.appendleft(waiting)
                self._free.appendleft(made)
                self._died(made)
                continue
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
        self._do(self._clear(holding, why))
        if not self._closed:
            self._fill()
            if fill:
                self._give()

    async def _clear(self, holding: Holding, why: str) -> None:
        try:
            await holding.end(why)
        finally:
            await self._retire(holding.made)

    # -- making and ending --------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Have as many desktops on their way as are missing; a dead one that is leased is missing too."""
        if self._pausing or self._closed:
            return
        options = self.options
        while len(self._free) + len(self._held) + self._coming < options.size + options.spares:
            self._coming += 1
            self._do(self._make())

    async def _make(self) -> None:
        loop = asyncio.get_running_loop()
        made: Made | None = None
        unlike: list[str] = []
        number = self.record.starting()
        try:
            made = await loop.run_in_executor(self._starts, self._maker.make)
            self.counts.started += 1
            unlike = await self._unlike(made)
            if unlike:
                self.counts.refused += 1
                raise SetupError(f"a new desktop is not like the template, and was refused: {'; '.join(unlike[:3])}")
        except DeskhandError as error:
            self.counts.failed += 1
            self._failure = error
            self._in_a_row += 1
            self.record.failed(error, bool(unlike))
        except Exception as error:  # a fault of ours must not leave the host one desktop short for ever
            self._failure = SetupError(f"a fault in deskhand itself: {type(error).__name__}: {error}. Please report it")
            self._in_a_row += 1
            self.record.failed(self._failure, False)
        else:
            self.record.ready(made, self._in_a_row)
            self._in_a_row = 0
            self._failure = None
            if not self._closed:
                self._watch(made)
                self._free.append(made)
                made = None
        finally:
            self.record.start_ended(number)
            self._coming -= 1
        if made is not None:
            self._do(self._retire(made))
        if self._failure is not None and not self._closed:
            self._pause()
        self._give()

    def _pause(self) -> None:
        """Try again after a while, so that a machine that is full is not kept busy with failing."""
        if self._pausing:
            return
        self._pausing = True
        seconds = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._in_a_row - 1, 8))

        def resume() -> None:
            self._pausing = False
            self._fill()

        asyncio.get_running_loop().call_later(seconds, resume)

    async def _unlike(self, made: Made) -> list[str]:
        async with self._templating:
            if self.template is None:
                self.template = await asyncio.to_thread(fingerprint.take_template, made)
                return []
        return await asyncio.to_thread(fingerprint.differences, made, self.template)

    def _watch(self, made: Made) -> None:
        """Be told when one of its processes ends."""
        loop = asyncio.get_running_loop()
        for pid, start_time in made.vital:
            try:
                descriptor = os.pidfd_open(pid)
            except OSError:
                continue  # found dead when it is to be given
            if not is_alive(pid, start_time):
                os.close(descriptor)
                continue
            self._watched.setdefault(made.id, []).append(descriptor)
            loop.add_reader(descriptor, self._died, made)

    def _unwatch(self, made: Made) -> None:
        for descriptor in self._watched.pop(made.id, []):
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)

    def _died(self, made: Made) -> None:
        """A desktop has lost a process without which it is none: that of a lease, or a free one."""
        self._unwatch(made)
        holding = next((one for one in self._held.values() if one.made is made), None)
        self.record.died(made, holding)
        if holding is not None:
            # Its client is told by the next call, and resets the lease; a spare stands in for the desktop.
            holding.dead = DEATH
        elif made in self._free:
            self._free.remove(made)
            self._do(self._retire(made))
        self._fill()
        self._announce()

    async def _retire(self, made: Made) -> None:
        self._unwatch(made)
        self.record.ending(made)
        try:
            await asyncio.get_running_loop().run_in_executor(self._ends, self._maker.end, made)
        except DeskhandError as error:
            self._failure = error
            self._left_over = True
            self.record.gone(made, error)
        else:
            self.record.gone(made)
        self._announce()

    async def _end_orphan(self, facts: dict[str, Any]) -> None:
        with contextlib.suppress(DeskhandError):
            await asyncio.get_running_loop().run_in_executor(self._ends, end_desktop, facts)

    def _do(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _announce(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
