"""A fleet of 1,000 machines, on paper: ``python -m bench.fleet_simulation --chart FILE.png``.

A discrete-event simulation with a seed. What is assumed stands in ``Assumptions``; what the code of the fleet does is
done here too: a manager that chooses a host and queues, hosts that start a fresh desktop behind their spares after each
lease, and renewals that go to the hosts and not to the manager. It answers whether the numbers that are asked for hold
(95 % in use, 3,000 steps a second, 0.1 % of episodes lost to machines), and where each of them breaks.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

PICTURE_BYTES = 275_000


@dataclass(frozen=True)
class Assumptions:
    """Times in seconds.

    ``manager_rate``: leases a second that the manager gives at most, each asked for alone; of those that are asked for
    together (``bulk`` at most) each further one takes it ``more_s``, for the call to its host. ``reset_s`` is XFCE's,
    with a spread of a fifth; ``starts`` run at once on a machine. A machine fails once in ``mtbf_s`` and is back after
    ``repair_s``; its clients notice after ``notice_s``. ``between_s`` is what a client does between two episodes.
    """

    machines: int = 1000
    desktops: int = 16
    spares: int = 1
    steps: float = 30.0
    step_s: float = 5.0
    reset_s: float = 2.1
    starts: int = 4
    manager_rate: float = 500.0
    way_s: float = 0.002
    mtbf_s: float = 30 * 86400.0
    repair_s: float = 300.0
    notice_s: float = 10.0
    between_s: float = 0.5
    bulk: int = 64
    more_s: float = 0.001
    seconds: float = 1200.0
    warm_up_s: float = 300.0
    seed: int = 1


@dataclass(frozen=True)
class Found:
    """What a run came to, after the warm-up. ``in_use`` and ``lost`` are parts of one."""

    in_use: float
    steps_a_second: float
    leases_a_second: float
    lost: float
    wait_p50_s: float
    wait_p99_s: float
    herd_s: float
    gigabits: float


class Simulation:
    """One run. Events are (time, number, what), in the order of their numbers when they are at once."""

    def __init__(self, assumptions: Assumptions) -> None:
        self.a = assumptions
        self.random = random.Random(assumptions.seed)
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        machines = assumptions.machines
        self.ready = [assumptions.desktops + assumptions.spares] * machines
        self.leased: list[set[int]] = [set() for _ in range(machines)]
        self.to_start = [0] * machines
        self.starting = [0] * machines
        self.up = [True] * machines
        self.life = [0] * machines
        self.free: list[tuple[int, int]] = [(-self.ready[machine], machine) for machine in range(machines)]
        heapq.heapify(self.free)
        self.waiting: deque[tuple[int, float]] = deque()
        self.at_manager: deque[tuple[int, float]] = deque()
        self.manager_busy = False
        self.in_use = 0
        self.episode: dict[int, int] = {}
        self._area = self._since = 0.0
        self.waits: list[float] = []
        self.episodes = self.lost = 0
        self.herd_s = 0.0
        self.had_one: set[int] = set()
        self.clients = machines * assumptions.desktops

    def run(self) -> Found:
        a = self.a
        for client in range(self.clients):
            self.at_manager.append((client, 0.0))
        self._serve()
        for machine in range(a.machines):
            self._after(self.random.expovariate(1 / a.mtbf_s), partial(self._fail, machine))
        while self._events and self._events[0][0] <= a.seconds:
            self.now, _, what = heapq.heappop(self._events)
            what()
        self.now = a.seconds
        self._account()
        span = a.seconds - a.warm_up_s
        in_use = self._area / span / self.clients
        steps = in_use * self.clients / a.step_s
        waits = sorted(self.waits) or [0.0]
        return Found(
            in_use=in_use,
            steps_a_second=steps,
            leases_a_second=len(self.waits) / span,
            lost=self.lost / max(1, self.episodes),
            wait_p50_s=waits[len(waits) // 2],
            wait_p99_s=waits[len(waits) * 99 // 100],
            herd_s=self.herd_s,
            gigabits=steps * PICTURE_BYTES * 8 / 1e9,
        )

    # -- the manager

    def _ask(self, client: int) -> None:
        self.at_manager.append((client, self.now))
        if not self.manager_busy:
            self._serve()

    def _serve(self) -> None:
        """One request at a time; those that came together (the herd of the start) are asked for in one."""
        if not self.at_manager:
            self.manager_busy = False
            return
        self.manager_busy = True
        together = min(self.a.bulk, len(self.at_manager)) if self.at_manager[0][1] == 0.0 else 1
        asked = [self.at_manager.popleft() for _ in range(together)]

        def served() -> None:
            for client, since in asked:
                if not self._give(client, since):
                    self.waiting.append((client, since))
            self._serve()

        self._after(self.random.expovariate(self.a.manager_rate) + (together - 1) * self.a.more_s, served)

    def _give(self, client: int, since: float) -> bool:
        """From the machine that has most ready."""
        a = self.a
        while self.free:
            count, machine = self.free[0]
            able = self.up[machine] and self.ready[machine] and len(self.leased[machine]) < a.desktops
            if -count == self.ready[machine] and able:
                break
            heapq.heappop(self.free)
        else:
            return False
        heapq.heappop(self.free)
        self.ready[machine] -= 1
        self._offer(machine)
        self.leased[machine].add(client)
        self._after(2 * a.way_s, lambda: self._begin(client, machine, since, self.life[machine]))
        return True

    def _offer(self, machine: int) -> None:
        if self.up[machine] and self.ready[machine]:
            heapq.heappush(self.free, (-self.ready[machine], machine))

    # -- an episode

    def _begin(self, client: int, machine: int, since: float, life: int) -> None:
        if self.life[machine] != life:
            return  # the machine failed while the answer was on its way; its failure asks again
        self._account()
        self.in_use += 1
        if self.now >= self.a.warm_up_s:
            self.waits.append(self.now - since)
        if client not in self.had_one:
            self.had_one.add(client)
            if len(self.had_one) == self.clients:
                self.herd_s = self.now
        number = self.episode[client] = self.episode.get(client, 0) + 1
        # The sum of the steps' times, each of which has an exponential part and a fixed one.
        length = sum(0.5 * self.a.step_s + self.random.expovariate(2 / self.a.step_s) for _ in range(self._steps()))
        self._after(length, lambda: self._end(client, machine, life, number))

    def _steps(self) -> int:
        """Between half and one and a half times the mean; in the first round any part of that, so that the ends of the
        first episodes are not all at once."""
        steps = self.random.uniform(0.5, 1.5) * self.a.steps
        return max(1, round(steps * (self.random.random() if self.now < self.a.warm_up_s / 4 else 1)))

    def _end(self, client: int, machine: int, life: int, number: int) -> None:
        if self.life[machine] != life or self.episode[client] != number:
            return
        self._account()
        self.in_use -= 1
        self.episodes += self.now >= self.a.warm_up_s
        self.leased[machine].discard(client)
        self.to_start[machine] += 1
        self._start(machine)
        self._offer(machine)
        self._let_in()
        self._after(self.random.expovariate(1 / self.a.between_s), lambda: self._ask(client))

    # -- a machine

    def _start(self, machine: int) -> None:
        while self.to_start[machine] and self.starting[machine] < self.a.starts and self.up[machine]:
            self.to_start[machine] -= 1
            self.starting[machine] += 1
            seconds = max(0.2, self.random.gauss(self.a.reset_s, self.a.reset_s / 5))
            life = self.life[machine]
            self._after(seconds, partial(self._started, machine, life))

    def _started(self, machine: int, life: int) -> None:
        if self.life[machine] != life:
            return
        self.starting[machine] -= 1
        self.ready[machine] += 1
        self._offer(machine)
        self._start(machine)
        self._let_in()

    def _let_in(self) -> None:
        while self.waiting and self._give(*self.waiting[0]):
            self.waiting.popleft()

    def _fail(self, machine: int) -> None:
        self._account()
        self.life[machine] += 1
        self.up[machine] = False
        lost, self.leased[machine] = self.leased[machine], set()
        self.ready[machine] = self.starting[machine] = 0
        self.to_start[machine] = self.a.desktops + self.a.spares
        self.in_use -= len(lost)
        if self.now >= self.a.warm_up_s:
            self.lost += len(lost)
            self.episodes += len(lost)
        for client in sorted(lost):
            self.episode[client] = self.episode.get(client, 0) + 1
            self._after(self.a.notice_s, partial(self._ask, client))
        self._after(self.a.repair_s, lambda: self._repair(machine))
        self._after(self.random.expovariate(1 / self.a.mtbf_s) + self.a.repair_s, lambda: self._fail(machine))

    def _repair(self, machine: int) -> None:
        self.up[machine] = True
        self._start(machine)

    # -- time

    def _account(self) -> None:
        if self.now > self.a.warm_up_s:
            self._area += self.in_use * (self.now - max(self._since, self.a.warm_up_s))
        self._since = self.now

    def _after(self, seconds: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, what))


#: What is varied: the field, its values, and the number it is held against (a name of ``Found``, the limit, is more
#: better).
Sweep = tuple[str, Sequence[float], str, float, bool]
SWEEPS: tuple[Sweep, ...] = (
    ("manager_rate", (60, 80, 100, 105, 110, 120, 150, 250, 500), "in_use", 0.95, True),
    ("steps", (2, 4, 6, 8, 10, 15, 20, 30), "in_use", 0.95, True),
    ("reset_s", (0.3, 2.1, 5, 8, 12, 20, 30), "in_use", 0.95, True),
    ("mtbf_s", tuple(hours * 3600 for hours in (6, 12, 24, 36, 48, 96, 240, 720)), "lost", 0.001, False),
)
WORDS = {
    "manager_rate": "leases a second that the manager can give",
    "steps": "steps of an episode (of 5 s each)",
    "reset_s": "seconds to make a fresh desktop, one spare a machine",
    "mtbf_s": "hours between two failures of a machine",
    "in_use": "desktops in use",
    "lost": "episodes lost to machines",
}


def study(assumptions: Assumptions, tell: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """The usual case, one pod for each episode beside it, the start, and every sweep with where it breaks."""

    def one(**changes: Any) -> dict[str, Any]:
        tell(", ".join(f"{name}={value:g}" for name, value in changes.items()) or "the usual case")
        return asdict(Simulation(replace(assumptions, **changes)).run())

    usual = one(seconds=4 * assumptions.seconds)  # machines seldom fail
    # A scheduler that makes a pod for each episode: about 70 a second, and the pod's start is waited for.
    pods = one(manager_rate=70.0, spares=0, reset_s=20.0, bulk=1)
    herd = {str(bulk): one(bulk=bulk, seconds=600.0, warm_up_s=500.0)["herd_s"] for bulk in (1, 64)}
    sweeps = []
    for field, values, against, limit, more in SWEEPS:
        span = 4.0 if field == "mtbf_s" else 1.0  # failures are rare
        points = []
        for value in values:
            changes: dict[str, Any] = {field: int(value) if field == "spares" else value}
            points.append((value, one(**changes, seconds=assumptions.seconds * span)[against]))
        holds = [value for value, found in points if (found >= limit) == more]
        sweeps.append({"field": field, "against": against, "limit": limit, "points": points, "holds": holds})
    return {"assumptions": asdict(assumptions), "usual": usual, "pods": pods, "herd_s": herd, "sweeps": sweeps}


def table(study: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    usual, pods = study["usual"], study["pods"]
    rows = [
        ("desktops in use", "at least 95 %", f"{usual['in_use']:.1%}", f"{pods['in_use']:.1%}"),
        ("steps a second", "at least 3,000", f"{usual['steps_a_second']:,.0f}", f"{pods['steps_a_second']:,.0f}"),
        ("leases a second", "about 107", f"{usual['leases_a_second']:.0f}", f"{pods['leases_a_second']:.0f}"),
        ("episodes lost to machines", "at most 0.1 %", f"{usual['lost']:.3%}", f"{pods['lost']:.3%}"),
        ("wait for a lease, p50", "", f"{usual['wait_p50_s'] * 1000:.0f} ms", f"{pods['wait_p50_s']:.0f} s"),
        ("wait for a lease, p99", "", f"{usual['wait_p99_s'] * 1000:.0f} ms", f"{pods['wait_p99_s']:.0f} s"),
        ("pictures over the network", "6.6 Gb/s", f"{usual['gigabits']:.1f} Gb/s", f"{pods['gigabits']:.1f} Gb/s"),
    ]
    lines = ["| | must be | resets in place | a pod for each episode |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", "| what is varied | holds at | breaks at |", "|---|---|---|"]
    for sweep in study["sweeps"]:
        scale = 3600 if sweep["field"] == "mtbf_s" else 1
        good = [value / scale for value in sweep["holds"]]
        bad = [value / scale for value, _ in sweep["points"] if value not in sweep["holds"]]
        lines.append(f"| {WORDS[sweep['field']]} | {_list(good)} | {_list(bad)} |")
    return "\n".join(lines)


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "none of these"


def draw(study: dict[str, Any], path: Path) -> None:
    """Four charts, one for each sweep; the limit is a line, what breaks is red."""
    from PIL import Image, ImageDraw, ImageFont

    width, height, left, top, plot_w, plot_h = 1400, 900, 80, 90, 560, 280
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    font, bold = ImageFont.load_default(14), ImageFont.load_default(18)
    pen.text(
        (20, 14), "16,000 desktops on 1,000 machines: where it breaks (line: the limit; red: broken)", "#222", bold
    )
    for number, sweep in enumerate(study["sweeps"]):
        x0, y0 = left + number % 2 * 680, top + number // 2 * 420
        points, limit, log = sweep["points"], sweep["limit"], sweep["field"] == "mtbf_s"
        scale = 3600 if log else 1
        low, high = (0.5, 1.0) if sweep["against"] == "in_use" else (0.0, max(0.004, max(y for _, y in points)))

        def y_of(value: float, y0: int = y0, low: float = low, high: float = high) -> float:
            return y0 + plot_h * (1 - (min(max(value, low), high) - low) / (high - low))

        pen.text((x0, y0 - 26), f"{WORDS[sweep['against']]}, by {WORDS[sweep['field']]}", "#222", font)
        pen.rectangle((x0, y0, x0 + plot_w, y0 + plot_h), outline="#bbb")
        pen.line((x0, y_of(limit), x0 + plot_w, y_of(limit)), "#1f5fa8", 2)
        pen.text((x0 - 6, y_of(limit)), f"{limit:.1%}", "#1f5fa8", font, anchor="rm")
        for value in (low, high):
            pen.text((x0 - 6, y_of(value)), f"{value:.1%}", "#222", font, anchor="rm")
        places = [x0 + 30 + (plot_w - 60) * index / max(1, len(points) - 1) for index in range(len(points))]
        for index, (value, found) in enumerate(points):
            if index:
                before = (places[index - 1], y_of(points[index - 1][1]))
                pen.line((*before, places[index], y_of(found)), "#999", 2)
            colour = "#4c9a5b" if value in sweep["holds"] else "#c4483c"
            x, y = places[index], y_of(found)
            pen.ellipse((x - 5, y - 5, x + 5, y + 5), colour)
            pen.text((x, y0 + plot_h + 6), f"{value / scale:g}", "#222", font, anchor="ma")
    image.save(path, "PNG", optimize=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet_simulation", description=__doc__)
    parser.add_argument("--chart", type=Path, metavar="FILE.png")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--machines", type=int, default=Assumptions.machines)
    parser.add_argument("--seconds", type=float, default=Assumptions.seconds, help="of a run, on its own clock")
    parser.add_argument("--seed", type=int, default=Assumptions.seed)
    given = parser.parse_args(arguments)
    if given.machines < 1 or given.seconds <= 10:
        parser.error("it takes 1 machine or more, and more than 10 seconds")
    assumptions = Assumptions(machines=given.machines, seconds=given.seconds, seed=given.seed)
    assumptions = replace(assumptions, warm_up_s=min(assumptions.warm_up_s, given.seconds / 3))
    found = study(assumptions, lambda line: print(f"simulating: {line}", file=sys.stderr))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    if given.chart is not None:
        draw(found, given.chart)
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
