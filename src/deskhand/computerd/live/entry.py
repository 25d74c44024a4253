"""How a browser gets in to a page of ours: a ticket in the address is exchanged for a cookie, and the page follows."""

from __future__ import annotations

import base64
import hashlib
import html
import time
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from deskhand.computerd.auth import values
from deskhand.computerd.live.page import HEADERS, WebPage
from deskhand.computerd.live.tickets import Tickets, Viewer

_STYLE = (
    ":root{color-scheme:light dark}body{font:1.05rem/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;"
    "padding:0 1.5rem}h1{font-size:1.3rem}code{font-family:ui-monospace,monospace}"
)


class Entry:
    """Lets browsers in to a page, and to what lies under its path.

    ``tickets`` says which tickets and cookies are good.
    """

    def __init__(self, tickets: Tickets, page: WebPage) -> None:
        self._tickets = tickets
        self._page = page

    def answer(self, request: Request) -> Response:
        """What a request for the page is answered: the page, or its cookie for a ticket, or what is missing."""
        ticket = query(request.scope, "ticket")
        if ticket is not None:
            viewer = self._tickets.spend(ticket)
            if viewer is None:
                return words("This ticket was used, or is over", self._page.again, 401)
            return self._let_in(request, viewer)
        if self.by_cookie(request.scope) is None:
            return words(f"You are not signed in to this {self._page.shows}", self._page.again, 401)
        return Response(self._page.markup(), headers=HEADERS, media_type="text/html")

    def _let_in(self, request: Request, viewer: Viewer) -> Response:
        """Give the browser its cookie, and the page by a way that sends the cookie along."""
        # A page that goes on by itself, and no redirect: after a link on another site a browser would follow that
        # without the cookie, which is SameSite=Strict (RFC 6265bis, section 5.2).
        root = str(request.scope.get("root_path", "")).rstrip("/")
        go_on = f'If nothing happens, <a href="{self._page.path}">go on</a>.'
        response = words(f"Opening the {self._page.shows}", go_on, 200, self._page.path)
        response.set_cookie(
            self._tickets.cookie_name,
            self._tickets.cookie(viewer),
            max_age=viewer.until - int(time.time()),
            path=f"{root}/{self._page.path}",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def by_cookie(self, scope: Any) -> Viewer | None:
        """Who a request's cookie lets in."""
        for given in values(scope, b"cookie"):
            jar = SimpleCookie()
            try:
                jar.load(given)
            except CookieError:
                continue
            if self._tickets.cookie_name in jar:
                return self._tickets.viewer(jar[self._tickets.cookie_name].value)
        return None


def words(title: str, markup: str, status: int, on: str | None = None) -> Response:
    """A page that only says something; ``on`` is where it goes to by itself."""
    go = f'<meta http-equiv="refresh" content="0;url={on}">' if on else ""
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{go}<title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><h1>{html.escape(title)}</h1><p>{markup}</p></body></html>"
    )
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; frame-ancestors 'none'"
    return Response(page, status, {**HEADERS, "Content-Security-Policy": policy}, "text/html")


def query(scope: Any, name: str) -> str | None:
    """The first value of a parameter in the address."""
    found = parse_qs(scope["query_string"].decode("latin-1")).get(name)
    return found[0] if found else None
