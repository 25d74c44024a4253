"""A client of a fleet, as a process that may be killed: ``python -m tests.fleet.client KIND PLACE NUMBER LOG TTL``.

Again and again it leases a desktop, opens a window over its whole screen, clicks at positions that no other client ever
uses, and writes to its log what it sent and what the window received. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
import traceback
from typing import Any

from deskhand.errors import DeskhandError
from deskhand.fleet import LeasedDesktop, Pool, SocketPool
from deskhand.hand.state import MARK, read_desktops
from deskhand.testing import XServer
from deskhand.testing.batches import quick
from deskhand.testing.received import Received, fixture_window

#: Positions that are one client's own, in the order of the lines of the screen.
OWN = 400
_LEFT, _TOP, _WIDTH = 20, 20, 1200


class Client:
    def __init__(self, pool: Pool, number: int, log: str, ttl: float) -> None:
        self._pool = pool
        self._number = number
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._ttl = ttl
        self._clicks = 0
        self._random = random.Random(number)

    async def run(self) -> None:
        while True:
            try:
                async with self._pool.lease(self._ttl, wait=60, holder=f"client {self._number}") as desktop:
                    await self._use(desktop)
            except DeskhandError as error:
                self.say("error", kind=type(error).__name__, text=str(error), sent=error.sent)
                await asyncio.sleep(0.05)

    async def _use(self, desktop: LeasedDesktop) -> None:
        lease = desktop.current
        assert lease is not None
        self.say("leased", desktop=lease.desktop, number=lease.number, host=lease.host)
        facts = next((facts for facts in read_desktops() if facts["id"] == lease.desktop), None)
        if facts is None:
            return  # it has died already
        env = {"PATH": os.environ["PATH"], "DISPLAY": facts["display"], "XAUTHORITY": facts["xauthority"]}
        # With the desktop's mark the window's process ends with the desktop, whoever is killed.
        server = XServer(facts["display"], facts["xauthority"], 0, {**env, MARK: facts["id"]})
        opened = fixture_window(server)
        try:
            received: Received = await asyncio.to_thread(opened.__enter__)
        except Exception as error:  # the desktop dies while the window opens: whatever that comes to
            self.say("no window", desktop=lease.desktop, text=repr(error)[:200])
            return
        try:
            for _ in range(self._random.randint(2, 8)):
                await self._click(desktop, lease.desktop)
                await asyncio.sleep(self._random.uniform(0, 0.1))
        finally:
            try:
                pressed = [event["at"] for event in received.all("press")]
            except (AssertionError, OSError):
                pressed = [event["at"] for event in received.events if event["is"] == "press"]
            self.say("seen", desktop=lease.desktop, number=lease.number, pressed=pressed)
            try:
                opened.__exit__(None, None, None)
            except OSError:
                pass

    async def _click(self, desktop: LeasedDesktop, name: str) -> None:
        place = self._number * OWN + self._clicks % OWN
        self._clicks += 1
        at = [_LEFT + place % _WIDTH, _TOP + place // _WIDTH]
        self.say("sends", desktop=name, at=at)
        outcome: Any = await desktop.act(quick({"action": "click", "x": at[0], "y": at[1]}))
        self.say("sent", desktop=name, at=at, ok=outcome.ok)

    def say(self, what: str, **facts: Any) -> None:
        # One write a line: a process that is killed leaves whole lines.
        os.write(
            self._log, json.dumps({"client": self._number, "is": what, "t": time.time(), **facts}).encode() + b"\n"
        )


def pool_of(kind: str, place: str) -> Pool:
    if kind == "socket":
        return SocketPool(place)
    from deskhand.fleet.ray import RayPool

    name, _, address = place.partition("@")
    return RayPool(name, address)


async def main() -> None:
    kind, place, number, log, ttl = sys.argv[1:]
    client = Client(pool_of(kind, place), int(number), log, float(ttl))
    running = asyncio.create_task(client.run())
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait({running, ended}, return_when=asyncio.FIRST_COMPLETED)
    running.cancel()
    await asyncio.wait({running})
    if not running.cancelled() and (error := running.exception()) is not None:
        client.say("fault", text="".join(traceback.format_exception(error)))


if __name__ == "__main__":
    asyncio.run(main())
