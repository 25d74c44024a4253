"""The routes of the status page.

As at the live view: ``POST /fleet/tickets`` is for who has the token, ``GET /fleet?ticket=T`` exchanges a ticket for a
cookie, and everything else of the page needs the cookie, or the token. ``/metrics`` needs the token.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Collection
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from deskhand.computerd.auth import Guard
from deskhand.computerd.bodies import WholeBodies
from deskhand.computerd.live.entry import Entry
from deskhand.computerd.live.page import HEADERS, WebPage
from deskhand.computerd.live.tickets import TICKET_SECONDS, Tickets
from deskhand.computerd.metrics import CONTENT_TYPE
from deskhand.computerd.problems import Problem
from deskhand.computerd.refusals import SlowRefusals
from deskhand.fleet import metrics
from deskhand.fleet.page.news import News

#: Those who may watch at once.
MOST_VIEWERS = 32
#: Seconds without news after which a stream says that it is still there.
_QUIET = 15.0
_HERE, _LIVE = "deskhand.fleet.page", "deskhand.computerd.live"
_PAGE = WebPage(
    path="fleet",
    shows="fleet",
    package=_HERE,
    files={"live.css": _LIVE, "fleet.css": _HERE, "chart.js": _HERE, "fleet.js": _HERE},
    again="Ask for an address with <code>deskhand fleet status</code> where the fleet was started.",
)
_OPEN_TO_COOKIES = frozenset({"/fleet/session", "/fleet/state", "/fleet/changes", *_PAGE.paths})


class Page:
    """What is served of a fleet; ``token`` is the token's digest."""

    def __init__(self, news: News, token: bytes) -> None:
        self._news = news
        self._tickets = Tickets(token)
        self._entry = Entry(self._tickets, _PAGE)
        self._began = time.time()
        self._viewers = 0

    def app(self, token: bytes, hosts: Collection[str]) -> ASGIApp:
        """The whole ASGI app; ``hosts`` are names it is known under, see ``Guard``."""
        app = Starlette(
            routes=[
                Route("/health", self.get_health),
                Route("/metrics", self.get_metrics),
                Route("/fleet", self.get_page),
                Route("/fleet/tickets", self.post_ticket, methods=["POST"]),
                Route("/fleet/session", self.get_session),
                Route("/fleet/state", self.get_state),
                Route("/fleet/changes", self.get_changes),
                *_PAGE.routes(),
            ],
            exception_handlers={HTTPException: _http_error, Problem: _problem},  # type: ignore[dict-item]
        )
        app.router.redirect_slashes = False
        return SlowRefusals(Guard(WholeBodies(app), token, hosts, (), self._admits, "this page"))

    def _admits(self, scope: Any) -> bool:
        """Whether a request without the token may pass: the page, which says what is missing, and its own parts."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return False
        path = scope["path"]
        return path == "/fleet" or (path in _OPEN_TO_COOKIES and self._entry.by_cookie(scope) is not None)

    async def get_health(self, request: Request) -> Response:
        ok = self._news.health is not None and bool(self._news.health["ok"])
        return _json({"ok": ok}, 200 if ok else 503)

    async def get_metrics(self, request: Request) -> Response:
        if self._news.health is None:
            raise Problem("busy", "nothing has been heard of the fleet yet: ask again in a moment")
        return Response(metrics.text(self._news.health, self._began), headers={"Content-Type": CONTENT_TYPE})

    async def post_ticket(self, request: Request) -> Response:
        ticket = self._tickets.new(control=False)
        return _json({"ticket": ticket, "expires_in": TICKET_SECONDS, "url": f"/fleet?ticket={ticket}"}, 201)

    async def get_page(self, request: Request) -> Response:
        return self._entry.answer(request)

    async def get_session(self, request: Request) -> Response:
        viewer = self._entry.by_cookie(request.scope)
        return _json({"until": viewer.until if viewer is not None else None})

    async def get_state(self, request: Request) -> Response:
        return _json(self._news.since(0))

    async def get_changes(self, request: Request) -> Response:
        """Server-sent events (HTML Standard, section 9.2): how it is, whenever that changes."""
        if self._viewers >= MOST_VIEWERS:
            raise Problem("busy", "too many watch already: try again later")
        viewer = self._entry.by_cookie(request.scope)
        until = viewer.until if viewer is not None else time.time() + TICKET_SECONDS * 60
        return StreamingResponse(self._events(until), headers=HEADERS, media_type="text/event-stream")

    async def _events(self, until: float) -> AsyncIterator[str]:
        self._viewers += 1
        try:
            version, taken = -1, 0
            while not self._news.over:
                if time.time() >= until:
                    yield "event: over\ndata: {}\n\n"
                    return
                if self._news.health is not None and self._news.version != version:
                    version, told = self._news.version, self._news.since(taken)
                    taken = self._news.taken
                    yield f"event: state\ndata: {_dumped(told)}\n\n"
                else:
                    try:
                        async with asyncio.timeout(_QUIET):
                            await self._news.change()
                    except TimeoutError:
                        yield ": still here\n\n"
        finally:
            self._viewers -= 1


async def _problem(request: Request, error: Problem) -> Response:
    return error.response()


async def _http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        return Problem("method", "this path has no such method", dict(error.headers or {})).response()
    return Problem("not_found", "there is nothing at this path: the page is at /fleet").response()


def _json(value: Any, status: int = 200) -> Response:
    return Response(_dumped(value), status, HEADERS, "application/json")


def _dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), default=str)
