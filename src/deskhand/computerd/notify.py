"""What a service manager is told (sd_notify(3)): ready, alive, ending."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import MutableMapping


class Notifier:
    """Tells the manager that NOTIFY_SOCKET names; without one it does nothing.

    The variables are taken out of ``environment``: no child must speak for this process.
    """

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        self._path = environment.pop("NOTIFY_SOCKET", "")
        usec, pid = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        ours = not pid or pid == str(os.getpid())
        #: Seconds within which the manager wants to hear from us; 0 for never.
        self.watchdog = int(usec) / 1e6 if usec.isdigit() and ours else 0.0

    def tell(self, *lines: str) -> None:
        """Send ``READY=1`` and the like; a manager that is gone is no error of ours."""
        if not self._path:
            return
        address = "\0" + self._path[1:] if self._path.startswith("@") else self._path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.connect(address)
                sock.sendall("\n".join(lines).encode())
        except OSError:
            pass

    async def keep_alive(self) -> None:
        """Tell the watchdog, from the event loop that has to be alive, twice as often as it asks for."""
        while self._path and self.watchdog:
            self.tell("WATCHDOG=1")
            await asyncio.sleep(self.watchdog / 2)
