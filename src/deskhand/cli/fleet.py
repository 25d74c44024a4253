"""``deskhand fleet up|status|down``: many desktops, leased to one client each; on this machine, or on a Ray cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from deskhand.cli import fleet_output
from deskhand.cli.desktop import DesktopSessionOption
from deskhand.cli.desktop import _a_size as a_size
from deskhand.cli.fleet_apart import (
    HomeOption,
    HomeSizeOption,
    IsolationOption,
    SeeOption,
    TemplateOption,
    apart,
)
from deskhand.cli.output import JsonOption, a_number, fail, print_json
from deskhand.errors import BatchRefused, DeskhandError, SetupError

if TYPE_CHECKING:
    from deskhand.fleet.ways import HostPool

T = TypeVar("T")

_PAGE = "127.0.0.1:0"

app = typer.Typer(
    help="Many desktops, leased to one client at a time: on this machine, or on a Ray cluster.", no_args_is_help=True
)

NameOption = Annotated[str, typer.Option("--name", metavar="NAME", help="Tells several fleets apart.")]
RayOption = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="On the Ray cluster there ('auto': the one of this machine)."),
]


ResourceOption = Annotated[
    str | None,
    typer.Option("--resource", metavar="NAME", help="On Ray: on the machines alone that offer this resource."),
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
    resource: ResourceOption = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", min=1, max=3600, callback=a_number, help="For all to be ready."),
    ] = 600.0,
    page: Annotated[
        str,
        typer.Option("--page", metavar="HOST:PORT", help="Where its status page and metrics are; port 0 takes any."),
    ] = _PAGE,
    no_page: Annotated[bool, typer.Option("--no-page", help="No status page and no metrics.")] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name that the page is known under, too.")
    ] = None,
    isolation: IsolationOption = "auto",
    home: HomeOption = None,
    template_home: TemplateOption = None,
    home_size: HomeSizeOption = 1024,
    see: SeeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a fleet; returns when its desktops are ready."""
    from deskhand.desktop import parse_size
    from deskhand.fleet.options import Options
    from deskhand.fleet.page.status import PageSettings

    _check_name(name)
    _check_ray(ray)
    if resource is not None and ray is None:
        raise BatchRefused("--resource says which machines of a Ray cluster: give --ray ADDRESS too")
    if no_page and (page != _PAGE or allow_host):
        raise BatchRefused("--page and --allow-host say where the status page is, and --no-page that there is none")
    far = apart(isolation, home, template_home, home_size, see)
    options = Options(size=size, spares=spares, session=session, screen=parse_size(screen), **far)
    settings = None if no_page else PageSettings(page, tuple(allow_host or ()))
    began = time.monotonic()
    with fleet_output.progress(name, options, quiet=as_json) as progress:
        if ray is not None:
            from deskhand.fleet.ray.up import start_fleet

            told = _run(lambda: start_fleet(name, ray, options, timeout, progress, resource, settings))
        else:
            from deskhand.fleet.starting import start_service

            told = start_service(name, options, timeout, progress, settings)
    health, where = _run(lambda: _health(name, ray))
    if as_json:
        print_json({**told, "page": where})
    else:
        print(name, flush=True)
        fleet_output.say_up(name, options, health, where, began, ray)


@app.command()
def status(name: NameOption = "default", ray: RayOption = None, as_json: JsonOption = False) -> None:
    """Tell how a fleet is: desktops, leases, what has failed."""
    _check_name(name)
    _check_ray(ray)
    health, page = _run(lambda: _health(name, ray))
    if as_json:
        print_json({**health, "page": page})
        return
    state = "well" if health["ok"] else "not well"
    print(f"{name}: {state}, {health['leased']} of {health['size']} leased, {health['free']} free, "
          f"{health['waiting']} waiting")  # fmt: skip
    for host in health["hosts"]:
        print(_host_in_words(host))
        for lease in host.get("leases_now", []):
            print(_lease_in_words(lease))
    for line in fleet_output.page_in_words(page):
        print(line)


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


async def _health(name: str, ray: str | None) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """How a fleet is, and where its page."""
    async with _pool(name, ray) as pool:
        return await pool.health(), await _page_of(pool)


async def _page_of(pool: HostPool) -> dict[str, Any] | None:
    """``open``, ``metrics``, ``token_file``; or ``missing``, why there is none; None: none is wanted."""
    try:
        answer, _ = await pool.way(None)("page")
    except DeskhandError as error:
        return {"missing": str(error)}
    page: dict[str, Any] | None = answer["value"]
    return page


def _pool(name: str, ray: str | None) -> HostPool:
    if ray is not None:
        from deskhand.fleet.ray.pool import RayPool

        return RayPool(name, ray)
    from deskhand.fleet.socket import SocketPool

    return SocketPool(name)


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
