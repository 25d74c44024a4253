"""What everybody on the cluster agrees on: names, how calls are made, and what Ray's errors mean."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError

from deskhand.errors import BackendError, DeskhandError, DisplayLost, NoDisplay
from deskhand.fleet.errors import LeaseLost
from deskhand.fleet.ways import Answer, read
from deskhand.turns import longest

NAMESPACE = "deskhand"
#: Seconds beyond what is asked for itself.
PATIENCE = 60.0


def manager_name(fleet: str) -> str:
    return f"{fleet}/manager"


def host_name(fleet: str, node: str) -> str:
    """The host on the machine whose id in Ray is ``node``; it is its actor's name too."""
    return f"{fleet}/host/{node}"


def machines(resource: str | None = None) -> list[str]:
    """The ids in Ray of the machines that are there, or of those among them that offer ``resource``."""
    return [
        node["NodeID"]
        for node in ray.nodes()
        if node["Alive"] and (resource is None or node["Resources"].get(resource, 0.0) > 0)
    ]


def actor(name: str) -> Any:
    """The actor of that name.

    Raises:
        NoDisplay: There is none.
    """
    try:
        return ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        raise NoDisplay(
            f"there is no {name!r} on this Ray cluster: start a fleet with: deskhand fleet up --ray ADDRESS"
        ) from None


async def ask(handle: Any, method: str, arguments: dict[str, Any]) -> tuple[Answer, bytes | None]:
    """Ask a host or the manager once; Ray repeats no call of ours. Given up, it is cancelled over there.

    Raises:
        DeskhandError: What the other side raised; LeaseLost, the host has died, and its leases with it.
    """
    seconds = PATIENCE + float(arguments.get("wait", 0.0))
    if method == "act" and isinstance(arguments.get("batch"), dict):
        seconds += longest(arguments["batch"])
    reference = handle.ask.remote(method, arguments)
    answered: asyncio.Future[Any] = asyncio.wrap_future(reference.future())
    try:
        async with asyncio.timeout(seconds):
            answer, content = await asyncio.shield(answered)
    except TimeoutError:
        ray.cancel(reference)
        raise _unknown(method, f"no answer came within {seconds:.0f} s") from None
    except asyncio.CancelledError:
        ray.cancel(reference)
        # A batch that was given up has ended, with what it held released, before its caller goes on.
        with contextlib.suppress(Exception, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await asyncio.shield(answered)
        raise
    except RayError as error:
        raise meaning(error, method) from None
    return read(answer), content


def meaning(error: RayError, method: str) -> DeskhandError:
    """What an error of Ray's means for who has asked."""
    if isinstance(error, ActorDiedError):
        lost = LeaseLost("the host of this desktop has died, and its leases with it: lease another desktop")
        lost.sent = "unknown" if method == "act" else "none"
        return lost
    if isinstance(error, ActorUnavailableError):
        return _unknown(method, "its host does not answer")
    said = str(error).strip().splitlines() or [type(error).__name__]
    failed = BackendError(f"Ray could not ask the host ({said[-1][:200]}): see its logs")
    failed.sent = "unknown" if method == "act" else "none"
    return failed


def _unknown(method: str, why: str) -> DisplayLost:
    error = DisplayLost(f"the fleet gave no answer ({why}): it is unknown what happened; look before acting again")
    if method != "act":
        error.sent = "none"
    return error
