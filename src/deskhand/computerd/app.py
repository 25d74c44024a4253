"""computerd's HTTP: the routes, and what stands before them.

From the outside in: the log and the counters; Host, Origin, the body's type and the token; bodies, whole and bounded;
then the routes. What a batch is, is the hand's to say: ``/act`` has its parser, and the schema is made of its actions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from deskhand.extras import needs

with needs("computerd", "computerd", "fastapi", "starlette", "uvicorn"):
    from fastapi import FastAPI
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Match, Route
    from starlette.types import ASGIApp

from deskhand.computerd import openapi
from deskhand.computerd.acting import Acting, disconnected, json_response, lease_of, session_of
from deskhand.computerd.auth import Guard
from deskhand.computerd.bodies import WholeBodies
from deskhand.computerd.fields import LONGEST_LEASE, LONGEST_WAIT, boolean, count, fields_of, seconds, text, wish_of
from deskhand.computerd.health import Health
from deskhand.computerd.logs import Logged
from deskhand.computerd.mcp_late import LateMcp
from deskhand.computerd.metrics import CONTENT_TYPE, Metrics
from deskhand.computerd.problems import Problem, problem_of
from deskhand.computerd.refusals import SlowRefusals
from deskhand.computerd.routing import add_routes
from deskhand.computerd.served import ServedDesktop, Told
from deskhand.errors import BatchRefused, DeskhandError
from deskhand.hand import state
from deskhand.hand.actions import MAX_ACTIONS
from deskhand.hand.envelope import PictureWish
from deskhand.hand.picture import MAX_BYTES, MAX_EDGE
from deskhand.hand.resident import MAX_REQUEST


@dataclass(frozen=True)
class Access:
    """Who may ask: the token's digest, and the names and origins beside this machine's own; see ``Guard``."""

    token: bytes = field(repr=False)
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


class Computerd:
    """The routes over one desktop."""

    def __init__(self, served: ServedDesktop, health: Health) -> None:
        self.served = served
        self.health = health
        self.metrics = Metrics()
        self.acting = Acting(served, self.metrics)
        self.facts = _facts(served)

    # -- looking ----------------------------------------------------------------------------------------------------

    async def get_health(self, request: Request) -> Response:
        found = await self.health.check()
        return json_response(found, 200 if found["ok"] else 503)

    async def get_info(self, request: Request) -> Response:
        return json_response({**self.facts, **await self.served.info()})

    async def get_apps(self, request: Request) -> Response:
        return json_response(await self.served.apps())

    async def get_windows(self, request: Request) -> Response:
        return json_response({"windows": await self.served.windows()})

    async def get_screenshot(self, request: Request) -> Response:
        wish = wish_of(request)
        region = None
        if wish.region is not None:
            x0, y0, x1, y1 = (int(corner) for corner in wish.region)
            region = (x0, y0, x1, y1)
        asked = PictureWish(wish.format, wish.max_edge, None, wish.cursor)
        session = session_of(request)
        try:
            picture = await self.served.screenshot(region, asked, session)
        except BatchRefused as error:
            return problem_of(error, None, "not_now")
        tag = f'"{picture.hash}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Deskhand-Picture": json.dumps(picture.facts())}
        known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
        if tag in known or known == ["*"]:  # RFC 9110, section 13.1.2
            return Response(None, 304, headers)
        return Response(picture.content, 200, headers, f"image/{picture.format}")

    async def get_metrics(self, request: Request) -> Response:
        last = self.health.last
        display_up = last is not None and last["display"] == "ok"
        gauges = {
            "deskhand_display_up": (
                "Whether the display answered the last probe.",
                float(display_up),
            ),
            "deskhand_lease_held": ("Whether a session has the desktop.", float(self.served.leases.holder is not None)),
            "deskhand_batches_waiting": ("Batches that run or wait for their turn.", float(self.served.waiting)),
            "deskhand_answers_repeated_total": ("Answered from memory.", float(self.acting.answers.repeated)),
        }
        return Response(self.metrics.text(gauges), headers={"Content-Type": CONTENT_TYPE})

    # -- acting -----------------------------------------------------------------------------------------------------

    async def post_act(self, request: Request) -> Response:
        return await self.acting(request)

    async def post_outcome(self, request: Request) -> Response:
        given = await fields_of(request, ok=boolean, text=text(2000), used=count, limit=count)
        if "ok" not in given or "text" not in given:
            raise Problem("refused", "an outcome has ok and text")
        told = Told(session_of(request), given["ok"], given["text"], used=given.get("used"), limit=given.get("limit"))
        self.served.tell(told)
        return Response(None, 204)

    async def post_lease(self, request: Request) -> Response:
        given = await fields_of(
            request, holder=text(100), ttl=seconds(0.1, LONGEST_LEASE), wait=seconds(0, LONGEST_WAIT)
        )
        if "holder" not in given:
            raise Problem("refused", "a lease needs a holder: the name that others are told")
        ttl = given.get("ttl", 300.0)
        taking = asyncio.create_task(self.served.leases.take(given["holder"], ttl, given.get("wait", 0.0)))
        leaving = asyncio.create_task(disconnected(request))
        try:
            await asyncio.wait([taking, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not taking.done() or leaving.done():
                taking.cancel()
                with contextlib.suppress(asyncio.CancelledError, DeskhandError, Problem):
                    await self.served.leases.give_back(await taking)  # nobody is there to use it
                return Problem("stopped", "the client went away").response()
            return json_response({"lease": taking.result(), "holder": given["holder"], "ttl": ttl}, 201)
        finally:
            leaving.cancel()
            taking.cancel()

    async def patch_lease(self, request: Request) -> Response:
        given = await fields_of(request, ttl=seconds(0.1, LONGEST_LEASE))
        ttl = given.get("ttl", 300.0)
        holder = await self.served.leases.renew(lease_of(request) or "", ttl)
        return json_response({"holder": holder, "ttl": ttl})

    async def delete_lease(self, request: Request) -> Response:
        await self.served.release(session_of(request))
        token = lease_of(request)
        if token is not None:
            await self.served.leases.give_back(token)
        return Response(None, 204)


def create_app(
    served: ServedDesktop,
    health: Health,
    access: Access,
    extend: Callable[[FastAPI, Computerd], Callable[[Any], bool]] | None = None,
) -> ASGIApp:
    """The whole ASGI app; it opens ``served`` when it starts and closes it when it ends.

    ``extend`` adds routes of others (the live view), and gives what tells whether a request holds a ticket of theirs.
    """
    computerd = Computerd(served, health)
    app = routes(computerd)
    ticket = extend(app, computerd) if extend is not None else (lambda scope: False)
    guarded = Guard(WholeBodies(app), access.token, access.hosts, access.origins, ticket)
    return Logged(SlowRefusals(guarded), computerd.metrics)


def routes(computerd: Computerd) -> FastAPI:
    """The routes alone, with their OpenAPI document."""
    mounted = LateMcp(computerd.served, computerd.facts)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(computerd.health.aclose)
            await stack.enter_async_context(computerd.served)
            await stack.enter_async_context(mounted.running())
            yield

    app = FastAPI(
        title="computerd",
        version=version("deskhand"),
        summary="One Linux desktop over HTTP.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    add_routes(app, computerd)
    app.router.routes.append(Route("/mcp", mounted))
    made = app.openapi

    def document() -> dict[str, Any]:
        return openapi.complete(made())

    app.openapi = document  # type: ignore[method-assign]
    app.add_exception_handler(HTTPException, _http_error)  # type: ignore[arg-type]
    for kind in (DeskhandError, Problem, Exception):
        app.add_exception_handler(kind, _error)
    return app


def _facts(served: ServedDesktop) -> dict[str, Any]:
    """What ``GET /info`` tells beside what the display itself does."""
    display, _ = served.place
    desktop = state.find_desktop(display) if display is not None else None
    return {
        "session": str(desktop.get("session", "unknown")) if desktop is not None else "unknown",
        "launcher": served.has_launcher,
        "launching": "by_name" if served.has_launcher else "not_here",
        "version": version("deskhand"),
        "limits": {
            "actions": MAX_ACTIONS,
            "request_bytes": MAX_REQUEST,
            "picture_edge": MAX_EDGE,
            "picture_bytes": MAX_BYTES,
        },
    }


async def _error(request: Request, error: Exception) -> Response:
    if isinstance(error, Problem):
        return error.response()
    return problem_of(error)


async def _http_error(request: Request, error: HTTPException) -> Response:
    kinds = {404: ("not_found", "there is nothing at this path: see /openapi.json")}
    kinds[405] = ("method", "this path has no such method: see /openapi.json")
    kind, detail = kinds.get(error.status_code, ("malformed", str(error.detail)))
    headers = dict(error.headers or {})
    if kind == "method":
        headers["Allow"] = ", ".join(_methods_of(request))
    return Problem(kind, detail, headers).response()


def _methods_of(request: Request) -> list[str]:
    """What the path of a request can be asked with; each method is a route of its own."""
    scope = {**request.scope, "path_params": {}}
    found: set[str] = set()
    for route in request.app.routes:
        match, _ = route.matches(scope)
        if match is not Match.NONE:
            found |= set(getattr(route, "methods", None) or ())
    return sorted(found)
