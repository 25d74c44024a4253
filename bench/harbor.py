"""Harbor's step: execs for each, actions a minute, and whether its picture is right, against the fixed wait and stock.

Usage: ``python -m bench.harbor [--desktop xfce|browser|terminal] [--rounds 1] [--json FILE]`` with a Python that has
Harbor (``.setup/harbor-newest``). The agent's own session on a desktop, and the steps of computer-1's loop: is it
alive, act, picture, picture to the request. To each exec 0, 100 or 300 ms are added, which is what cloud sandboxes
cost. Ways take turns on the same desktop; ``browser`` is the one that stock computer-1 starts for itself, with itself
as one of the ways. *Right*: the picture is the one three seconds later, caret-sized changes aside
(``bench.settle.measures``, *cosmetic*; the rule of ``bench.step``). Rows are over all kinds, and over those of the
recorded traces.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from PIL import Image

from bench.harbor_desktops import DESKTOPS, Action, Desktop
from bench.settle.measures import LATER, is_cosmetic
from bench.settle.scenarios import SCENARIOS
from bench.step import ADDED, differing_tiles
from deskhand.errors import DeskhandError

#: Seconds added to each exec.
DELAYS = (0.0, 0.1, 0.3)
HAND, FIXED, STOCK = "hand", "tools, fixed 2 s", "stock computer-1"
WAYS: dict[str, dict[str, Any]] = {
    HAND: {"driver": "hand"},
    FIXED: {"driver": "tools", "settle": "fixed", "settle_sec": 2.0},
    "tools, quiet": {"driver": "tools", "settle": "quiet"},
}
#: The kinds of action of the recorded traces.
TRACED = "recorded"
#: What stock computer-1 made last, before it is encoded with loss.
_STOCKS_PNG = "/tmp/computer_1-screenshots/latest.png"


class Sandbox:
    """Counts and slows the execs of an environment."""

    def __init__(self, environment: Any) -> None:
        self.execs = 0
        self.delay = 0.0
        run = environment.exec

        async def counted(command: str, **named: Any) -> Any:
            self.execs += 1
            await asyncio.sleep(self.delay)
            return await run(command=command, **named)

        environment.exec = counted


class Try(NamedTuple):
    kind: str
    seconds: float
    execs: int
    right: bool


@dataclass
class Way:
    """One way to take a step, and what its steps were."""

    agent: Any
    #: What its picture is called, and where it is then: a path in the environment, or a file here.
    called: str
    picture: str | Path
    tries: list[Try] = field(default_factory=list)

    async def step(self, action: Action) -> None:
        """One step of computer-1's loop."""
        from harbor.agents.computer_1.runtime import ComputerAction

        session = self.agent._session
        assert await session.is_session_alive()
        await session.execute(ComputerAction(**action))
        picture = await self.agent._screenshot_ref(await session.fetch_screenshot(self.called))
        assert picture.startswith("data:image/")


async def measure(
    name: str, rounds: int, ways: list[str], kinds: list[str] | None = None, later: float = LATER
) -> list[dict[str, Any]]:
    """Rows of way, delay, execs a step, actions a minute, seconds a step (median), and right pictures of all."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as folder:
        place = Path(folder)
        place.chmod(0o755)  # a sandbox's users are others than ours
        async with DESKTOPS[name](place) as desktop:
            if kinds:
                desktop.kinds = {kind: desktop.kinds[kind] for kind in kinds}
            sandbox = Sandbox(desktop.environment)
            agents = await _agents(desktop, place, ways)
            await _warm_up(desktop, _way(HAND, agents[HAND], place))
            order = [way for way in agents if way in ways]
            for sandbox.delay in DELAYS:
                measured = {way: _way(way, agents[way], place) for way in order}
                for number in range(rounds):
                    turns = order[number % len(order) :] + order[: number % len(order)]
                    await _round(desktop, sandbox, [measured[way] for way in turns], later)
                rows += [row for way, one in measured.items() for row in _rows(way, one, sandbox.delay)]
    return rows


async def _agents(desktop: Desktop, place: Path, ways: list[str]) -> dict[str, Any]:
    """An agent for each way, set up; the hand's always."""
    from tests.harbor.agents import OURS, build

    stock = build(place) if desktop.is_stocks else None
    if stock is not None:
        await stock.setup(desktop.environment)
    agents = {}
    for way, settings in WAYS.items():
        if way in ways or way == HAND:
            agents[way] = build(place, OURS, **desktop.settings, **settings)
            agents[way]._env_io_dir = PurePosixPath("/tmp")
            await agents[way].setup(desktop.environment)
    return agents if stock is None else {**agents, STOCK: stock}


