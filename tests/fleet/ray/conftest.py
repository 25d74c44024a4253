"""A Ray cluster of two nodes on this machine, one for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("ray")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    from tests.fleet.ray.clusters import two_nodes

    with two_nodes() as cluster:
        yield cluster
