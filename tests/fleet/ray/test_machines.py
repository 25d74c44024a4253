"""A fleet on some machines of a cluster: those that offer the resource it asks for."""

from __future__ import annotations

from typing import Any

import pytest

ray = pytest.importorskip("ray")

from deskhand.errors import SetupError  # noqa: E402
from deskhand.fleet import Options  # noqa: E402
from deskhand.fleet.ray import RayPool  # noqa: E402
from deskhand.fleet.ray.cluster import host_name, machines  # noqa: E402
from deskhand.fleet.ray.up import end_fleet, start_fleet  # noqa: E402
from deskhand.testing.batches import run, until  # noqa: E402

pytestmark = pytest.mark.slow

NAME = "on-some"


def test_desktops_are_on_the_machines_that_offer_the_resource_alone(cluster: Any) -> None:
    (node,) = machines("second")
    assert node in machines()
    assert len(machines()) == 2
    told = run(start_fleet(NAME, cluster.address, Options(size=1, spares=0), resource="second"))
    try:
        assert told == {"name": NAME, "machines": 1, "desktops": 1}

        async def hosts() -> list[str]:
            async with RayPool(NAME, cluster.address) as pool:
                return [host["name"] for host in (await pool.health())["hosts"]]

        assert run(hosts()) == [host_name(NAME, node)]
        # An autoscaler sees that the machine is used.
        until(lambda: ray.available_resources().get("second", 0.0) < 1, "the host takes a little of the resource")
    finally:
        assert run(end_fleet(NAME, cluster.address)) == 1
    until(lambda: ray.available_resources().get("second", 0.0) == 1, "the resource is free again")


def test_a_resource_that_no_machine_offers_is_refused_at_once(cluster: Any) -> None:
    with pytest.raises(SetupError, match="no machine of this Ray cluster offers the resource 'desktops'"):
        run(start_fleet(NAME, cluster.address, Options(), resource="desktops"))