def _way(name: str, agent: Any, place: Path) -> Way:
    if name == HAND:  # its picture is in the trial's own directory here, as in a trial
        return Way(agent, "/logs/agent/step.png", place / "trial" / "agent" / "step.png")
    if name == STOCK:
        return Way(agent, "/logs/agent/step.webp", _STOCKS_PNG)
    return Way(agent, "/tmp/deskhand-step.png", "/tmp/deskhand-step.png")


async def _warm_up(desktop: Desktop, way: Way) -> None:
    """What is started for the first time is started for nobody."""
    for kind, prepare in desktop.kinds.items():
        await way.step(prepare())
        desktop.clean_up(kind)


async def _round(desktop: Desktop, sandbox: Sandbox, ways: list[Way], later: float) -> None:
    pairs = [(way, kind) for kind in desktop.kinds for way in ways]
    if desktop.one_leads_to_the_next:
        pairs = [(way, kind) for way in ways for kind in desktop.kinds]
    for way, kind in pairs:
        try:
            action = desktop.kinds[kind]()
            await asyncio.sleep(0.5)  # what the preparation may still do belongs to nobody
            before, began = sandbox.execs, time.monotonic()
            await way.step(action)
        except DeskhandError as error:
            print(f"bench.harbor: {kind}: {error}", file=sys.stderr)
            continue
        seconds, execs = time.monotonic() - began, sandbox.execs - before
        picture = Image.open(way.picture) if isinstance(way.picture, Path) else await desktop.read(way.picture)
        picture.load()
        await asyncio.sleep(later)
        right = is_cosmetic(differing_tiles(picture, await desktop.shown()))
        way.tries.append(Try(kind, seconds, execs, right))
        desktop.clean_up(kind)


def _rows(name: str, way: Way, delay: float) -> list[dict[str, Any]]:
    """Over all kinds, and over those of the recorded traces where there are some of them."""
    pools = {"": way.tries, TRACED: [one for one in way.tries if one.kind in SCENARIOS and one.kind not in ADDED]}
    return [_row(name, pool, tries, delay) for pool, tries in pools.items() if tries]


def _row(name: str, pool: str, tries: list[Try], delay: float) -> dict[str, Any]:
    seconds = [one.seconds for one in tries]
    return {
        "way": name,
        "kinds": pool,
        "added_ms": round(delay * 1000),
        "execs_a_step": sum(one.execs for one in tries) / len(tries),
        "actions_a_minute": 60 / statistics.mean(seconds),
        "median_s": statistics.median(seconds),
        "right": sum(one.right for one in tries),
        "of": len(tries),
        "wrong": [one.kind for one in tries if not one.right],
        "seconds": {one.kind: round(one.seconds, 3) for one in tries},
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows for people, with the ratio to the fixed wait at the same delay."""
    fixed = {(row["added_ms"], row["kinds"]): row["actions_a_minute"] for row in rows if row["way"] == FIXED}
    lines = [
        f"{'way':18} {'kinds':8} {'added':>7} {'execs a step':>13} {'actions a minute':>17}"
        f" {'times the fixed wait':>21} {'right pictures':>15}  wrong"
    ]
    for row in sorted(rows, key=lambda row: str(row["kinds"])):
        ratio = row["actions_a_minute"] / fixed[row["added_ms"], row["kinds"]] if fixed else float("nan")
        right = f"{row['right']} of {row['of']}"
        lines.append(
            f"{row['way']:18} {row['kinds'] or 'all':8} {row['added_ms']:4} ms {row['execs_a_step']:13.2f}"
            f" {row['actions_a_minute']:17.1f} {ratio:21.1f} {right:>15}  {', '.join(row['wrong'])}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--desktop", choices=list(DESKTOPS), default="xfce", help="browser: stock computer-1's own")
    parser.add_argument("--rounds", type=int, default=1, help="tries of each kind, for each way and delay")
    parser.add_argument("--way", action="append", choices=[*WAYS, STOCK], help="only these (may be said again)")
    parser.add_argument("--kind", action="append", help="only these kinds of action (may be said again)")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else litellm looks for the network, for seconds
    try:
        rows = asyncio.run(measure(options.desktop, options.rounds, options.way or [HAND, FIXED, STOCK], options.kind))
    except ImportError as error:
        print(f"bench.harbor: {error}: run it with a Python that has Harbor", file=sys.stderr)
        return 1
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
