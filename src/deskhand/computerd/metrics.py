"""What is counted, in Prometheus' text format (Exposition formats, Text-based format)."""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Upper bounds of the buckets, in seconds.
_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """The counters of one daemon."""

    def __init__(self) -> None:
        self._began = time.time()
        self._counts: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self._buckets: dict[Labels, list[int]] = defaultdict(lambda: [0] * (len(_BUCKETS) + 1))
        self._sums: dict[Labels, float] = defaultdict(float)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.count("deskhand_requests_total", method=method, route=route, status=str(status))
        labels = (("route", route),)
        self._sums[labels] += seconds
        buckets = self._buckets[labels]
        for index, bound in enumerate(_BUCKETS):
            buckets[index] += seconds <= bound
        buckets[-1] += 1

    def batch(self, results: Iterable[dict[str, object]], settle: str) -> None:
        for result in results:
            self.count("deskhand_actions_total", action=str(result["action"]), status=str(result["status"]))
        self.count("deskhand_settles_total", outcome=settle)

    def count(self, name: str, **labels: str) -> None:
        self._counts[name][tuple(sorted(labels.items()))] += 1

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """Everything; ``gauges`` are what is known only now: what each means, and its value."""
        lines: list[str] = []
        for name, help_text in _HELP.items():
            head(lines, name, help_text, "counter")
            lines += [f"{name}{braces(labels)} {number(value)}" for labels, value in sorted(self._counts[name].items())]
        name = "deskhand_request_seconds"
        head(lines, name, "Seconds until a request was answered.", "histogram")
        for labels, buckets in sorted(self._buckets.items()):
            for bound, count in zip((*(f"{one:g}" for one in _BUCKETS), "+Inf"), buckets, strict=True):
                lines.append(f"{name}_bucket{braces((*labels, ('le', bound)))} {count}")
            lines.append(f"{name}_sum{braces(labels)} {self._sums[labels]:.6f}")
            lines.append(f"{name}_count{braces(labels)} {buckets[-1]}")
        for gauge, (help_text, value) in {**gauges, **process_gauges(self._began)}.items():
            head(lines, gauge, help_text, "counter" if gauge.endswith("_total") else "gauge")
            lines.append(f"{gauge} {number(value)}")
        return "\n".join(lines) + "\n"


def process_gauges(began: float) -> dict[str, tuple[str, float]]:
    """What every process of ours tells of itself; ``began`` is when it started, seconds since the epoch."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return {
        "process_cpu_seconds_total": ("Processor time, in seconds.", usage.ru_utime + usage.ru_stime),
        "process_resident_memory_bytes": ("Resident memory.", pages * os.sysconf("SC_PAGE_SIZE")),
        "process_open_fds": ("Open descriptors.", len(os.listdir("/proc/self/fd"))),
        "process_start_time_seconds": ("When it started, since the epoch.", began),
    }


_HELP = {
    "deskhand_requests_total": "Requests answered.",
    "deskhand_actions_total": "Actions of batches, by what they came to.",
    "deskhand_settles_total": "Batches, by how the screen ended.",
    "deskhand_problems_total": "Requests answered with a problem, by its kind.",
}


def head(lines: list[str], name: str, help_text: str, kind: str) -> None:
    """What stands before a metric's samples."""
    lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]


def number(value: float) -> str:
    """All of its digits: a counter that is rounded stands still."""
    return str(int(value)) if value == int(value) else repr(value)


def braces(labels: Labels) -> str:
    """The labels of a sample; nothing when there are none."""

    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels) + "}" if labels else ""
