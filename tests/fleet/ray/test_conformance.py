"""A desktop that is leased from a host on Ray passes the conformance suite."""

from __future__ import annotations

from typing import Any

import pytest

ray = pytest.importorskip("ray")

from deskhand.fleet import LeasedDesktop, Options, fingerprint  # noqa: E402
from deskhand.fleet.host import Host  # noqa: E402
from deskhand.fleet.pool import Lease  # noqa: E402
from deskhand.fleet.ray.cluster import ask  # noqa: E402
from deskhand.fleet.ray.host import HostActor  # noqa: E402
from deskhand.fleet.ways import Answer, HostPool, Way  # noqa: E402
from deskhand.testing import XServer  # noqa: E402
from deskhand.testing.conformance import DesktopConformance, MakeBackend  # noqa: E402
from tests.fleet.makers import Given  # noqa: E402


class OneDisplay(HostActor):
    """A host whose one desktop is a display that is there already, and is not looked at."""

    def __init__(self, server: XServer) -> None:
        fingerprint.take_template = lambda made: {}
        fingerprint.differences = lambda made, template: []
        options = Options(size=1, spares=0)
        super().__init__("one display", options.as_dict())
        self._host = Host(options, "one display", Given(server))


class PoolOfOne(HostPool):
    """Asks that host itself, as there is nothing to choose from."""

    def __init__(self, server: XServer) -> None:
        self._actor = ray.remote(OneDisplay).options(num_cpus=0, max_concurrency=100).remote(server)

    def way(self, lease: Lease | None) -> Way:
        async def way(method: str, **arguments: Any) -> tuple[Answer, bytes | None]:
            return await ask(self._actor, method, arguments)

        return way

    async def aclose(self) -> None:
        ray.kill(self._actor)


class OverRay(LeasedDesktop):
    def __init__(self, server: XServer) -> None:
        self._own = PoolOfOne(server)
        super().__init__(self._own, 60, 30, None)

    async def aclose(self) -> None:
        await super().aclose()
        await self._own.aclose()


@pytest.mark.long
@pytest.mark.usefixtures("cluster")
class TestRayPool(DesktopConformance):
    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return OverRay

    def test_a_client_that_is_killed_leaves_nothing_pressed(self) -> None:  # type: ignore[override]
        pytest.skip("Ray can not be used in a forked process; clients are killed in test_random_kills")
