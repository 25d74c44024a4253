"""The pool that settings name: one of this machine, of Ray, of addresses, or one of this process's own.

Who asks again in the same event loop gets the same pool, so that many trials of one process share its desktops.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from deskhand.errors import SetupError
from deskhand.fleet.addresses import Address, AddressPool
from deskhand.fleet.local import LocalPool
from deskhand.fleet.options import Options
from deskhand.fleet.pool import Pool
from deskhand.fleet.socket import SocketPool

#: Seconds for a pool of this process to be up, and more than any start takes.
_MOST = 3600.0


@dataclass(frozen=True)
class Named:
    """Which pool; of the first three one at most.

    Args:
        pool: The fleet of that name that ``deskhand fleet up`` started on this machine; with ``ray``, on that cluster.
        ray: The address of a Ray cluster (``auto``: that of this machine).
        addresses: Of computerd, each with ``url``, ``token`` or ``token_file``, and ``shell``, the words of a command
            that leads to the desktop; or the path of a JSON file that holds the list.
        own: Options of a pool that this process makes, and that ends with it.

    Raises:
        SetupError: They do not go together, or name none.
    """

    pool: str | None = None
    ray: str | None = None
    addresses: tuple[Address, ...] = ()
    own: Options | None = None

    @classmethod
    def of(
        cls,
        pool: str | None = None,
        ray: str | None = None,
        addresses: str | Sequence[Mapping[str, Any]] | None = None,
        **own: Any,
    ) -> Named:
        """From settings as a configuration has them; what is left are ``Options`` of a pool of this process."""
        given = {name: value for name, value in own.items() if value is not None}
        if (addresses is not None) + bool(given) + (pool is not None or ray is not None) > 1:
            raise SetupError("give one pool: pool (and ray), or addresses, or size and what else an own pool has")
        if addresses is not None:
            return cls(addresses=_addresses(addresses))
        if given:
            return cls(own=_options(given))
        return cls(pool=str(pool or "default"), ray=str(ray) if ray is not None else None)

    async def open(self) -> Pool:
        """The pool; the same one for all who ask in this event loop.

        Raises:
            SetupError: It can not be reached, or made.
        """
        loop = asyncio.get_running_loop()
        pools = _OPEN.setdefault(loop, {})
        if self not in pools:
            pools[self] = loop.create_task(self._make())
        try:
            return await asyncio.shield(pools[self])
        except BaseException:
            if pools[self].done():
                pools.pop(self)
            raise

    async def _make(self) -> Pool:
        if self.addresses:
            return AddressPool(self.addresses)
        if self.own is not None:
            return await LocalPool(self.own).__aenter__()
        if self.ray is not None:
            from deskhand.fleet.ray import RayPool

            return RayPool(self.pool or "default", self.ray)
        return SocketPool(self.pool or "default")

    def __hash__(self) -> int:
        return hash((self.pool, self.ray, self.addresses))


#: Pools are for one event loop each.
_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Named, asyncio.Task[Pool]]] = WeakKeyDictionary()


def _addresses(given: str | Sequence[Mapping[str, Any]]) -> tuple[Address, ...]:
    try:
        listed = json.loads(Path(given).read_text()) if isinstance(given, str) else given
        found = tuple(Address(**{**one, "shell": tuple(one.get("shell", ()))}) for one in listed)
    except OSError as error:
        raise SetupError(f"the list of addresses {given} can not be read: {error.strerror}") from None
    except (TypeError, ValueError, AttributeError):
        raise SetupError(
            'addresses are a list of {"url": ..., "token_file": ..., "shell": ["docker", "exec", "-i", NAME]}'
        ) from None
    if not found:
        raise SetupError("the list of addresses is empty")
    return found


def _options(given: dict[str, Any]) -> Options:
    screen = given.get("screen")
    if isinstance(screen, str):
        from deskhand.desktop import parse_size

        given["screen"] = parse_size(screen)
    try:
        return Options(**{"isolation": "bwrap", **given})
    except (TypeError, ValueError) as error:
        raise SetupError(f"a pool of this process can not have these options: {error}") from None
