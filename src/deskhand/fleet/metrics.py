"""What a fleet tells Prometheus (Exposition formats, Text-based format); each host is a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from deskhand.computerd.metrics import Labels, braces, head, number, process_gauges

#: What a desktop can be; each is told, also when there is none.
STATES = ("leased", "died", "ready", "starting", "ending")
Sample = tuple[Labels, float]


def text(health: dict[str, Any], began: float) -> str:
    """All of it, from the detailed health of a pool; ``began`` is when this process started, epoch seconds."""
    hosts = health["hosts"]
    lines: list[str] = []
    _plain(lines, "deskhand_fleet_ok", "gauge", "Whether every host is well.", [((), float(health["ok"]))])
    for name, help_text, key in _GAUGES:
        _plain(lines, name, "gauge", help_text, _of_hosts(hosts, key))
    _plain(lines, "deskhand_fleet_desktops", "gauge", "Desktops, by what they are.", _states(hosts))
    waiting = [(_labels("manager"), float(health["waiting"]))] if "manager" in health else _of_hosts(hosts, "waiting")
    _plain(lines, "deskhand_fleet_leases_waiting", "gauge", "Clients that wait for a lease.", waiting)
    for name, help_text, key in _COUNTERS:
        _plain(lines, name, "counter", help_text, _of_hosts(hosts, key))
    refusals = "Who got no lease in time, and new desktops that are not like the template."
    _plain(lines, "deskhand_fleet_refusals_total", "counter", refusals, _refusals(health))
    recoveries = "What was recovered from."
    _plain(lines, "deskhand_fleet_recoveries_total", "counter", recoveries, _recoveries(health))
    _histogram(lines, "deskhand_fleet_lease_seconds", "Seconds that leases lasted.", hosts, "lease_seconds")
    gives = [{"name": "manager", **health["manager"]}] if "manager" in health else hosts
    _histogram(lines, "deskhand_fleet_wait_seconds", "Seconds until a lease was given.", gives, "wait_seconds")
    for name, (help_text, value) in process_gauges(began).items():
        _plain(lines, name, "counter" if name.endswith("_total") else "gauge", help_text, [((), value)])
    return "\n".join(lines) + "\n"


_GAUGES = (
    ("deskhand_fleet_size", "Desktops that can be leased at once.", "size"),
    ("deskhand_fleet_spares", "More that are kept ready.", "spares"),
    ("deskhand_fleet_leases_held", "Leases that are held.", "leased"),
)
_COUNTERS = (
    ("deskhand_fleet_leases_total", "Leases given.", "leases"),
    ("deskhand_fleet_resets_total", "Resets by who had the lease.", "resets"),
    ("deskhand_fleet_starts_total", "Desktops that came up.", "started"),
    ("deskhand_fleet_start_failures_total", "Desktops that did not come up, or were refused.", "failed"),
    ("deskhand_fleet_fencing_refusals_total", "Calls that were refused or stopped, their lease being over.", "fenced"),
)
#: Of a host: what was recovered from, and the count of it.
_CAUSES = (
    ("desktop_died", "died"),
    ("lease_expired", "expired"),
    ("start_failed", "retried"),
    ("host_killed", "orphans"),
)


def _states(hosts: list[dict[str, Any]]) -> Iterable[Sample]:
    for host in hosts:
        if "desktops" in host:
            count = Counter(str(one["state"]) for one in host["desktops"])
            for state in STATES:
                yield _labels(host["name"], state=state), float(count[state])


def _refusals(health: dict[str, Any]) -> Iterable[Sample]:
    # Before hosts stands a manager, or not: who waits in vain is counted where they wait.
    waits = [{"name": "manager", **health["manager"]}] if "manager" in health else health["hosts"]
    for reason, key, those in (("none_free", "none_free", waits), ("not_like_template", "refused", health["hosts"])):
        for host in those:
            if key in host:
                yield _labels(host["name"], reason=reason), float(host[key])


def _recoveries(health: dict[str, Any]) -> Iterable[Sample]:
    for host in health["hosts"]:
        for cause, key in _CAUSES:
            if key in host:
                yield _labels(host["name"], cause=cause), float(host[key])
    for cause, count in sorted(health.get("manager", {}).get("recoveries", {}).items()):
        yield _labels("manager", cause=cause), float(count)


def _of_hosts(hosts: list[dict[str, Any]], key: str) -> Iterable[Sample]:
    return ((_labels(host["name"]), float(host[key])) for host in hosts if key in host)


def _labels(host: str, **more: str) -> Labels:
    return (("host", host), *more.items())


def _plain(lines: list[str], name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> None:
    head(lines, name, help_text, kind)
    lines += [f"{name}{braces(labels)} {number(value)}" for labels, value in samples]


def _histogram(lines: list[str], name: str, help_text: str, hosts: list[dict[str, Any]], key: str) -> None:
    head(lines, name, help_text, "histogram")
    for host in hosts:
        if key not in host:
            continue
        told, labels = host[key], _labels(host["name"])
        for bound, count in zip((*(f"{one:g}" for one in told["le"]), "+Inf"), told["counts"], strict=True):
            lines.append(f"{name}_bucket{braces((*labels, ('le', bound)))} {count}")
        lines.append(f"{name}_sum{braces(labels)} {number(told['sum'])}")
        lines.append(f"{name}_count{braces(labels)} {told['counts'][-1]}")
