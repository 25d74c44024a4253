"""``deskhand run``: an agent works towards a goal at a desktop, and a trace is left to look at."""

from __future__ import annotations

import datetime
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deskhand.cli.desktop import DesktopSessionOption, SizeOption
from deskhand.cli.output import DisplayOption, fail
from deskhand.errors import SetupError

if TYPE_CHECKING:
    from deskhand.agents import RunResult, Script
    from deskhand.trace import TraceRecorder

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


def add_to(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    goal: Annotated[
        str | None, typer.Argument(metavar="[GOAL]", help="What the agent shall do; the demo's without one.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="scripted:FILE replays a script.")
    ] = None,
    display: DisplayOption = None,
    session: DesktopSessionOption = "xfce",
    size: SizeOption = "1280x800",
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="DIR", help="Record there; else in ./traces.")
    ] = None,
    max_actions: Annotated[
        int | None, typer.Option("--max-actions", min=1, help="The run's budget of actions.")
    ] = None,
) -> None:
    """Have an agent work towards GOAL, on a desktop of its own unless --display names one.

    Exits 0 only when the agent was done and what can be checked was checked. The last line is the path of the trace.
    """
    script = _script(goal, model)
    directory = _trace_directory(trace)
    if display is not None:
        from deskhand.hand.state import find_desktop

        known = find_desktop(display)
        home = Path(known["home"] if known is not None else os.path.expanduser("~"))
        result = _run(script, display, home, directory, max_actions)
    else:
        with _desktop(session, size) as (own_display, home):
            result = _run(script, own_display, home, directory, max_actions)
    print(f"{'done' if result.ok else 'FAILED'}: {result.text}")
    _tell_page(directory)
    sys.exit(0 if result.ok else 3)


@contextmanager
def _desktop(session: str, size: str) -> Iterator[tuple[str, Path]]:
    """A desktop of its own, its display and its user's home; taken down whatever happens."""
    from deskhand.desktop import parse_size, start_desktop, stop_desktop

    print(f"Starting a desktop: {session}, {size}", flush=True)
    desktop = start_desktop(session, parse_size(size))
    try:
        print(f"It is {desktop.display}, of {desktop.user}", flush=True)
        yield desktop.display, Path(desktop.home)
    finally:
        # Who is in a hurry presses Ctrl-C again; taking it down has its own deadlines.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        stop_desktop(desktop.display)


def _script(goal: str | None, model: str | None) -> Script:
    """The script to replay; without a model's key another goal than the script's own is refused."""
    from deskhand.agents import Script
    from deskhand.agents.scripted import DEMO

    if model is not None and not model.startswith("scripted:"):
        fail(f"the model {model!r} is not known: --model scripted:FILE replays a script", 2)
    path = DEMO if model is None else Path(model.removeprefix("scripted:"))
    try:
        script = Script(path)
    except SetupError as error:
        fail(str(error), 2)
    if goal is not None and goal.strip() != script.goal:
        fail(
            f"only the script's own goal can be reached ({script.goal!r}): asking a model, with {' or '.join(KEYS)}"
            " set, comes in a later version; leave the goal out, or name another script with --model scripted:FILE",
            2,
        )
    return script


def _trace_directory(wanted: Path | None) -> Path:
    """Where to record: a directory that holds no trace, so that the error comes before a desktop is started."""
    if wanted is not None:
        if (wanted / "trace.jsonl").exists():
            fail(f"{wanted} already holds a trace: name an empty directory, or move that trace away", 2)
        return wanted
    name = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    for number in range(1, 1000):
        path = Path("traces") / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            continue  # another run that began in this second
        except OSError as error:
            raise SetupError(f"{path} can not be made ({error.strerror}): name a directory with --trace") from None
        return path
    raise SetupError("too many runs began in this second: name a directory with --trace")


def _run(script: Script, display: str, home: Path, directory: Path, max_actions: int | None) -> RunResult:
    import asyncio

    from deskhand.trace import TraceRecorder

    print(f"Goal: {script.goal}", flush=True)
    facts = {"model": script.name, "display": display}
    recorder = TraceRecorder(directory, goal=script.goal, facts=facts)
    try:
        with recorder:
            result = asyncio.run(_run_session(script, display, home, recorder, max_actions))
            checks = [
                {"what": check.what, "expected": check.expected, "found": check.found, "ok": check.ok}
                for check in result.checks
            ]
            recorder.finish("done" if result.ok else "failed", result.text, checks=checks)
    except BaseException:
        _tell_page(directory)
        raise
    return result


def _tell_page(directory: Path) -> None:
    if (directory / "index.html").exists():
        print(f"trace: {directory / 'index.html'}", flush=True)


async def _run_session(
    script: Script, display: str, home: Path, recorder: TraceRecorder, max_actions: int | None
) -> RunResult:
    from deskhand.agents import run_goal
    from deskhand.backends import LocalDisplay
    from deskhand.session import Session

    async with Session(LocalDisplay(display), max_actions, recorder) as session:
        return await run_goal(
            script.goal, script, session, script.checks(home), progress=lambda line: print(line, flush=True)
        )
