"""What ``deskhand fleet`` shows at a terminal: how far the start is, and how the fleet is.

All of it goes to standard error: standard output is data only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deskhand.fleet.options import Options

Progress = Callable[[int, int], None]


@contextmanager
def progress(name: str, options: Options, quiet: bool) -> Iterator[Progress]:
    """A bar, gone again at the end; nothing where there is no terminal, or ``quiet``."""
    if quiet or not sys.stderr.isatty():
        yield lambda ready, of: None
        return
    from rich import progress as bars
    from rich.console import Console

    width, height = options.screen
    with bars.Progress(
        bars.SpinnerColumn(finished_text="✓"),
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=None, complete_style="blue", finished_style="green"),
        bars.TextColumn("{task.fields[count]}"),
        bars.TimeElapsedColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
        expand=True,
    ) as bar:
        what = f"[bold]{name}[/bold]: {options.session} desktops of {width}x{height}"
        task = bar.add_task(what, total=None, count="")

        def show(ready: int, of: int) -> None:
            bar.update(task, completed=ready, total=of, count=f"{ready} of {of} ready")

        yield show


def say_up(
    name: str, options: Options, health: dict[str, Any], page: dict[str, Any] | None, began: float, ray: str | None
) -> None:
    """That the fleet is up, and where to go from here; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    hosts = health["hosts"]
    machines = len(hosts)
    size, spares = options.size * machines, options.spares * machines
    here = f" on {_count(machines, 'machine')} of Ray" if ray is not None else ""
    ready = f"{_count(size, 'desktop')} and {_count(spares, 'spare')}{here}"
    width, height = options.screen
    took = f"{time.monotonic() - began:.1f} s"
    console.print(f"[green]✓[/green] [bold]{name}[/bold] is up: {ready}, {options.session} {width}x{height}, in {took}")
    up = sum(host.get("ready", 0) + host["leased"] for host in hosts)
    if up < size + spares:
        failed = next((f": {host['failure']}" for host in hosts if host.get("failure")), "")
        console.print(Text(f"  {up} of {size + spares} are ready so far{failed}", "yellow"), soft_wrap=True)
    named = "" if name == "default" else f" --name {name}"
    named += f" --ray {ray}" if ray is not None else ""
    page = page or {}
    lines = []
    if "open" in page:
        lines.append(("look", page["open"], "good once, for a minute"))
        lines.append(("metrics", page["metrics"], "with the token in " + page["token_file"]))
    elif page.get("missing"):
        lines.append(("look", "", str(page["missing"])))
    lines.append(("status", f"deskhand fleet status{named}", "and another address"))
    lines.append(("end", f"deskhand fleet down{named}", ""))
    for word, value, note in lines:
        line = Text.assemble((f"  {word:<8} ", "dim"), value)
        if note:
            fits = line.cell_len + 2 + len(note) <= console.width
            line.append(("  " if fits else "\n" + " " * 11) + note, "dim")
        console.print(line, soft_wrap=True)


def page_in_words(page: dict[str, Any] | None) -> list[str]:
    """Where the status page is, for ``deskhand fleet status``."""
    if page is None:
        return []
    if "open" in page:
        return [
            f"page: {page['open']} (good once, for a minute)",
            f"metrics: {page['metrics']} (token: {page['token_file']})",
        ]
    return [str(page["missing"])] if page.get("missing") else []


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
