"""``deskhand run``: an agent works towards a goal at a desktop, and a trace is left to look at."""

from __future__ import annotations

import datetime
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deskhand.cli.approval import ApproveOption, AskOption, approval
from deskhand.cli.desktop import DesktopSessionOption, SizeOption
from deskhand.cli.elsewhere import TokenFileOption, UrlOption, place_of
from deskhand.cli.output import DisplayOption, fail
from deskhand.cli.own_screen import OwnScreenOption, backend_at, policy_of
from deskhand.errors import BackendError, SetupError

if TYPE_CHECKING:
    from deskhand.agents import Check, RunResult
    from deskhand.desktop import DesktopState
    from deskhand.session import Session
    from deskhand.trace import TraceRecorder

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


@dataclass(frozen=True)
class Job:
    """What is to be done, by whom: ``work`` does it at a session's desktop whose user has that home."""

    goal: str
    name: str
    work: Callable[[Session, Path], Awaitable[RunResult]]


def add_to(app: typer.Typer) -> None:
    app.command("run")(run)


def _some_prices(text: str | None) -> str | None:
    from deskhand.agents.usage import Prices

    try:
        Prices.parse(text or "0,0")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def run(
    goal: Annotated[
        str | None, typer.Argument(metavar="[GOAL]", help="What the agent shall do; the demo's without one.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="anthropic:NAME, openai:NAME or google:NAME asks a model, scripted:FILE replays a script."
            " Without it the first vendor whose key is set; without a key, the demo's script.",
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", metavar="URL", help="The server's address; with openai:NAME any that speaks chat completions."
        ),
    ] = None,
    adapter: Annotated[
        str | None,
        typer.Option("--adapter", metavar="NAME", help="How such a server's model clicks: tools, qwen or ui_tars."),
    ] = None,
    display: DisplayOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    own_screen: OwnScreenOption = False,
    session: DesktopSessionOption = "xfce",
    size: SizeOption = "1280x800",
    watch: Annotated[
        bool, typer.Option("--watch", help="Have computerd serve the run's own desktop, and tell its live view.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="DIR", help="Record there; else in ./traces.")
    ] = None,
    max_actions: Annotated[
        int | None, typer.Option("--max-actions", min=1, help="The run's budget of actions.")
    ] = None,
    max_turns: Annotated[int, typer.Option("--max-turns", min=1, help="Replies of the model, at most.")] = 100,
    pictures: Annotated[
        int, typer.Option("--pictures", min=1, max=10, help="Pictures the model is left with when old ones go.")
    ] = 5,
    ask: AskOption = None,
    approve: ApproveOption = False,
    prices: Annotated[
        str | None,
        typer.Option(
            "--prices",
            metavar="IN,OUT[,READ,WRITE]",
            callback=_some_prices,
            help="Of a million tokens, read and written from or to the cache too: the trace then tells the cost.",
        ),
    ] = None,
) -> None:
    """Have an agent work towards GOAL, on a desktop of its own unless --display, --own-screen or --url says which.

    Exits 0 only when the agent was done and what can be checked was checked. The last line is the path of the trace.
    """
    elsewhere = place_of(url, token_file, display) if not own_screen else None
    if elsewhere is not None and goal is None:
        fail("a desktop elsewhere needs a GOAL: the file that the demo leaves there can not be looked at from here", 2)
    job = _job(goal, model, base_url, adapter, pictures, max_turns, prices)
    directory = _trace_directory(trace)
    options = {"max_actions": max_actions, "policy": policy_of(ask, own_screen), "approve": approval(approve)}
    if own_screen and display is None:
        display = os.environ.get("DISPLAY") or fail("no display is named: set DISPLAY or pass --display", 5)
    if elsewhere is not None:
        result = _run(job, elsewhere[0], Path(os.path.expanduser("~")), directory, options, elsewhere=elsewhere)
    elif display is not None:
        from deskhand.hand.state import find_desktop

        known = find_desktop(display)
        home = Path(known["home"] if known is not None else os.path.expanduser("~"))
        result = _run(job, display, home, directory, options, own_screen)
    else:
        with _desktop(session, size, watch) as desktop:
            served = (desktop.url, desktop.token_file) if desktop.url else None
            result = _run(job, desktop.display, Path(desktop.home), directory, options, elsewhere=served)
    print(f"{'done' if result.ok else 'FAILED'}: {result.text}")
    _tell_page(directory)
    sys.exit(0 if result.ok else 3)


@contextmanager
def _desktop(session: str, size: str, watch: bool) -> Iterator[DesktopState]:
    """A desktop of its own, served where it is to be watched; taken down whatever happens."""
    from deskhand.desktop import parse_size, start_desktop, stop_desktop
    from deskhand.desktop.serving import NotServable

    print(f"Starting a desktop: {session}, {size}", flush=True)
    try:
        if watch and os.geteuid() != 0:
            raise NotServable("computerd gets an account of its own, which root alone can make")
        desktop = start_desktop(session, parse_size(size), serve="127.0.0.1:0" if watch else None)
    except NotServable as error:
        print(f"No live view: {error}", flush=True)
        desktop = start_desktop(session, parse_size(size))
    try:
        print(f"It is {desktop.display}, of {desktop.user}", flush=True)
        if desktop.url:
            _tell_live_view(desktop)
        yield desktop
    finally:
        # Who is in a hurry presses Ctrl-C again; taking it down has its own deadlines.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        stop_desktop(desktop.display)


def _tell_live_view(desktop: DesktopState) -> None:
    from deskhand.cli.view import ticket

    try:
        print(f"Live view: {ticket(desktop.url, Path(desktop.token_file))['url']}", flush=True)
    except (SetupError, BackendError) as error:
        print(f"No live view: {error}", flush=True)


def _job(
    goal: str | None,
    model: str | None,
    base_url: str | None,
    adapter: str | None,
    pictures: int,
    max_turns: int,
    prices: str | None,
) -> Job:
    """A model's job or a script's; what is wrong with it is said before a desktop is started."""
    from deskhand.agents.models import default_model, load_model

    wanted = model or ("openai:" if base_url else default_model(os.environ))
    if wanted is None or wanted.startswith("scripted:"):
        return _scripted(goal, model)
    from deskhand.agents.asking import ModelRun
    from deskhand.agents.usage import Prices

    try:
        asked = load_model(wanted, os.environ, base_url, adapter, pictures)
    except SetupError as error:
        fail(str(error), 2)
    the_demos = goal is None
    if goal is None:
        from deskhand.agents import Script
        from deskhand.agents.scripted import DEMO

        goal = Script(DEMO).goal
    money = None if prices is None else Prices.parse(prices)
    task = goal

    async def work(session: Session, home: Path) -> RunResult:
        checks = [lambda: _demo_check(home)] if the_demos else []
        try:
            asking = ModelRun(task, asked, session, progress=_say, prices=money)
            return await asking.run(checks, max_turns)
        finally:
            await asked.aclose()

    return Job(goal, asked.name, work)


def _demo_check(home: Path) -> Check:
    """The demo's goal leaves the words to the model, so that there are some is all that can be checked."""
    from deskhand.agents import Check

    try:
        size = (home / "hello.txt").stat().st_size
        found = f"a file of {size} bytes"
    except OSError as error:
        size, found = 0, error.strerror or str(error)
    return Check("the file hello.txt holds a note", "a file that is not empty", found, size > 0)


def _scripted(goal: str | None, model: str | None) -> Job:
    """The script to replay; without a model's key another goal than the script's own is refused."""
    from deskhand.agents import Script, run_goal
    from deskhand.agents.scripted import DEMO

    path = DEMO if model is None else Path(model.removeprefix("scripted:"))
    try:
        script = Script(path)
    except SetupError as error:
        fail(str(error), 2)
    if goal is not None and goal.strip() != script.goal:
        fail(
            f"only the script's own goal can be reached ({script.goal!r}): set {', '.join(KEYS[:-1])} or {KEYS[-1]} to"
            " ask a model, leave the goal out, or name another script with --model scripted:FILE",
            2,
        )

    async def work(session: Session, home: Path) -> RunResult:
        return await run_goal(script.goal, script, session, script.checks(home), progress=_say)

    return Job(script.goal, script.name, work)


def _say(line: str) -> None:
    print(line, flush=True)


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


def _run(
    job: Job,
    display: str,
    home: Path,
    directory: Path,
    options: Mapping[str, Any],
    own_screen: bool = False,
    elsewhere: tuple[str, str] | None = None,
) -> RunResult:
    import asyncio

    from deskhand.trace import TraceRecorder

    print(f"Goal: {job.goal}", flush=True)
    facts = {"model": job.name, "display": display}
    recorder = TraceRecorder(directory, goal=job.goal, facts=facts)
    try:
        with recorder:
            result = asyncio.run(_run_session(job, display, home, recorder, options, own_screen, elsewhere))
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
        print(f"trace: {(directory / 'index.html').resolve()}", flush=True)


async def _run_session(
    job: Job,
    display: str,
    home: Path,
    recorder: TraceRecorder,
    options: Mapping[str, Any],
    own_screen: bool,
    elsewhere: tuple[str, str] | None,
) -> RunResult:
    from deskhand.session import Session
    from deskhand.turns import terms_at

    backend = backend_at(display, None, own_screen, elsewhere)
    terms = terms_at(backend)
    async with Session(backend, trace=recorder, name="deskhand run", lease=terms, **options) as session:
        return await job.work(session, home)
