"""A pool of desktops that computerd serves, on whatever machines: a list of addresses.

Each computerd is the host of its one desktop: its own lease (``/lease``) says who has it, so clients of several
processes and machines can have the same list. It does not make its desktop fresh; ``fresh`` does, where there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.backends.daemon import PATIENCE as REQUEST_PATIENCE
from deskhand.backends.daemon import Daemon, NoLease
from deskhand.errors import DeskhandError, DesktopInUse, SetupError, Unsupported
from deskhand.fleet.commands import Command, Ran, RunsCommands, run_by
from deskhand.fleet.errors import LeaseLost, NoneFree
from deskhand.fleet.pool import PATIENCE, Lease, Pool, checked_ttl, lost, who

#: Seconds for which one that can not be reached is asked last.
_AVOIDED = 10.0
#: Seconds that one request may queue at a computerd; then it is asked again.
_QUEUE = 30.0


@dataclass(frozen=True)
class Address:
    """Where a computerd listens, and the file that holds its token.

    ``shell`` leads to that desktop, such as ``("docker", "exec", "-i", "desk-1")``: what runs a command there.
    """

    url: str
    token_file: str | os.PathLike[str] | None = None
    token: str | None = field(default=None, repr=False)
    shell: tuple[str, ...] = ()

    def daemon(self) -> Daemon:
        return Daemon(self.url, token=self.token, token_file=self.token_file)


#: Makes the desktop at an address as nobody has used it, while its lease is held; computerd must go on running.
Fresh = Callable[[Address], Awaitable[None]]


@dataclass
class _Held:
    address: Address
    daemon: Daemon
    token: str
    until: float


class AddressPool(Pool):
    """The desktops at ``addresses``.

    Args:
        addresses: Of each desktop one.
        fresh: Called before a desktop is given out, and by ``reset``. Without it a desktop is given as the one before
            left it, and ``reset`` is ``Unsupported``.
        screen: Width and height that each must have; one that differs is not given out. None: any.
    """

    def __init__(
        self, addresses: Sequence[Address], fresh: Fresh | None = None, screen: tuple[int, int] | None = None
    ) -> None:
        if not addresses or len({address.url for address in addresses}) != len(addresses):
            raise ValueError("a pool has one address or more, and each once")
        self._addresses = list(addresses)
        self._fresh = fresh
        self._screen = screen
        self._numbers = itertools.count(1)
        self._held: dict[int, _Held] = {}
        self._avoided: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._queue = asyncio.Lock()
        self._closed = False

    async def acquire(self, ttl: float = 60.0, wait: float = PATIENCE, holder: str | None = None) -> Lease:
        if self._closed:
            raise RuntimeError("this pool is closed")
        ttl, name = checked_ttl(ttl), holder or who()
        deadline = time.monotonic() + max(0.0, wait)
        try:
            # Those who wait here do so in their order, and one at a time at each computerd.
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(0.0, wait) + REQUEST_PATIENCE):
                async with self._queue:
                    held = await self._take_one(name, ttl, deadline)
        except TimeoutError:
            raise NoneFree(self._why(wait)) from None
        if held is None:
            raise NoneFree(self._why(wait))
        return self._lease(held, name, ttl)

    async def renew(self, lease: Lease, ttl: float | None = None) -> None:
        held = self._of(lease)
        seconds = lease.ttl if ttl is None else checked_ttl(ttl)
        began = time.monotonic()
        try:
            await held.daemon.request("PATCH", "/lease", {"ttl": seconds}, {"Deskhand-Lease": held.token})
        except DesktopInUse as error:
            raise self._lost(lease, str(error)) from None
        held.until = held.daemon.lease_until = began + seconds

    async def release(self, lease: Lease) -> None:
        held = self._held.pop(lease.number, None)
        if held is not None:
            await self._give_back(held)

    async def reset(self, lease: Lease, wait: float = PATIENCE) -> Lease:
        held = self._of(lease)
        if self._fresh is None:
            raise Unsupported(
                "computerd does not make its desktop fresh: give the pool a function that does (fresh=...), or use a"
                " pool that owns its desktops"
            )
        try:
            async with asyncio.timeout(wait):
                await self._fresh(held.address)
        except TimeoutError:
            await self.release(lease)
            raise SetupError(f"the desktop at {held.address.url} was not made fresh within {wait:g} s") from None
        except BaseException:
            await self.release(lease)
            raise
        self._of(lease)
        del self._held[lease.number]
        return self._lease(held, lease.holder, lease.ttl)

    async def health(self) -> dict[str, Any]:
        hosts = await asyncio.gather(*(self._health_of(address) for address in self._addresses))
        free = sum(host["free"] for host in hosts)
        leased = sum(host["leased"] for host in hosts)
        ok = all(host["ok"] for host in hosts)
        return {"ok": ok, "size": len(hosts), "free": free, "leased": leased, "waiting": 0, "hosts": hosts}

    def backend(self, lease: Lease) -> Backend:
        return _LeasedDaemon(self, lease)

    async def aclose(self) -> None:
        self._closed = True
        held = list(self._held.values())
        self._held.clear()
        await asyncio.gather(*(self._give_back(one) for one in held))

    # -- what the desktop of a lease is asked -------------------------------------------------------------------------

    def daemon_of(self, lease: Lease) -> Daemon:
        """Raises LeaseLost: it is over."""
        return self._of(lease).daemon

    def shell_of(self, lease: Lease) -> tuple[str, ...]:
        """Raises LeaseLost: it is over."""
        return self._of(lease).address.shell

    def lost_lease(self, lease: Lease, error: DesktopInUse) -> LeaseLost:
        """What a refusal by computerd means for the lease."""
        return self._lost(lease, str(error))

    def _of(self, lease: Lease) -> _Held:
        held = self._held.get(lease.number)
        if held is None:
            raise lost("it was given back")
        # computerd would renew one whose time is over when nobody has the desktop; but somebody may have had it.
        if time.monotonic() >= held.until:
            raise self._lost(lease, "it was not renewed in time")
        return held

    def _lost(self, lease: Lease, why: str) -> LeaseLost:
        held = self._held.pop(lease.number, None)
        if held is not None:
            held.daemon.lease_token = None
        return lost(why)

    # -- taking -------------------------------------------------------------------------------------------------------

    async def _take_one(self, holder: str, ttl: float, deadline: float) -> _Held | None:
        """One that is free, else the first that becomes so."""
        mine = {held.address.url for held in self._held.values()}
        now = time.monotonic()
        order = sorted(self._addresses, key=lambda one: (self._avoided.get(one.url, 0.0) > now, one.url in mine))
        for address in order:
            held = await self._take(address, holder, ttl, 0.0)
            if held is not None:
                self._addresses.remove(address)
                self._addresses.append(address)  # asked last the next time
                return held
        while (left := deadline - time.monotonic()) > 0:
            held = await self._take_first(holder, ttl, min(left, _QUEUE))
            if held is not None:
                return held
        return None

    async def _take_first(self, holder: str, ttl: float, wait: float) -> _Held | None:
        began = time.monotonic()
        asked = [asyncio.create_task(self._take(one, holder, ttl, wait)) for one in self._addresses]
        won: _Held | None = None
        try:
            for done in asyncio.as_completed(asked):
                won = await done
                if won is not None:
                    return won
        finally:
            await self._give_back_all_but(won, asked)
        # When all refuse at once (none can be reached) this is asked again after a moment, not at once.
        await asyncio.sleep(max(0.0, min(1.0, wait) - (time.monotonic() - began)))
        return None

    async def _give_back_all_but(self, won: _Held | None, asked: list[asyncio.Task[_Held | None]]) -> None:
        for task in asked:
            task.cancel()
        for end in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(end, _Held) and end is not won:
                await self._give_back(end)

    async def _take(self, address: Address, holder: str, ttl: float, wait: float) -> _Held | None:
        """The lease of one computerd; None when another has it, or it is not there."""
        daemon = address.daemon()
        began = time.monotonic()
        held: _Held | None = None
        try:
            wish = {"holder": holder[:100], "ttl": ttl, "wait": wait}
            response = await daemon.request("POST", "/lease", wish, timeout=REQUEST_PATIENCE + wait)
            held = _Held(address, daemon, str(json.loads(response.content)["lease"]), began + wait + ttl)
            if wait:  # how long of it was spent in the queue is not known: count from now, as it does
                renewed = time.monotonic()
                await daemon.request("PATCH", "/lease", {"ttl": ttl}, {"Deskhand-Lease": held.token})
                held.until = renewed + ttl
            await self._prepare(held)
            daemon.lease_token, daemon.lease_until = held.token, held.until
            self._avoided.pop(address.url, None)
            return held
        except DesktopInUse:
            await daemon.aclose()
            return None
        except DeskhandError as error:
            self._avoided[address.url] = time.monotonic() + _AVOIDED
            self._refused[address.url] = str(error)
            await (self._give_back(held) if held is not None else daemon.aclose())
            return None
        except BaseException:
            await (self._give_back(held) if held is not None else daemon.aclose())
            raise

    async def _prepare(self, held: _Held) -> None:
        if self._fresh is not None:
            await self._fresh(held.address)
        if self._screen is not None:
            size = (await held.daemon.info())["size"]
            if tuple(size) != self._screen:
                raise SetupError(
                    f"the desktop at {held.address.url} is not like the others, and was refused: size {size},"
                    f" not {list(self._screen)}"
                )

    async def _give_back(self, held: _Held) -> None:
        held.daemon.lease_token = None
        with contextlib.suppress(DeskhandError):  # its time ends it
            await held.daemon.request("DELETE", "/lease", headers={"Deskhand-Lease": held.token})
        await held.daemon.aclose()

    def _lease(self, held: _Held, holder: str, ttl: float) -> Lease:
        number = next(self._numbers)
        self._held[number] = held
        url = held.address.url
        return Lease(url, url, "", number, holder, ttl, held.token)

    async def _health_of(self, address: Address) -> dict[str, Any]:
        host: dict[str, Any] = {"name": address.url, "ok": False, "size": 1, "free": 0, "leased": 0, "waiting": 0}
        daemon = address.daemon()
        try:
            told = json.loads((await daemon.request("GET", "/health", timeout=10.0)).content)
            metrics = (await daemon.request("GET", "/metrics", timeout=10.0)).text
            leased = "deskhand_lease_held 1" in metrics
            return {**host, "ok": bool(told.get("ok", True)), "free": int(not leased), "leased": int(leased)}
        except (DeskhandError, ValueError) as error:
            return {**host, "failure": str(error)}
        finally:
            await daemon.aclose()

    def _why(self, wait: float) -> str:
        now = time.monotonic()
        away = [self._refused[url] for url, until in self._avoided.items() if until > now]
        of = f"none of the {len(self._addresses)} desktops became free within {max(0.0, wait):g} s"
        return of + (f"; {len(away)} can not be had: {away[0]}" if away else ": wait longer, or add some")


class _LeasedDaemon(Backend, RunsCommands):
    """The desktop of a lease, through the computerd that gave it; every batch shows the lease's token there."""

    def __init__(self, pool: AddressPool, lease: Lease) -> None:
        self._pool = pool
        self._lease = lease
        self._closed = False

    async def info(self) -> dict[str, Any]:
        return await self._daemon().info()

    async def act(self, batch: Envelope) -> Outcome:
        try:
            return await self._daemon().act(batch)
        except (NoLease, DesktopInUse) as error:
            if isinstance(error, LeaseLost):
                raise
            raise self._pool.lost_lease(self._lease, error) from None

    async def apps(self) -> list[dict[str, str]]:
        return await self._daemon().apps()

    async def windows(self) -> list[dict[str, Any]]:
        return await self._daemon().windows()

    async def run_command(self, command: Command) -> Ran:
        """computerd runs none, so its address must have a shell."""
        self._daemon()
        shell = self._pool.shell_of(self._lease)
        if not shell:
            raise Unsupported("computerd runs no commands: give the desktop's Address a shell that leads there")
        return await run_by(shell, command)

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(DeskhandError):
            # What this session holds down; its lease stands until it is given back.
            await self._pool.daemon_of(self._lease).request("DELETE", "/lease")

    def _daemon(self) -> Daemon:
        if self._closed:
            raise RuntimeError("this backend is closed")
        return self._pool.daemon_of(self._lease)
