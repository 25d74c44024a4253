"""A fleet on Ray: one host on each machine, and one manager that chooses among them.

- ``host``     a host as an actor
- ``manager``  the actor that leases are asked of
- ``pool``     ``RayPool``
- ``cluster``  names, how calls are made, and what Ray's errors mean here
- ``connecting``  connect to a cluster, or say why that can not be
- ``up``       start a fleet on a cluster, and end it
"""

from deskhand.extras import needs

with needs("The fleet on Ray", "fleet", "ray"):
    import ray as _ray  # noqa: F401

from .pool import RayPool

__all__ = ["RayPool"]
