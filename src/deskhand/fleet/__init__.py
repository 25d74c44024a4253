"""More desktops than one: pools that lease a desktop to one client at a time, and never the same one to two.

- ``pool``         ``Pool``, ``LeasedDesktop``: the one interface
- ``host``         owns the desktops of one machine, and alone says who has them
- ``stock``        its desktops that are ready or on their way, kept at their number, ended when given back
- ``options``      what a host owns, and what it has done
- ``holding``      one lease as its host has it: the fence that every call passes
- ``making``       makes and ends a desktop of a fleet, with an account of its own; ``clearing``: and what that left
- ``commands``     commands on a leased desktop; ``launching``: applications in its sandbox, started from outside
- ``fingerprint``  is a new desktop as all of them should be
- ``warden``       ends the desktops of a host that was killed
- ``ways``         pools whose desktops are behind a host, and what is asked of it
- ``local``        the pool of this process
- ``record``       what has happened, for those who look: counts, histograms, the last events
- ``page``         the status page, in a process of its own; ``metrics``: what it tells Prometheus
- ``service``, ``socket``  the same for every process of this machine
- ``addresses``    a pool of desktops that computerd serves
- ``named``        the pool that settings name; ``harbor``: a Harbor environment whose desktop is leased
- ``ray``          the same on Ray, over many machines
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deskhand.fleet.addresses import Address as Address
    from deskhand.fleet.addresses import AddressPool as AddressPool
    from deskhand.fleet.errors import LeaseLost as LeaseLost
    from deskhand.fleet.errors import NoneFree as NoneFree
    from deskhand.fleet.local import LocalPool as LocalPool
    from deskhand.fleet.options import Options as Options
    from deskhand.fleet.page.status import PageSettings as PageSettings
    from deskhand.fleet.page.status import StatusPage as StatusPage
    from deskhand.fleet.pool import Lease as Lease
    from deskhand.fleet.pool import LeasedDesktop as LeasedDesktop
    from deskhand.fleet.pool import Pool as Pool
    from deskhand.fleet.socket import SocketPool as SocketPool

# Imported when they are used: a warden needs little of all this, and there is one beside every host.
_HOME = {
    "Address": "addresses",
    "AddressPool": "addresses",
    "Lease": "pool",
    "LeaseLost": "errors",
    "LeasedDesktop": "pool",
    "LocalPool": "local",
    "NoneFree": "errors",
    "Options": "options",
    "PageSettings": "page.status",
    "Pool": "pool",
    "SocketPool": "socket",
    "StatusPage": "page.status",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
