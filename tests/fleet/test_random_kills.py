"""X servers, sessions, supervisors, clients and the host are killed at random while clients work."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from deskhand.fleet import Options, SocketPool
from deskhand.fleet.starting import end_service, start_service
from deskhand.hand.state import is_alive, process_start_time
from deskhand.testing.batches import run, until
from tests.fleet.kills import (
    Clients,
    desktops_of,
    judge,
    kill_a_desktop,
    lines_of,
    nothing_left,
    stop_a_client_for_a_while,
)

TTL = 2.0


class Fleet:
    """A fleet of this machine that is started again when it was killed."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.name = f"kills-{uuid.uuid4().hex[:8]}"
        self.marks: set[str] = set()
        self._pid = 0

    def start(self) -> None:
        self._pid = start_service(self.name, self.options)["pid"]

    def kill(self) -> None:
        start_time = process_start_time(self._pid)
        self.note()
        os.kill(self._pid, signal.SIGKILL)
        until(lambda: not is_alive(self._pid, start_time), "the host has ended")
        self.start()

    def note(self) -> None:
        self.marks.update(facts["id"] for facts in desktops_of(self.name))

    async def all_back(self) -> dict[str, Any]:
        async with SocketPool(self.name) as pool:
            while True:
                health = await pool.health()
                (host,) = health["hosts"]
                size = self.options.size
                if (host["leased"], host["free"], host["ready"]) == (0, size, size + self.options.spares):
                    return health
                await asyncio.sleep(0.1)


def kill_for(seconds: float, log: Path, seed: int, isolation: str = "auto") -> dict[str, int]:
    chance = random.Random(seed)
    fleet = Fleet(Options(size=2, spares=1, isolation=isolation, home_size=64))
    fleet.start()
    clients = Clients("socket", fleet.name, log, 3, TTL)
    try:
        # It has begun when the first clients have a desktop; what is killed before that shows little.
        until(lambda: any(line["is"] == "sent" for line in lines_of(log)), "a client works", 60)
        until_then = time.monotonic() + seconds
        while time.monotonic() < until_then:
            fleet.note()
            what = chance.choices(["desktop", "client", "stop", "host"], [6, 3, 2, 1])[0]
            if what == "desktop":
                kill_a_desktop(chance, fleet.name)
            elif what == "client":
                clients.kill(chance.choice(clients.running))
            elif what == "stop":
                stop_a_client_for_a_while(chance, clients, TTL + 0.5)
            else:
                fleet.kill()
            time.sleep(chance.uniform(0.1, 1.0))
        clients.end()
        run(fleet.all_back())
        fleet.note()
    finally:
        try:
            for client in list(clients.running):
                client.kill()
                client.wait()
        finally:
            run(end_service(fleet.name))
    nothing_left(fleet.name, fleet.marks)
    return judge(log)


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["auto", pytest.param("bwrap", marks=pytest.mark.long)])
def test_whatever_is_killed_for_a_while(tmp_path: Path, isolation: str) -> None:
    if isolation == "bwrap" and shutil.which("bwrap") is None:
        pytest.skip("it needs bubblewrap")
    counts = kill_for(20, tmp_path / "log", seed=1, isolation=isolation)
    assert counts["leases"] >= 3
    assert counts["received"] >= 3


@pytest.mark.long
def test_whatever_is_killed_for_ten_minutes(tmp_path: Path) -> None:
    counts = kill_for(600, tmp_path / "log", seed=int(time.time()))
    print(counts)
    assert counts["leases"] >= 100
    assert counts["received"] >= 100
