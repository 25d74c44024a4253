"""Who may ask: Host, Origin, the body's type and the token, looked at before anything else is done with a request.

Sources: RFC 9110, HTTP Semantics (Host, 401); RFC 6454, The Web Origin Concept; RFC 6750, Bearer Token Usage.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from deskhand.computerd.bodies import discard
from deskhand.computerd.problems import Problem

#: Names of this machine to itself: no page elsewhere can make a browser send them for an address of its own.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
#: Needs no token; tells nothing that is secret.
OPEN = frozenset({"/health"})
#: In the scope of a request until it has shown the token: its connection is the first to be closed when places lack.
STRANGER = "deskhand.stranger"


def digest(token: str | bytes) -> bytes:
    """What is kept of a token, and compared: of equal length whatever was sent."""
    return hashlib.sha256(token if isinstance(token, bytes) else token.encode()).digest()


class Guard:
    """ASGI middleware that answers what may not be asked.

    Args:
        app: What stands behind it.
        token: The digest of the token.
        hosts: Host names, without port, under which computerd is known, beside this machine's own and the address that
            the connection came in on.
        origins: Origins (``https://desk.example``) whose pages may ask, beside the one the request itself goes to.
        ticket: Tells whether a request that can have no header, a browser's, holds a ticket in place of the token.
        what: Who serves, in the words of a refusal.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: bytes,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
        ticket: Callable[[Scope], bool] = lambda scope: False,
        what: str = "computerd",
    ) -> None:
        self._app = app
        self._token = token
        self._hosts = LOOPBACK | {host.casefold() for host in hosts}
        self._origins = {origin.casefold() for origin in origins}
        self._ticket = ticket
        self._what = what

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        scope[STRANGER] = True
        try:
            self._check(scope)
        except Problem as problem:
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": problem.kind})
                return
            await discard(receive)
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        host = self._check_host(scope)
        self._check_origin(scope, host)
        if scope["type"] == "http":
            _check_framing(scope)
            _check_body_type(scope)
        if self._knows_token(scope):
            del scope[STRANGER]
            return
        if scope["path"] not in OPEN and not self._ticket(scope):
            raise Problem(
                "unauthorized",
                "the bearer token is missing or wrong: send 'Authorization: Bearer TOKEN'",
                {"WWW-Authenticate": 'Bearer realm="deskhand"'},
            )
        if scope["type"] == "http" and _has_body(scope):
            # It would be read into memory, and waited for.
            raise Problem("malformed", "without the token there is no body: leave it out", {"Connection": "close"})

    def _check_host(self, scope: Scope) -> str:
        given = values(scope, b"host")
        name = _host_name(given[0]) if len(given) == 1 else ""
        here = (scope.get("server") or ("",))[0]
        if name and (name in self._hosts or name == str(here).casefold()):
            return given[0].casefold()
        raise Problem(
            "foreign",
            f"{self._what} is not known as {_short(', '.join(given))}: ask under one of its own names, or start it with"
            " --allow-host NAME",
        )

    def _check_origin(self, scope: Scope, host: str) -> None:
        for origin in values(scope, b"origin"):
            known = origin.casefold()
            if known in self._origins or known in (f"http://{host}", f"https://{host}"):
                continue
            raise Problem(
                "foreign",
                f"a page from {_short(origin)} may not ask: open {self._what}'s own page, or start it with"
                " --allow-origin ORIGIN",
            )

    def _knows_token(self, scope: Scope) -> bool:
        given = values(scope, b"authorization")
        scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        same = hmac.compare_digest(digest(token.strip().encode("latin-1")), self._token)
        return same and scheme.casefold() == "bearer"


def values(scope: Scope, name: bytes) -> list[str]:
    """The values of a header, one for each time that it stands in the request."""
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]


def _host_name(host: str) -> str:
    """The name in a Host header, without port, in lower case; "" when it is none."""
    try:
        parts = urlsplit(f"//{host}")
        valid = parts.port is not None or not host.endswith(":")
        return (parts.hostname or "") if valid and parts.netloc == host and "@" not in host else ""
    except ValueError:
        return ""


def _has_body(scope: Scope) -> bool:
    lengths = values(scope, b"content-length")
    return bool(values(scope, b"transfer-encoding")) or any(length.strip("0") for length in lengths)


def _check_framing(scope: Scope) -> None:
    """A body whose end another server, before this one, may see elsewhere (RFC 9112, section 6.3)."""
    if values(scope, b"transfer-encoding") and (values(scope, b"content-length") or scope["http_version"] == "1.0"):
        raise Problem(
            "malformed",
            "Transfer-Encoding goes with HTTP/1.1 and without Content-Length: send one of the two",
            {"Connection": "close"},
        )


def _check_body_type(scope: Scope) -> None:
    given = values(scope, b"content-type")
    if not given and not _has_body(scope):
        return
    kind, _, rest = (given[0] if len(given) == 1 else "").partition(";")
    charset = rest.strip().casefold()
    if kind.strip().casefold() == "application/json" and charset in ("", "charset=utf-8", 'charset="utf-8"'):
        return
    raise Problem("not_json", "bodies are JSON in UTF-8: send 'Content-Type: application/json'")


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else shown[:80] + "...'"
