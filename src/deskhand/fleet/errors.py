"""What can become of a lease.

::

    SetupError
    └── DesktopInUse
        ├── LeaseLost   it is over; the desktop is no longer this client's
        └── NoneFree    all desktops of the pool are in use
"""

from __future__ import annotations

from deskhand.errors import DesktopInUse


class LeaseLost(DesktopInUse):
    """The lease is over: it was not renewed in time, was given back, or its host has ended.

    ``sent`` is ``"none"`` when the host refused the call; another value when the lease ended in the middle of a batch.
    """


class NoneFree(DesktopInUse):
    """No desktop of the pool became free in time. Nothing was sent."""
