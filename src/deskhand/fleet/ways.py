"""Pools whose desktops are behind a host: what is asked of it, over whatever way leads there."""

from __future__ import annotations

from abc import abstractmethod
from base64 import b64decode, b64encode
from dataclasses import asdict
from typing import Any, Protocol

from deskhand.backends.answers import outcome_of, raise_error
from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet.commands import MOST, Command, CommandTimeout, Ran, RunsCommands
from deskhand.fleet.errors import LeaseLost, NoneFree
from deskhand.fleet.host import Host
from deskhand.fleet.pool import PATIENCE, Lease, Pool, checked_ttl, who
from deskhand.hand.answering import error_reply

Answer = dict[str, Any]

#: What can be asked of a host.
METHODS = frozenset(
    {"acquire", "renew", "release", "reset", "health", "detail", "info", "act", "apps", "windows", "quiet", "run"}
)


_SPECIAL: dict[str, type[DeskhandError]] = {"lost": LeaseLost, "none": NoneFree, "late": CommandTimeout}


class Way(Protocol):
    """Asks a host once, and never again by itself; gives the answer and a picture's bytes."""

    async def __call__(self, method: str, **arguments: Any) -> tuple[Answer, bytes | None]:
        """Raises DeskhandError: what the host raised; NoDisplay, it can not be reached; DisplayLost, no answer came."""
        ...


async def answer(host: Host, method: str, arguments: dict[str, Any]) -> tuple[Answer, bytes | None]:
    """Ask ``host``; errors become answers, which ``read`` raises again on the other side."""
    try:
        if method not in METHODS:
            raise SetupError(f"a host can not be asked {method[:60]!r}: do both sides have the same version?")
        value = await getattr(host, method)(**arguments)
    except Exception as error:
        return told(error, arguments.get("batch")), None
    if isinstance(value, Outcome):
        return value.answer, value.picture
    return {"value": asdict(value) if isinstance(value, Lease) else value}, None


def read(answer: Answer) -> Answer:
    """Raise what an answer tells of, else give it."""
    special = answer.get("fleet_error")
    if special is not None:
        error: DeskhandError = _SPECIAL.get(special, SetupError)(str(answer["error"]))
        error.sent = str(answer["sent"])
        raise error
    raise_error(answer)
    return answer


def told(error: Exception, request: Any = None) -> Answer:
    """The answer that tells of an error."""
    answer = error_reply(error, request).answer
    if isinstance(error, (ValueError, TypeError)):
        return {**answer, "fleet_error": "setup", "sent": "none"}
    for name, kind in _SPECIAL.items():
        if isinstance(error, kind):
            return {**answer, "fleet_error": name}
    return {**answer, "fleet_error": "setup"} if type(error) is SetupError else answer


class HostPool(Pool):
    """A pool of one host, or of several that something in front of them chooses from."""

    @abstractmethod
    def way(self, lease: Lease | None) -> Way:
        """The way to the host of a lease; None: to whoever gives leases."""

    async def acquire(self, ttl: float = 60.0, wait: float = PATIENCE, holder: str | None = None) -> Lease:
        answer, _ = await self.way(None)("acquire", holder=holder or who(), ttl=checked_ttl(ttl), wait=wait)
        return Lease(**answer["value"])

    async def renew(self, lease: Lease, ttl: float | None = None) -> None:
        await self.way(lease)("renew", token=lease.token, ttl=ttl)

    async def release(self, lease: Lease) -> None:
        await self.way(lease)("release", token=lease.token)

    async def reset(self, lease: Lease, wait: float = PATIENCE) -> Lease:
        answer, _ = await self.way(lease)("reset", token=lease.token, wait=wait)
        return Lease(**answer["value"])

    async def health(self) -> dict[str, Any]:
        answer, _ = await self.way(None)("health")
        return pool_health([answer["value"]])

    async def detail(self) -> dict[str, Any]:
        answer, _ = await self.way(None)("detail")
        return pool_health([answer["value"]])

    def backend(self, lease: Lease) -> Backend:
        return HostDesktop(self.way(lease), lease)


class HostDesktop(Backend, RunsCommands):
    """The desktop of a lease, behind its host. The host checks the lease's token at every call."""

    def __init__(self, way: Way, lease: Lease) -> None:
        self._way = way
        self._lease = lease
        self._acted = False
        self._closed = False

    async def info(self) -> dict[str, Any]:
        found: dict[str, Any] = (await self._ask("info"))[0]["value"]
        return found

    async def act(self, batch: Envelope) -> Outcome:
        self._acted = True
        return outcome_of(*await self._ask("act", batch=batch))

    async def apps(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = (await self._ask("apps"))[0]["value"]
        return found

    async def windows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._ask("windows"))[0]["value"]
        return found

    async def run_command(self, command: Command) -> Ran:
        if len(command.stdin) > MOST:
            raise SetupError(f"a command's input has {MOST >> 20} MiB at most: send it in parts")
        told, _ = await self._ask(
            "run",
            command=command.text,
            stdin=b64encode(command.stdin).decode("ascii"),
            env=dict(command.env),
            cwd=command.cwd,
            wait=command.timeout,
        )
        value = told["value"]
        return Ran(int(value["code"]), b64decode(value["stdout"]), b64decode(value["stderr"]))

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._acted:
            try:
                await self._way("quiet", token=self._lease.token)
            except DeskhandError:
                pass  # the lease is over, and what was held with it

    async def _ask(self, method: str, **arguments: Any) -> tuple[Answer, bytes | None]:
        if self._closed:
            raise RuntimeError("this backend is closed")
        return await self._way(method, token=self._lease.token, **arguments)


def pool_health(hosts: list[dict[str, Any]]) -> dict[str, Any]:
    """The health of a pool from that of its hosts."""
    sums = {name: sum(int(host[name]) for host in hosts) for name in ("size", "free", "leased", "waiting")}
    return {"ok": bool(hosts) and all(host["ok"] for host in hosts), **sums, "hosts": hosts}
