"""The live view's routes, and what lets a browser in that can set no header.

``POST /live/tickets`` is for who has the token. ``GET /live?ticket=T`` exchanges a ticket for a cookie; the page, its
files and its stream need the cookie.
"""

from __future__ import annotations

import itertools
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from deskhand.computerd import openapi
from deskhand.computerd.acting import json_response
from deskhand.computerd.auth import values
from deskhand.computerd.fields import boolean, fields_of
from deskhand.computerd.live.audience import Audience
from deskhand.computerd.live.control import SILENCE, Control
from deskhand.computerd.live.entry import Entry, query
from deskhand.computerd.live.page import WebPage
from deskhand.computerd.live.stream import PATIENCE, Stream
from deskhand.computerd.live.tickets import TICKET_SECONDS, Tickets, Viewer
from deskhand.computerd.problems import Problem
from deskhand.computerd.served import ServedDesktop

_HERE = "deskhand.computerd.live"
_PAGE = WebPage(
    path="live",
    shows="desktop",
    package=_HERE,
    files={"live.css": _HERE, "live.js": _HERE, "marks.js": "deskhand.trace"},
    again="Open it with <code>deskhand view</code> on a machine that has computerd's token.",
)
_PATHS = frozenset({"/live", "/live/session", "/live/stream", *_PAGE.paths})


class LiveView:
    """The live view of ``served``, for who shows the token with this digest.

    Args:
        served: The desktop.
        token: The token's digest.
        control: Whether a person may take over here.
        patience: Seconds that a viewer has for a turn, see ``Stream``.
        silence: Seconds after which a person who does nothing gives the desktop back.
    """

    def __init__(
        self,
        served: ServedDesktop,
        token: bytes,
        control: bool = False,
        patience: float = PATIENCE,
        silence: float = SILENCE,
    ) -> None:
        self._tickets = Tickets(token)
        self._entry = Entry(self._tickets, _PAGE)
        self._patience = patience
        self._may_control = control
        self._numbers = itertools.count(1)
        self.audience = Audience(served, Control(served, silence) if control else None)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_api_route(
            "/live/tickets",
            self.post_ticket,
            methods=["POST"],
            name="post /live/tickets",
            operation_id="post_live_tickets",
            response_class=Response,
            status_code=201,
            responses={int(status): what for status, what in _TICKET_RESPONSES.items()},
            openapi_extra={"summary": "A ticket for the live view", "requestBody": _TICKET_BODY},
        )
        app.router.routes += [
            Route("/live", self.get_page),
            Route("/live/session", self.get_session),
            WebSocketRoute("/live/stream", self.stream),
            *_PAGE.routes(),
        ]

    def admits(self, scope: Any) -> bool:
        """Whether a request without the token may pass: the live view's own with a cookie, and the page itself.

        The page says in words what is missing; everything else of it needs the cookie, or for the stream a ticket.
        """
        path = scope["path"]
        if path not in _PATHS or (scope["type"] == "http" and scope["method"] not in ("GET", "HEAD")):
            return False
        if path == "/live":
            return True
        if self._entry.by_cookie(scope) is not None:
            return True
        # Used up by the stream itself.
        ticket = query(scope, "ticket") if path == "/live/stream" else None
        return ticket is not None and self._tickets.is_good(ticket)

    # -- routes -----------------------------------------------------------------------------------------------------

    async def post_ticket(self, request: Request) -> Response:
        given = await fields_of(request, control=boolean) if await request.body() else {}
        control = self._may_control and given.get("control", True)
        ticket = self._tickets.new(control)
        answer = {
            "ticket": ticket,
            "expires_in": TICKET_SECONDS,
            "url": f"/live?ticket={ticket}",
            "control": control,
        }
        return json_response(answer, 201)

    async def get_page(self, request: Request) -> Response:
        return self._entry.answer(request)

    async def get_session(self, request: Request) -> Response:
        viewer = self._entry.by_cookie(request.scope)
        if viewer is None:  # it has the token
            raise Problem(
                "unauthorized", "this is the page's own: POST /live/tickets, and open the address you are given"
            )
        return json_response({"control": viewer.control, "until": viewer.until})

    async def stream(self, socket: WebSocket) -> None:
        viewer = self._entry.by_cookie(socket.scope)
        if viewer is None:
            ticket = query(socket.scope, "ticket")
            viewer = self._tickets.spend(ticket) if ticket is not None else None
        # That it is the page's own has been looked at before (``Guard``); here only that there is one at all: a
        # browser always sends it, and its cookie with every connection that any page opens.
        if viewer is None or not values(dict(socket.scope), b"origin"):
            await socket.close(1008)
            return
        viewer = Viewer(viewer.control and self._may_control, viewer.until)
        await Stream(self.audience, socket, viewer, next(self._numbers), self._patience).run()


_TICKET_BODY: dict[str, Any] = {
    "required": False,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"control": {"type": "boolean", "description": "false: it only shows"}},
                "additionalProperties": False,
            }
        }
    },
}
_TICKET_RESPONSES = {
    "201": openapi.answer(
        "It is good once, for a minute, at the address `url` of this server.",
        openapi.of(
            ticket={"type": "string"},
            expires_in={"type": "integer"},
            url={"type": "string"},
            control={"type": "boolean"},
        ),
    ),
    **openapi.problems(422),
}
