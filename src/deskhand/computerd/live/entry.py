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
from deskhand.computerd.live.tickets import Tickets, Viewer

#: Content Security Policy Level 3: own files only, no script or style in the markup, nobody frames it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Of every answer that is a page or a part of one.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_STYLE = (
    ":root{color-scheme:light dark}body{font:1.05rem/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto;"
    "padding:0 1.5rem}h1{font-size:1.3rem}code{font-family:ui-monospace,monospace}"
)


class Entry:
    """Lets browsers in to the page at the path ``/page``, and to what lies under it.

    Args:
        tickets: Which tickets and cookies are good.
        page: The path's one word.
        opening: What is said while the page follows.
    """

    def __init__(self, tickets: Tickets, page: str, opening: str) -> None:
        self._tickets = tickets
        self._page = page
        self._opening = opening

    def let_in(self, request: Request, viewer: Viewer) -> Response:
        """Give the browser its cookie, and the page by a way that sends the cookie along."""
        # A page that goes on by itself, and no redirect: after a link on another site a browser would follow that
        # without the cookie, which is SameSite=Strict (RFC 6265bis, section 5.2).
        root = str(request.scope.get("root_path", "")).rstrip("/")
        go_on = f'If nothing happens, <a href="{self._page}">go on</a>.'
        response = words(self._opening, go_on, 200, self._page)
        response.set_cookie(
            self._tickets.cookie_name,
            self._tickets.cookie(viewer),
            max_age=viewer.until - int(time.time()),
            path=f"{root}/{self._page}",
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
