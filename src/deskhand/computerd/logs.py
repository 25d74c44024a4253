"""The log: one JSON object a line on standard error. Nothing of a request's headers, query or body stands in it."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deskhand.computerd.metrics import Metrics
from deskhand.computerd.problems import KIND

_LOG = logging.getLogger("deskhand.computerd")


class JsonLines(logging.Formatter):
    """``{"time", "level", "event", ...}``; the fields of ``extra={"facts": {...}}`` stand beside them."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "facts", {}))
        if record.exc_info and record.exc_info[1] is not None:
            # Where, and not what: a traceback's text may quote what was typed.
            line["error"] = _where(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True, default=str)


def set_up(level: str = "info") -> None:
    """Send this process's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    _LOG.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # Its lines quote paths with their queries.
    logging.getLogger("uvicorn.access").propagate = False


def say(event: str, level: int = logging.INFO, **facts: Any) -> None:
    _LOG.log(level, event, extra={"facts": facts})


class Logged:
    """ASGI middleware, the outermost: one line a request, and the counters."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            seconds = time.monotonic() - began
            route = scope["path"] if scope["path"] in ROUTES else "other"
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.request(method, route, status or 499, seconds)
            # Probes come every second, and say nothing while all is well.
            level = logging.DEBUG if route == "/health" and status == 200 else logging.INFO
            client = (scope.get("client") or ("",))[0]
            facts: dict[str, Any] = {
                "method": method,
                "route": route,
                "status": status or 499,
                "ms": round(seconds * 1000, 1),
            }
            if KIND in scope:
                facts["problem"] = scope[KIND]
                self._metrics.count("deskhand_problems_total", kind=scope[KIND])
            say("request", level, **facts, client=client)


#: What may stand in the log and in the metrics of a path and a method: both are the client's to choose.
ROUTES = frozenset(
    (
        "/health", "/info", "/apps", "/act", "/lease", "/screenshot", "/windows", "/outcome", "/openapi.json",
        "/metrics", "/mcp", "/live", "/live/stream", "/live/tickets",
    )
)  # fmt: skip
METHODS = frozenset(("GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"))


def _where(error: BaseException) -> str:
    place, code = "", error.__traceback__
    while code is not None:
        place = f" at {code.tb_frame.f_code.co_filename.rpartition('/')[2]}:{code.tb_lineno}"
        code = code.tb_next
    return f"{type(error).__name__}{place}"
