"""Harbor's step: execs for each, and actions a minute, against the fixed-wait tools and against stock computer-1.

Usage: ``python -m bench.harbor [--actions 20] [--json FILE]`` with a Python that has Harbor (``.setup/harbor-newest``).
One real sandbox with a desktop, the agent's own session on it, and the steps of computer-1's loop: is it alive, act,
picture, picture to the request. To each exec 0, 100 or 300 ms are added, which is what cloud sandboxes cost. Ways take
turns.
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
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

#: Seconds added to each exec.
DELAYS = (0.0, 0.1, 0.3)
STEPS: list[dict[str, Any]] = [
    {"type": "click", "x": 400, "y": 300},
    {"type": "type", "text": "a few words"},
    {"type": "keypress", "keys": ["Return"]},
    {"type": "mouse_move", "x": 500, "y": 400},
]
#: The way, its settings, and whether the picture must be read back from the sandbox.
WAYS: dict[str, dict[str, Any]] = {
    "hand": {"driver": "hand"},
    "tools, fixed 2 s": {"driver": "tools", "settle": "fixed", "settle_sec": 2.0},
    "tools, quiet": {"driver": "tools", "settle": "quiet"},
}
Step = Callable[[dict[str, Any], int], Awaitable[None]]


class Sandbox:
    """Counts and slows the execs of a real one."""

    def __init__(self, environment: Any) -> None:
        self.execs = 0
        self.delay = 0.0
        run = environment.exec

        async def counted(command: str, **named: Any) -> Any:
            self.execs += 1
            await asyncio.sleep(self.delay)
            return await run(command=command, **named)

        environment.exec = counted


async def started(environment: Any, place: Path, settings: dict[str, Any]) -> Step:
    """A step of computer-1's loop on that sandbox, with our session."""
    from harbor.agents.computer_1.runtime import ComputerAction
    from tests.harbor.agents import OURS, build

    agent = build(place, OURS, **settings)
    await agent.setup(environment)

    async def step(fields: dict[str, Any], number: int) -> None:
        assert await agent._session.is_session_alive()
        await agent._session.execute(ComputerAction(**fields))
        path = await agent._session.fetch_screenshot(f"/logs/agent/screenshot_ep{number}.png")
        assert (await agent._screenshot_ref(path)).startswith("data:image/png")

    return step


async def measure(actions: int) -> list[dict[str, Any]]:
    """Rows of way, delay, execs a step, and seconds a step (median)."""
    from tests.harbor.real import real_sandbox

    rows = []
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as place:
        async with real_sandbox(Path(place)) as environment:
            sandbox = Sandbox(environment)
            steps = {way: await started(environment, Path(place), settings) for way, settings in WAYS.items()}
            for delay in DELAYS:
                seconds: dict[str, list[float]] = {way: [] for way in WAYS}
                execs = dict.fromkeys(WAYS, 0)
                sandbox.delay = delay
                for number in range(actions):
                    for way, step in steps.items():
                        before, began = sandbox.execs, time.monotonic()
                        await step(STEPS[number % len(STEPS)], number)
                        seconds[way].append(time.monotonic() - began)
                        execs[way] += sandbox.execs - before
                for way in WAYS:
                    median = statistics.median(seconds[way])
                    rows.append(
                        {
                            "way": way,
                            "added_ms": round(delay * 1000),
                            "execs_a_step": execs[way] / actions,
                            "actions_a_minute": 60 / statistics.mean(seconds[way]),
                            "median_s": median,
                        }
                    )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The rows for people, with the ratio to the fixed wait at the same delay."""
    fixed = {row["added_ms"]: row["actions_a_minute"] for row in rows if row["way"] == "tools, fixed 2 s"}
    lines = [f"{'way':18} {'added':>7} {'execs a step':>13} {'actions a minute':>17} {'times the fixed wait':>21}"]
    for row in rows:
        ratio = row["actions_a_minute"] / fixed[row["added_ms"]]
        lines.append(
            f"{row['way']:18} {row['added_ms']:4} ms {row['execs_a_step']:13.2f} {row['actions_a_minute']:17.1f}"
            f" {ratio:21.1f}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--actions", type=int, default=20, help="steps for each way and delay")
    parser.add_argument("--json", type=Path, help="write the rows there")
    options = parser.parse_args()
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else litellm looks for the network, for seconds
    try:
        rows = asyncio.run(measure(options.actions))
    except ImportError as error:
        print(f"bench.harbor: {error}: run it with a Python that has Harbor", file=sys.stderr)
        return 1
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
