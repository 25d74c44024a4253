"""Who is asked for leases on a Ray cluster: chooses a host, and queues while none has a free desktop.

It decides nothing about desktops: the hosts do. What it knows it has from them, so that one that was started again
knows the same after a moment; and no lease, renewal or call depends on it once a lease is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import asdict, dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet.errors import NoneFree
from deskhand.fleet.page.status import PageSettings, StatusPage, missing
from deskhand.fleet.pool import Lease
from deskhand.fleet.ray.cluster import NAMESPACE, ask, host_name, machines
from deskhand.fleet.ray.host import HostActor
from deskhand.fleet.ray.watching import Seen, whole
from deskhand.fleet.ways import Answer, told

#: Seconds between two looks at which machines there are: Ray tells nobody.
_LOOK = 1.0
#: Seconds before a host that did not answer is asked again.
_AGAIN = 0.2
#: Seconds that a host gets to tell how it is.
_FRESH = 1.0
#: Of the resource that says where desktops may be, what a host takes; Ray counts in ten thousandths.
_A_LITTLE = 0.0001
#: Calls that one actor runs at once.
_AT_ONCE = 4096


@dataclass
class _Known:
    """A host, as it was when it was last heard of."""

    name: str
    handle: Any = field(repr=False)
    free: int = 0
    health: dict[str, Any] | None = None
    watching: asyncio.Task[None] | None = None


class ManagerActor:
    """What runs in the actor of the fleet ``name``, on the machines that offer Ray ``resource``; None: on all."""

    def __init__(
        self, name: str, options: dict[str, Any], resource: str | None = None, page: dict[str, Any] | None = None
    ) -> None:
        self._name = name
        self._options = options
        self._resource = resource
        self._hosts: dict[str, _Known] = {}
        self._looking: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._changed = asyncio.Event()
        self._given = 0
        self._seen = Seen()
        self._settings = PageSettings(page["listen"], tuple(page["hosts"])) if page is not None else None
        self._page: StatusPage | None = None
        #: What is told of the page when there is none; None: none is wanted.
        self._no_page = {"missing": missing()} if page is not None and missing() is not None else None
        self._ended = False

    async def ask(self, method: str, arguments: dict[str, Any]) -> tuple[Answer, bytes | None]:
        self._begin()
        try:
            if method == "acquire":
                return {"value": asdict(await self._acquire(**arguments))}, None
            if method == "acquire_many":
                return {"value": [asdict(lease) for lease in await self._acquire_many(**arguments)]}, None
            if method in ("health", "detail"):
                return {"value": await self._health(method)}, None
            if method == "page":
                return {"value": await self._page.facts() if self._page else self._no_page}, None
            if method == "end":
                return {"value": await self._end()}, None
            raise NoneFree(f"the manager of a fleet can not be asked {method[:60]!r}")
        except Exception as error:
            return told(error), None

    # -- leases -------------------------------------------------------------------------------------------------------

    async def _acquire(self, holder: str, ttl: float, wait: float) -> Lease:
        began = time.monotonic()
        deadline = began + max(0.0, wait)
        self._waiting += 1
        try:
            while True:
                host = await self._choose(deadline, wait)
                try:
                    answer, _ = await ask(host.handle, "acquire", {"holder": holder, "ttl": ttl, "wait": 0.0})
                    self._given += 1
                    self._seen.wait_seconds.observe(time.monotonic() - began)
                    return Lease(**answer["value"])
                except NoneFree:
                    host.free = 0  # until it says otherwise
                except DeskhandError:
                    host.free = 0
                    if time.monotonic() >= deadline:
                        raise
        finally:
            self._waiting -= 1

    async def _acquire_many(self, holder: str, ttl: float, wait: float, count: int) -> list[Lease]:
        """As many as can be had in that time; one at least."""
        asked = [asyncio.create_task(self._acquire(holder, ttl, wait)) for _ in range(count)]
        ends = await asyncio.gather(*asked, return_exceptions=True)
        leases = [end for end in ends if isinstance(end, Lease)]
        for end in ends:
            if not leases and isinstance(end, BaseException):
                raise end
        return leases

    async def _choose(self, deadline: float, wait: float) -> _Known:
        """The host that has most free; those who ask are served in their order."""
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                async with self._turn:
                    while True:
                        host = max(self._hosts.values(), key=lambda one: one.free, default=None)
                        if host is not None and host.free > 0:
                            host.free -= 1
                            return host
                        await self._changed.wait()
        except TimeoutError:
            self._seen.none_free += 1
            size = sum((host.health or {}).get("size", 0) for host in self._hosts.values())
            raise NoneFree(
                f"none of the {size} desktops on {len(self._hosts)} machines became free within {max(0.0, wait):g} s:"
                " wait longer, or make the fleet larger"
            ) from None

    # -- hosts --------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._looking is None and not self._ended:
            self._looking = asyncio.get_running_loop().create_task(self._look())
            self._open_page()

    def _open_page(self) -> None:
        if self._settings is None or self._no_page is not None:
            return
        page = StatusPage(
            self._detail,
            self._name,
            self._settings,
            change=lambda: self._changed.wait(),
            least=lambda: max(1.0, len(self._hosts) / 100),  # each look asks every host
        )
        try:
            page.open()
        except SetupError as error:  # the fleet must not depend on it
            self._no_page = {"missing": str(error)}
        else:
            self._page = page

    async def _detail(self) -> dict[str, Any]:
        return whole(await self._health("detail"))

    async def _look(self) -> None:
        """Have a host on every machine there is; those of a manager before are found by their names."""
        while True:
            with contextlib.suppress(RayError, OSError, ValueError, RuntimeError):  # the next look may do better
                nodes = await asyncio.to_thread(machines, self._resource)
                alive = {host_name(self._name, node): node for node in nodes}
                for name in set(self._hosts) - set(alive):
                    self._seen.recovered("machine_lost")
                    self._drop(name)
                for name in sorted(set(alive) - set(self._hosts)):
                    if self._hosts and not await self._template_is_known():
                        break
                    await self._add(name, alive[name])
            await asyncio.sleep(_LOOK if self._options.get("template") is not None else _AGAIN)

    async def _add(self, name: str, node: str) -> None:
        handle = await asyncio.to_thread(self._host_actor, name, node)
        known = self._hosts[name] = _Known(name, handle)
        known.watching = asyncio.get_running_loop().create_task(self._watch(known))

    async def _template_is_known(self) -> bool:
        """Whether more hosts may begin: the first desktop of the first is what all are held against.

        So they may when that host has no desktop, and will have none.
        """
        hosts = list(self._hosts.values())
        for host in hosts:
            if self._options.get("template") is None:
                with contextlib.suppress(RayError, TimeoutError):
                    async with asyncio.timeout(_FRESH):
                        self._options["template"] = await host.handle.template.remote()
        failing = all(host.health is not None and not host.health["ok"] for host in hosts)
        return self._options.get("template") is not None or failing

    def _host_actor(self, name: str, node: str) -> Any:
        return (
            ray.remote(HostActor)
            .options(
                name=name,
                namespace=NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                num_cpus=0,
                # So little that any number of fleets find room, but an autoscaler must not take the machine for idle.
                resources={self._resource: _A_LITTLE} if self._resource else {},
                max_restarts=-1,
                max_task_retries=0,  # input is never sent twice
                max_concurrency=_AT_ONCE,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote(name, self._options)
        )

    async def _watch(self, known: _Known) -> None:
        """Follow what a host says of itself; one that has died is asked until it is back."""
        seen = 0
        while True:
            try:
                self._hear(known, await known.handle.watch.remote(seen))
                seen = (known.health or {})["version"]
            except RayError as error:
                said = str(error).strip().splitlines() or [type(error).__name__]
                known.free = 0
                known.health = {**(known.health or {}), "ok": False, "failure": said[0][:200], "leases_now": []}
                await asyncio.sleep(_AGAIN)

    def _hear(self, known: _Known, health: dict[str, Any]) -> None:
        if known.health is not None and health["began"] != known.health.get("began", health["began"]):
            self._seen.recovered("host_restarted")
        known.health, known.free = health, health["free"]
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _drop(self, name: str) -> None:
        known = self._hosts.pop(name)
        if known.watching is not None:
            known.watching.cancel()

    async def _health(self, method: str) -> dict[str, Any]:
        """As the hosts are now; one that does not answer soon, as it was last heard of."""
        known = list(self._hosts.values())
        details = await asyncio.gather(*(self._refresh(host, method) for host in known))
        now = {host.name: detail for host, detail in zip(known, details, strict=True)}
        empty = {"ok": False, "size": 0, "free": 0, "leased": 0, "waiting": 0, "ready": 0, "coming": 0}
        return {
            "hosts": [
                {**empty, **(now.get(host.name) or host.health or {}), "name": host.name}
                for host in self._hosts.values()
            ],
            "waiting": self._waiting,
            "given": self._given,
            "manager": self._seen.as_dict(),
        }

    async def _refresh(self, known: _Known, method: str) -> dict[str, Any] | None:
        with contextlib.suppress(RayError, TimeoutError):
            async with asyncio.timeout(_FRESH):
                told: dict[str, Any] = await getattr(known.handle, method).remote()
                health = {name: value for name, value in told.items() if name not in ("desktops", "events")}
                self._hear(known, health)
                return told
        return None

    async def _end(self) -> int:
        self._ended = True
        if self._page is not None:
            await self._page.aclose(for_good=True)
        if self._looking is not None:
            self._looking.cancel()
        hosts, self._hosts = self._hosts, {}
        for host in hosts.values():
            if host.watching is not None:
                host.watching.cancel()
        handles = {name: host.handle for name, host in hosts.items()}
        # One that was started again a moment ago does not know them all yet.
        handles = {**await asyncio.to_thread(self._there), **handles}
        await asyncio.gather(*(self._end_host(handle) for handle in handles.values()))
        return len(handles)

    def _there(self) -> dict[str, Any]:
        """The hosts of this fleet that are there, by name."""
        found = {}
        for node in ray.nodes():
            name = host_name(self._name, node["NodeID"])
            with contextlib.suppress(ValueError):
                found[name] = ray.get_actor(name, namespace=NAMESPACE)
        return found

    async def _end_host(self, handle: Any) -> None:
        with contextlib.suppress(RayError, TimeoutError):
            async with asyncio.timeout(60):
                await handle.end.remote()
        with contextlib.suppress(RayError):
            await asyncio.to_thread(ray.kill, handle)
