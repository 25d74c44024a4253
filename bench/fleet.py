"""What a fleet does on this machine: ``python -m bench.fleet --session openbox --size 8 [--ray]``; prints a table."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from deskhand.desktop.processes import processes_of
from deskhand.errors import DeskhandError
from deskhand.fleet import LocalPool, Options, Pool, SocketPool
from deskhand.fleet.making import HOST_MARK
from deskhand.fleet.starting import end_service, start_service
from deskhand.hand.state import read_desktops

CLICK = {"actions": [{"action": "click", "x": 3, "y": 3}], "settle": {"mode": "none"}}
NAME = "bench"
TTL = 2.0
Row = tuple[str, str, str]
#: Takes a lease, says so, and is killed.
_CLIENT = """
import asyncio, sys
from deskhand.fleet import SocketPool
async def main():
    async with SocketPool(sys.argv[1]) as pool, pool.lease(float(sys.argv[2])):
        print("leased", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


async def many(options: Options) -> list[Row]:
    """All at once: how long they take to come up, and what one costs."""
    began = time.monotonic()
    async with LocalPool(options, name=NAME) as pool:
        up = time.monotonic() - began
        free = _memory_free()
        leases = [await pool.acquire(600, 60) for _ in range(options.size)]
        acted = await asyncio.gather(*(pool.backend(lease).act(CLICK) for lease in leases))
        pss = [_pss(lease.desktop) for lease in leases]
        health = await pool.health()
        assert health["leased"] == options.size
        return [
            (f"{options.size} leased {options.session} desktops", "", f"all answer: {all(one.ok for one in acted)}"),
            (f"{options.size + options.spares} desktops up", "", f"{up:.1f} s"),
            ("memory of a desktop, its own part (PSS)", "", f"{statistics.mean(pss) / 1024:.0f} MiB"),
            ("memory left then", "", f"{free // 1024} MiB"),
        ]


async def leases(session: str, rounds: int, isolation: str = "auto") -> list[Row]:
    """How long a lease takes."""
    with_spare, without = [], []
    async with LocalPool(Options(1, 1, session, isolation=isolation), name=NAME) as pool:
        for _ in range(rounds):
            while not (await pool.health())["hosts"][0]["ready"]:
                await pool.host.change()
            with_spare.append(await _timed(lambda: _lease(pool)))
    async with LocalPool(Options(1, 0, session, isolation=isolation), name=NAME) as pool:
        await _lease(pool)
        for _ in range(max(3, rounds // 3)):
            without.append(await _timed(lambda: _lease(pool)))
    return [
        ("lease when a spare is there, p50", "50 ms", f"{statistics.median(with_spare) * 1000:.1f} ms"),
        ("lease when none is, p50", "2.5 s", f"{statistics.median(without):.2f} s"),
    ]


async def recoveries(session: str) -> list[Row]:
    """How long until one can go on when something was killed."""
    service = await asyncio.to_thread(start_service, NAME, Options(1, 1, session))
    rows: list[Row] = []
    try:
        async with SocketPool(NAME) as pool:
            async with pool.lease() as desktop:
                assert desktop.current is not None
                facts = _facts(desktop.current.desktop)
                os.kill(facts["processes"]["X server"][0], signal.SIGKILL)
                rows.append(("X server killed", "1 s", f"{await _timed(lambda: _go_on(desktop)):.2f} s"))
            client = subprocess.Popen(
                [sys.executable, "-c", _CLIENT, NAME, str(TTL)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            assert client.stdout is not None
            await asyncio.to_thread(client.stdout.readline)
            client.kill()
            client.wait()
            rows.append((f"client killed, ttl {TTL:g} s", "ttl + 1 s", f"{await _timed(lambda: _lease(pool)):.2f} s"))
            os.kill(service["pid"], signal.SIGKILL)
            began = time.monotonic()
            await asyncio.to_thread(start_service, NAME, Options(1, 1, session))
            await _lease(pool)
            rows.append(("host killed, started again by hand", "3 s", f"{time.monotonic() - began:.2f} s"))
    finally:
        await end_service(NAME)
    return rows


async def on_ray(session: str) -> list[Row]:
    """The same on a cluster of two nodes on this machine, and what the manager can do."""
    import ray
    from ray.cluster_utils import Cluster

    from deskhand.fleet.ray import RayPool
    from deskhand.fleet.ray.cluster import NAMESPACE, host_name
    from deskhand.fleet.ray.up import end_fleet, start_fleet

    node = {"num_cpus": 1, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    rows: list[Row] = []
    try:
        second = cluster.add_node(**node)
        ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False)
        began = time.monotonic()
        await start_fleet(NAME, cluster.address, Options(1, 1, session))
        rows.append(("2 hosts on Ray, 4 desktops up", "", f"{time.monotonic() - began:.1f} s"))
        async with RayPool(NAME, cluster.address) as pool:
            times = []
            for _ in range(20):
                while sum(host["ready"] for host in (await pool.health())["hosts"]) < 2:
                    await asyncio.sleep(0.05)
                times.append(await _timed(lambda: _lease(pool)))
            rows.append(("lease over Ray with a spare, p50", "50 ms", f"{statistics.median(times) * 1000:.1f} ms"))
            rows.append(("requests that the manager answers", "", f"{await _rate(pool):.0f} a second"))
            async with pool.lease() as desktop:
                assert desktop.current is not None
                pid = int(_facts(desktop.current.desktop)["env"][HOST_MARK].split(":")[-2])
                host = desktop.current.host
                os.kill(pid, signal.SIGKILL)
                rows.append(("host actor killed: its machine leases again", "3 s",
                             f"{await _timed(lambda: _from(pool, host)):.2f} s"))  # fmt: skip
            mine = host_name(NAME, second.node_id)
            lease = await _keep_from(pool, mine)
            cluster.remove_node(second, allow_graceful=False)
            rows.append(("node killed: its client knows, and has another desktop", "30 s",
                         f"{await _timed(lambda: _move(pool, lease)):.2f} s"))  # fmt: skip
        await end_fleet(NAME, cluster.address)
    finally:
        ray.shutdown()
        cluster.shutdown()
    return rows


async def _rate(pool: Any) -> float:
    """Requests for a lease that can not be had: the manager's own work, without a desktop's."""
    held = await pool.acquire_many(2, wait=5)
    began, count = time.monotonic(), 1000

    async def ask() -> None:
        with contextlib.suppress(DeskhandError):
            await pool.acquire(60, 0.0)

    await asyncio.gather(*(ask() for _ in range(count)))
    rate = count / (time.monotonic() - began)
    for lease in held:
        await pool.release(lease)
    return rate


async def _from(pool: Pool, host: str) -> None:
    """A lease of that host, which has lost all it had."""
    lease = await _keep_from(pool, host)
    await pool.release(lease)


async def _keep_from(pool: Pool, host: str) -> Any:
    others = []
    while True:
        try:
            lease = await pool.acquire(60, 1.0)
        except DeskhandError:
            continue
        if lease.host == host:
            break
        others.append(lease)
    for other in others:
        await pool.release(other)
    return lease


async def _move(pool: Pool, lease: Any) -> None:
    while True:
        try:
            await pool.backend(lease).act(CLICK)
        except DeskhandError:
            break
    await _lease(pool)


async def _lease(pool: Pool) -> None:
    lease = await pool.acquire(60, 120)
    await pool.release(lease)


async def _go_on(desktop: Any) -> None:
    while True:
        try:
            if (await desktop.act(CLICK)).ok:
                await asyncio.sleep(0)
        except DeskhandError:
            break
    await desktop.reset()
    await desktop.act(CLICK)


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.monotonic()
    await work()
    return time.monotonic() - began


def _facts(desktop: str) -> dict[str, Any]:
    return next(facts for facts in read_desktops() if facts["id"] == desktop)


def _pss(desktop: str) -> int:
    """KiB of the memory of a desktop's processes; what several share counts in parts (proc(5), smaps_rollup)."""
    total = 0
    for pid in processes_of(desktop):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total


def _memory_free() -> int:
    """KiB (proc(5), MemAvailable)."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--session", default="openbox")
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ray", action="store_true", help="on two local Ray nodes too")
    parser.add_argument("--isolation", default="auto", help="see deskhand fleet up --help")
    parser.add_argument("--brief", action="store_true", help="nothing of what is killed")
    given = parser.parse_args(arguments)
    rows = asyncio.run(many(Options(given.size, 1, given.session, isolation=given.isolation)))
    rows += asyncio.run(leases(given.session, given.rounds, given.isolation))
    if not given.brief:
        rows += asyncio.run(recoveries(given.session))
    if given.ray:
        rows += asyncio.run(on_ray(given.session))
    print("| | at most | measured |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
