"""Real trials on desktops of a fleet on Ray: four at once share two desktops, one on each of two nodes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("ray", reason="Ray is not installed beside Harbor: pip install 'deskhand[fleet]'")

from tests.harbor.pooled import make_pooled_task
from tests.harbor.scripted import DONE
from tests.harbor.trials import Job, needs_sandbox, run_job

pytestmark = [pytest.mark.long, needs_sandbox]
TRIALS, AT_ONCE, DESKTOPS = 6, 4, 2


class Fleet(NamedTuple):
    name: str
    address: str

    def run(self, place: Path, task: Path, *options: str, **more: Any) -> Job:
        environment = ["--env", "deskhand.fleet.harbor:PoolEnvironment"]
        pool = ["--ek", f"pool={self.name}", "--ek", f"ray={self.address}"]
        return run_job(place, *environment, *pool, *options, task=task, **more)

    def detail(self) -> dict[str, Any]:
        from deskhand.fleet.ray import RayPool

        async def asked() -> dict[str, Any]:
            async with RayPool(self.name, self.address) as pool:
                return await pool.detail()

        return asyncio.run(asked())


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """One desktop and one spare on each node, as ``deskhand fleet up --ray ADDRESS --isolation bwrap`` starts them."""
    from deskhand.fleet.options import Options
    from deskhand.fleet.ray.up import end_fleet, start_fleet
    from tests.fleet.ray.clusters import two_nodes

    name = f"harbor-{uuid.uuid4().hex[:8]}"
    with two_nodes() as cluster:
        options = Options(size=1, spares=1, screen=(1024, 768), isolation="bwrap", home_size=256)
        asyncio.run(start_fleet(name, cluster.address, options))
        yield Fleet(name, cluster.address)
        assert asyncio.run(end_fleet(name, cluster.address)) == DESKTOPS


class Held(NamedTuple):
    """A lease, as the host that gave it tells of it: on which desktop, from when to when."""

    desktop: tuple[str, str]
    holder: str
    begin: float
    end: float


def leases(detail: dict[str, Any]) -> list[Held]:
    """Those of trials that are over."""
    found = []
    for host in detail["hosts"]:
        open_ones: dict[str, dict[str, Any]] = {}
        for event in host["events"]:
            if event["what"] == "given":
                assert event["display"] not in open_ones, "it is given to a second one before the first has ended"
                open_ones[event["display"]] = event
            elif event["what"] in ("released", "expired", "reset"):
                begun = open_ones.pop(event["display"])
                assert event["holder"] == begun["holder"]
                found.append(Held((host["name"], event["display"]), event["holder"], begun["time"], event["time"]))
    return [lease for lease in found if lease.holder.startswith("harbor:")]


def at_once(held: list[Held]) -> int:
    """How many leases stood at the same moment, at most."""
    return max(sum(one.begin <= other.begin < one.end for one in held) for other in held)


def test_trials_at_once_share_the_desktops_of_a_cluster(fleet: Fleet, tmp_path: Path) -> None:
    task = make_pooled_task(tmp_path / "task")
    job = fleet.run(tmp_path, task, "--n-attempts", str(TRIALS), "--n-concurrent", str(AT_ONCE))
    assert [(trial.reward, trial.error) for trial in job.trials] == [(1.0, None)] * TRIALS, job.output[-3000:]
    homes = {(trial.place / "verifier" / "desktop.txt").read_text().split()[0] for trial in job.trials}
    assert len(homes) == TRIALS, "each trial has a HOME, and so a desktop, of its own"
    detail = fleet.detail()
    held = leases(detail)
    assert len({lease.holder for lease in held}) == len(held) == TRIALS
    assert at_once(held) == DESKTOPS, "both at once, and never more than there are"
    assert {lease.desktop[0] for lease in held} == {host["name"] for host in detail["hosts"]}, "on both nodes"
    assert (detail["leased"], detail["given"]) == (0, TRIALS), "each was given back"

    # A trial that does nothing gets nothing, though what is wanted was done on the desktops before.
    (idle,) = fleet.run(tmp_path / "idle", task, replies=[DONE, DONE]).trials
    assert (idle.reward, idle.error) == (0.0, None)


def test_a_fleet_that_is_not_there_is_named(fleet: Fleet, tmp_path: Path) -> None:
    nowhere = Fleet("nowhere", fleet.address)
    (trial,) = nowhere.run(tmp_path, make_pooled_task(tmp_path / "task"), "--ek", "wait=1").trials
    assert trial.reward is None
    assert trial.error is not None
    assert "there is no 'nowhere/manager' on this Ray cluster: start a fleet with: deskhand fleet up" in trial.error
