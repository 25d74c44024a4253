"""A Ray cluster of two nodes on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Each node, with little shared memory.
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


@contextmanager
def two_nodes() -> Iterator[Any]:
    """``ray.cluster_utils.Cluster``, to which this process is connected; the second node offers ``second``."""
    import ray
    from ray.cluster_utils import Cluster

    from deskhand.fleet.ray.cluster import NAMESPACE

    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        cluster.add_node(**NODE, resources={"second": 1})
        ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
