"""Hosts, the manager, a node, desktops and clients of a fleet on Ray are killed at random while clients work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402

from deskhand.errors import DisplayLost  # noqa: E402
from deskhand.fleet import Options  # noqa: E402
from deskhand.fleet.making import HOST_MARK  # noqa: E402
from deskhand.fleet.ray import RayPool  # noqa: E402
from deskhand.fleet.ray.cluster import NAMESPACE, manager_name  # noqa: E402
from deskhand.fleet.ray.up import end_fleet, start_fleet  # noqa: E402
from deskhand.testing.batches import run, until  # noqa: E402
from tests.fleet.kills import Clients, desktops_of, judge, kill_a_desktop, lines_of, nothing_left  # noqa: E402
from tests.fleet.ray.clusters import NODE  # noqa: E402

NAME = "ray-kills"
TTL = 2.0
OPTIONS = Options(size=1, spares=1)


def kill_a_host(chance: random.Random) -> None:
    marks = sorted({facts["env"][HOST_MARK] for facts in desktops_of(NAME)})
    if marks:
        pid = int(chance.choice(marks).split(":")[-2])
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def kill_the_manager() -> None:
    try:
        ray.kill(ray.get_actor(manager_name(NAME), namespace=NAMESPACE), no_restart=False)
    except (ValueError, ray.exceptions.RayError):
        pass  # it is starting again


async def all_back(cluster: Any) -> None:
    async with RayPool(NAME, cluster.address) as pool:
        while True:
            with contextlib.suppress(DisplayLost):  # the manager has just been killed
                health = await pool.health()
                back = (len(health["hosts"]), health["leased"], health["free"]) == (2, 0, 2)
                if health["ok"] and back and all(host["ready"] == 2 for host in health["hosts"]):
                    return
            await asyncio.sleep(0.2)


def kill_for(seconds: float, log: Path, cluster: Cluster, seed: int) -> dict[str, int]:
    chance = random.Random(seed)
    run(start_fleet(NAME, cluster.address, OPTIONS))
    clients = Clients("ray", f"{NAME}@{cluster.address}", log, 2, TTL)
    marks: set[str] = set()
    node = next(node for node in cluster.list_all_nodes() if not node.head)
    try:
        until(lambda: any(line["is"] == "sent" for line in lines_of(log)), "a client works", 60)
        until_then = time.monotonic() + seconds
        while time.monotonic() < until_then:
            marks.update(facts["id"] for facts in desktops_of(NAME))
            what = chance.choices(["desktop", "client", "host", "manager", "node"], [5, 1, 2, 2, 1])[0]
            if what == "desktop":
                kill_a_desktop(chance, NAME)
            elif what == "client":
                clients.kill(chance.choice(clients.running))
            elif what == "host":
                kill_a_host(chance)
            elif what == "manager":
                kill_the_manager()
            else:
                cluster.remove_node(node, allow_graceful=False)
                node = cluster.add_node(**NODE)
            time.sleep(chance.uniform(0.3, 2.0))
        clients.end()
        run(all_back(cluster))
        marks.update(facts["id"] for facts in desktops_of(NAME))
    finally:
        try:
            for client in list(clients.running):
                client.kill()
                client.wait()
        finally:
            run(end_fleet(NAME, cluster.address))
    nothing_left(NAME, marks)
    return judge(log)


@pytest.mark.slow
def test_whatever_is_killed_for_a_while(cluster: Cluster, tmp_path: Path) -> None:
    counts = kill_for(25, tmp_path / "log", cluster, seed=3)
    assert counts["leases"] >= 2
    assert counts["received"] >= 2


@pytest.mark.long
def test_whatever_is_killed_for_ten_minutes(cluster: Cluster, tmp_path: Path) -> None:
    counts = kill_for(600, tmp_path / "log", cluster, seed=int(time.time()))
    print(counts)
    assert counts["leases"] >= 50
    assert counts["received"] >= 50
