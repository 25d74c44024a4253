"""``deskhand fleet up|status|down``: many desktops, leased to one client each; on this machine, or on a Ray cluster."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from deskhand.cli.desktop import DesktopSessionOption
from deskhand.cli.desktop import _a_size as a_size
from deskhand.cli.output import JsonOption, a_number, fail, print_json
from deskhand.errors import BatchRefused, SetupError

if TYPE_CHECKING:
    from deskhand.fleet.options import Options

T = TypeVar("T")

app = typer.Typer(
    help="Many desktops, leased to one client at a time: on this machine, or on a Ray cluster.", no_args_is_help=True
)

NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Tells several fleets apart.")]
RayOption = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="On the Ray cluster there ('auto': the one of this machine)."),
]


@app.command()
def up(
    size: Annotated[
        int, typer.Option("--size", min=1, max=64, help="Desktops that can be leased, on each machine.")
    ] = 2,
    spares: Annotated[int, typer.Option("--spares", min=0, max=16, help="More that are kept ready.")] = 1,
    session: DesktopSessionOption = "openbox",
    screen: Annotated[
        str, typer.Option("--screen", metavar="WxH", callback=a_size, help="Of each desktop, in pixels.")
    ] = "1280x800",
    name: NameOption = "default",
    ray: RayOption = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=1, max=3600, callback=a_number, help="For all to be ready."),
    ] = 600.0,
    as_json: JsonOption = False,
) -> None:
    """Start a fleet; returns when its desktops are ready."""
    from deskhand.desktop import parse_size
    from deskhand.fleet.options import Options

    _check_name(name)
    _check_ray(ray)
    options = Options(size=size, spares=spares, session=session, screen=parse_size(screen))
    with _progress(quiet=as_json) as progress:
        told = _up_on_ray(name, ray, options, timeout, progress) if ray is not None else None
        if told is None:
            from deskhand.fleet.starting import start_service

            told = start_service(name, options, timeout, progress)
    if as_json:
        print_json(told)
    else:
        print(name)


@app.command()
def status(name: NameOption = "default", ray: RayOption = None, as_json: JsonOption = False) -> None:
    """Tell how a fleet is: desktops, leases, what has failed."""
    _check_name(name)
    _check_ray(ray)
    health = _run(lambda: _health(name, ray))
    if as_json:
        print_json(health)
        return
    state = "well" if health["ok"] else "not well"
    print(f"{name}: {state}, {health['leased']} of {health['size']} leased, {health['free']} free, "
          f"{health['waiting']} waiting")  # fmt: skip
    for host in health["hosts"]:
        print(_host_in_words(host))
        for lease in host.get("leases_now", []):
            print(_lease_in_words(lease))


@app.command()
def down(name: NameOption = "default", ray: RayOption = None, as_json: JsonOption = False) -> None:
    """End a fleet: its leases, and every desktop."""
    _check_name(name)
    _check_ray(ray)
    if ray is not None:
        from deskhand.fleet.ray.up import end_fleet

        _run(lambda: end_fleet(name, ray))
    else:
        from deskhand.fleet.starting import end_service

        _run(lambda: end_service(name))
    if as_json:
        print_json({"name": name, "stopped": True})


def _check_name(name: str) -> None:
    from deskhand.fleet.socket import socket_of

    try:
        socket_of(name)
    except SetupError as error:
        raise BatchRefused(str(error)) from None


def _check_ray(address: str | None) -> None:
    """Ray is needed only where it is asked for."""
    if address is not None:
        try:
            import deskhand.fleet.ray  # noqa: F401
        except ImportError as error:
            fail(str(error), 1)


def _up_on_ray(
    name: str, address: str, options: Options, timeout: float, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    from deskhand.fleet.ray.up import start_fleet

    return _run(lambda: start_fleet(name, address, options, timeout, progress))


async def _health(name: str, ray: str | None) -> dict[str, Any]:
    if ray is not None:
        from deskhand.fleet.ray.pool import RayPool

        async with RayPool(name, ray) as distant:
            return await distant.health()
    from deskhand.fleet.socket import SocketPool

    async with SocketPool(name) as pool:
        return await pool.health()


def _lease_in_words(lease: dict[str, Any]) -> str:
    dead = f", died: {lease['dead']}" if lease["dead"] else ""
    return f"  {lease['display']}  {lease['holder']}  {lease['left_s']:.0f} s left, {lease['batches']} batches{dead}"


def _host_in_words(host: dict[str, Any]) -> str:
    words = f"{host['name']}: {host['leased']} of {host['size']} leased, {host['free']} free"
    if "ready" in host:
        words += (
            f", {host['ready']} ready and {host['coming']} coming; {host['leases']} leases so far,"
            f" {host['expired']} ran out, {host['resets']} resets, {host['refused']} refused, {host['died']} died"
        )
    return words + (f"; last failure: {host['failure']}" if host.get("failure") else "")


def _run(work: Callable[[], Awaitable[T]]) -> T:
    async def whole() -> T:
        return await work()

    return asyncio.run(whole())


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; nothing elsewhere, as standard output is data only."""
    if quiet or not sys.stderr.isatty():
        yield lambda ready, of: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("desktops ready"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda ready, of: bar.update(task, completed=ready, total=of)
