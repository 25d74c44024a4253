"""``deskhand run``: an agent works towards a goal at a desktop, and a trace is left to look at."""

from __future__ import annotations

import asyncio
import datetime
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from deskhand.agents import RunResult, Script, run_goal
from deskhand.agents.scripted import DEMO
from deskhand.backends import LocalDisplay
from deskhand.cli.output import DisplayOption, fail
from deskhand.desktop import parse_size, start_desktop, stop_desktop
from deskhand.errors import SetupError
from deskhand.hand.state import find_desktop
from deskhand.session import Session
from deskhand.trace import TraceRecorder

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


def add_to(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    goal: Annotated[
        Optional[str], typer.Argument(metavar="[GOAL]", help="What the agent shall do; the demo's without one.")
    ] = None,
    model: Annotated[
        Optional[str], typer.Option("--model", metavar="MODEL", help="scripted:FILE replays a script.")
    ] = None,
    display: DisplayOption = None,
    session: Annotated[str, typer.Option("--session", help="The session of the desktop it starts.")] = "xfce",
    size: Annotated[str, typer.Option("--size", metavar="WxH", help="Of the desktop it starts.")] = "1280x800",
    trace: Annotated[
        Optional[Path], typer.Option("--trace", metavar="DIR", help="Record there; else in ./traces.")
    ] = None,
    max_actions: Annotated[
        Optional[int], typer.Option("--max-actions", min=1, help="The run's budget of actions.")
    ] = None,
) -> None:
    """Have an agent work towards GOAL, on a desktop of its own unless --display names one.

    Exits 0 only when the agent was done and what can be checked was checked. The last line is the path of the trace.
    """
    script = _script(goal, model)
    directory = trace or Path("traces") / datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    # As Ctrl-C does: the desktop is taken down and the trace finished on the way out.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if display is not None:
        known = find_desktop(display)
        home = Path(known["home"] if known is not None else os.path.expanduser("~"))
        result, page = _run(script, display, home, directory, max_actions)
    else:
        width, height = parse_size(size)
        print(f"Starting a desktop: {session}, {width}x{height}", flush=True)
        desktop = start_desktop(session, (width, height))
        try:
            print(f"It is {desktop.display}, of {desktop.user}", flush=True)
            result, page = _run(script, desktop.display, Path(desktop.home), directory, max_actions)
        finally:
            stop_desktop(desktop.display)
    print(f"{'done' if result.ok else 'FAILED'}: {result.text}")
    print(f"trace: {page}", flush=True)
    sys.exit(0 if result.ok else 3)


def _script(goal: str | None, model: str | None) -> Script:
    """The script to replay; without a model's key another goal than the script's own is refused."""
    if model is not None and not model.startswith("scripted:"):
        fail(f"the model {model!r} is not known: --model scripted:FILE replays a script", 2)
    path = DEMO if model is None else Path(model.removeprefix("scripted:"))
    try:
        script = Script(path)
    except SetupError as error:
        fail(str(error), 2)
    if goal is not None and goal.strip() != script.goal:
        fail(
            f"only the script's own goal can be reached ({script.goal!r}): asking a model, with {' or '.join(KEYS)} set,"
            " comes in a later version; leave the goal out, or name another script with --model scripted:FILE",
            2,
        )
    return script


def _run(
    script: Script, display: str, home: Path, directory: Path, max_actions: int | None
) -> tuple[RunResult, Path]:
    print(f"Goal: {script.goal}", flush=True)
    facts = {"model": script.name, "display": display}
    with TraceRecorder(directory, goal=script.goal, facts=facts) as recorder:
        result = asyncio.run(_run_session(script, display, home, recorder, max_actions))
        checks = [
            {"what": check.what, "expected": check.expected, "found": check.found, "ok": check.ok}
            for check in result.checks
        ]
        page = recorder.finish("done" if result.ok else "failed", result.text, checks=checks)
    return result, Path(page)


async def _run_session(
    script: Script, display: str, home: Path, recorder: TraceRecorder, max_actions: int | None
) -> RunResult:
    async with Session(LocalDisplay(display), max_actions, recorder) as session:
        return await run_goal(
            script.goal, script, session, script.checks(home), progress=lambda line: print(line, flush=True)
        )
