"""Start a fleet on a Ray cluster, and end it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import ray
from ray.exceptions import RayError

from deskhand.errors import DeskhandError, DisplayLost, SetupError
from deskhand.fleet.options import Options
from deskhand.fleet.page.status import PageSettings
from deskhand.fleet.ray.cluster import NAMESPACE, actor, ask, machines, manager_name
from deskhand.fleet.ray.connecting import connect
from deskhand.fleet.ray.manager import ManagerActor
from deskhand.fleet.ray.pool import RayPool

Progress = Callable[[int, int], None]

#: Seconds between two looks at how far the fleet is.
_LOOK = 0.1
#: Seconds that a manager which has died gets to be there again.
_RESTART = 30.0


async def start_fleet(
    name: str,
    address: str,
    options: Options,
    timeout: float = 600.0,
    progress: Progress | None = None,
    resource: str | None = None,
    page: PageSettings | None = None,
) -> dict[str, Any]:
    """Start the fleet ``name`` on every machine of the cluster, and return when its desktops are ready.

    Machines that come later get a host too. ``progress`` is called with how many are ready, of how many. With
    ``resource`` its machines are those alone that offer it (``ray start --resources``). The manager has the status
    page, on its machine; ``page`` None: there is none.

    Raises:
        NoDisplay: There is no cluster at ``address``.
        SetupError: No machine offers ``resource``, there is a fleet of that name, or its desktops do not come up in
            time; it is ended then.
    """
    await asyncio.to_thread(connect, address)
    if resource is not None and not await asyncio.to_thread(machines, resource):
        raise SetupError(
            f"no machine of this Ray cluster offers the resource {resource!r}: start one with:"
            f""" ray start --address HEAD:6379 --resources '{{"{resource}": 1}}'"""
        )
    try:
        await asyncio.to_thread(_start_manager, name, options, resource, page)
    except ValueError:
        raise SetupError(
            f"there is a fleet {name!r} already: end it with: deskhand fleet down --ray {address} --name {name}"
        ) from None
    try:
        count = len(await asyncio.to_thread(machines, resource))
        of = count * (options.size + options.spares)
        deadline = time.monotonic() + timeout
        pool = RayPool(name, address)
        while True:
            health = await pool.health()
            ready = sum(host["ready"] + host["leased"] for host in health["hosts"])
            if progress is not None:
                progress(ready, of)
            if ready >= of:
                return {"name": name, "machines": count, "desktops": ready}
            failed = [host["failure"] for host in health["hosts"] if host.get("failure") and not host["ok"]]
            if failed or time.monotonic() > deadline:
                why = failed[0] if failed else f"{ready} of {of} were ready within {timeout:g} s"
                raise SetupError(f"the fleet did not come up: {why}")
            await asyncio.sleep(_LOOK)
    except BaseException:
        with contextlib.suppress(DeskhandError):
            await end_fleet(name, address)
        raise


async def end_fleet(name: str, address: str) -> int:
    """End the fleet ``name``: its leases, its desktops, its actors; gives how many hosts it had.

    Raises:
        NoDisplay: There is no such fleet.
    """
    await asyncio.to_thread(connect, address)
    deadline = time.monotonic() + _RESTART
    while True:
        manager = await asyncio.to_thread(actor, manager_name(name))
        try:
            answer, _ = await ask(manager, "end", {"wait": 120.0})
            break
        except DisplayLost:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(_LOOK)  # it has died, and Ray starts it again
    with contextlib.suppress(RayError):
        await asyncio.to_thread(ray.kill, manager)
    return int(answer["value"])


def _start_manager(name: str, options: Options, resource: str | None, page: PageSettings | None) -> Any:
    return (
        ray.remote(ManagerActor)
        .options(
            name=manager_name(name),
            namespace=NAMESPACE,
            lifetime="detached",
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=4096,
        )
        .remote(name, options.as_dict(), resource, asdict(page) if page is not None else None)
    )
