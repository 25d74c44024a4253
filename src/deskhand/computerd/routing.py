"""The table of the routes, as requests find them and as the OpenAPI document tells them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from deskhand.computerd import openapi
from deskhand.computerd.fields import LONGEST_LEASE, LONGEST_WAIT
from deskhand.hand.picture import FORMATS

if TYPE_CHECKING:
    from deskhand.computerd.app import Computerd

Handler = Callable[[Request], Awaitable[Response]]
_STRING = {"type": "string"}
_NAME = {"type": "string", "minLength": 1, "maxLength": 100}


def add_routes(app: FastAPI, computerd: Computerd) -> None:
    session, lease = openapi.header("deskhand-session", 100), openapi.header("deskhand-lease")
    seconds = {"type": "number", "minimum": 0.1, "maximum": LONGEST_LEASE, "default": 300}
    wait = {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT, "default": 0}
    taken = openapi.of(lease=_STRING, holder=_STRING, ttl={"type": "number"})
    held = openapi.of(holder=_STRING, ttl={"type": "number"})
    part = {"type": "object", "additionalProperties": False}
    count = {"type": ["integer", "null"], "minimum": 0, "maximum": 1 << 53}

    def add(method: str, path: str, handler: Handler, extra: dict[str, Any], responses: dict[str, Any]) -> None:
        words = " ".join((handler.__doc__ or "").split())
        app.add_api_route(
            path,
            handler,
            methods=[method],
            name=f"{method.lower()} {path}",
            operation_id=f"{method.lower()}_{path.strip('/').replace('/', '_')}",
            description=words,
            response_class=Response,
            status_code=int(next(iter(responses))),
            responses={int(status): what for status, what in responses.items()},
            openapi_extra=extra,
        )

    health = openapi.of(ok={"type": "boolean"}, display=_STRING)
    add(
        "GET",
        "/health",
        computerd.get_health,
        {"summary": "Is the desktop there?", "security": []},
        {"200": openapi.answer("It is.", health), "503": openapi.answer("It is not: which part, and why.", health)}
        | {status: what for status, what in openapi.problems().items() if status in ("400", "403", "415")},
    )
    app.add_route("/health", computerd.get_health, methods=["HEAD"], include_in_schema=False)  # load balancers ask so
    size = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    info = openapi.of(display=_STRING, size=size, session=_STRING, launcher={"type": "boolean"}, limits=part | {})
    info["properties"]["limits"] = {"type": "object"}
    add(
        "GET",
        "/info",
        computerd.get_info,
        {"summary": "Size, kind of session, whether there is a launcher, limits"},
        {"200": openapi.answer("The desktop.", info), **openapi.problems()},
    )
    apps = openapi.of(apps={"type": "array", "items": openapi.ref("App")}, searched={"type": "array", "items": _STRING})
    add(
        "GET",
        "/apps",
        computerd.get_apps,
        {"summary": "The applications that can be launched"},
        {"200": openapi.answer("By the name the desktop shows.", apps), **openapi.problems(501)},
    )
    windows = openapi.of(windows={"type": "array", "items": openapi.ref("Window")})
    add(
        "GET",
        "/windows",
        computerd.get_windows,
        {"summary": "The windows"},
        {"200": openapi.answer("Those that a person could see or switch to.", windows), **openapi.problems()},
    )
    binary = {"type": "string", "contentMediaType": "application/octet-stream"}
    add(
        "GET",
        "/screenshot",
        computerd.get_screenshot,
        {
            "summary": "A picture of now",
            "parameters": [
                openapi.query("format", "of the picture", {"type": "string", "enum": list(FORMATS), "default": "png"}),
                openapi.query("max_edge", "its long edge", {"type": "integer", "minimum": 16, "maximum": 16384}),
                openapi.query("region", "x0,y0,x1,y1 in pixels of the screen", {"type": "string", "pattern": _REGION}),
                session,
                openapi.any_header("if-none-match"),
            ],
        },
        {
            "200": {
                "description": "Its facts stand in the header Deskhand-Picture.",
                "content": {f"image/{form}": {"schema": binary} for form in FORMATS},
            },
            "304": {"description": "Nothing has changed."},
            **openapi.problems(409, 422),
        },
    )
    add(
        "POST",
        "/act",
        computerd.post_act,
        {
            "summary": "Run a batch",
            "parameters": [session, lease, openapi.header("idempotency-key")],
            "requestBody": openapi.body(openapi.ref("Batch")),
        },
        {
            "200": {
                "description": "What it came to; with a picture in two parts, unless JSON is asked for by name.",
                "content": {
                    "application/json": {"schema": openapi.ref("Outcome")},
                    "multipart/mixed": {"schema": binary},
                },
            },
            **openapi.problems(409, 422, 501),
        },
    )
    outcome = {
        **part,
        "properties": {
            "ok": {"type": "boolean"},
            "text": {"type": "string", "minLength": 1, "maxLength": 2000},
            "used": count,
            "limit": count,
        },
        "required": ["ok", "text"],
    }
    add(
        "POST",
        "/outcome",
        computerd.post_outcome,
        {
            "summary": "Tell those who watch what a tool call came to, and where the budget stands",
            "parameters": [session],
            "requestBody": openapi.body(outcome),
        },
        {"204": {"description": "Told."}, **openapi.problems(422)},
    )
    wanted = {**part, "properties": {"holder": _NAME, "ttl": seconds, "wait": wait}, "required": ["holder"]}
    add(
        "POST",
        "/lease",
        computerd.post_lease,
        {"summary": "Take the desktop", "requestBody": openapi.body(wanted)},
        {
            "201": openapi.answer("Its token goes into Deskhand-Lease.", taken),
            **openapi.problems(409, 422),
        },
    )
    add(
        "PATCH",
        "/lease",
        computerd.patch_lease,
        {
            "summary": "Keep the desktop for so long from now",
            "parameters": [lease],
            "requestBody": openapi.body({**part, "properties": {"ttl": seconds}}),
        },
        {"200": openapi.answer("It is kept.", held), **openapi.problems(404, 409, 422)},
    )
    add(
        "DELETE",
        "/lease",
        computerd.delete_lease,
        {"summary": "Release what is held and give the desktop back", "parameters": [session, lease]},
        {"204": {"description": "It is given back."}, **openapi.problems(422)},
    )
    add(
        "GET",
        "/metrics",
        computerd.get_metrics,
        {"summary": "Counters, for Prometheus"},
        {"200": openapi.answer("Text.", _STRING, "text/plain"), **openapi.problems()},
    )


#: Four whole numbers.
_REGION = r"^[0-9]{1,6},[0-9]{1,6},[0-9]{1,6},[0-9]{1,6}$"
