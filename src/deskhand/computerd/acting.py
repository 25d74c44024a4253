"""``POST /act``: one batch, from the request's body to the answer with its picture."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from deskhand.backends.base import Outcome
from deskhand.computerd.auth import digest
from deskhand.computerd.idempotency import Answers, Run
from deskhand.computerd.metrics import Metrics
from deskhand.computerd.problems import Problem, problem_of, respond
from deskhand.computerd.served import ServedDesktop, told_of
from deskhand.errors import BatchRefused, DeskhandError, DisplayLost
from deskhand.hand.envelope import parse_batch
from deskhand.hand.resident import read_request

#: Characters of a session's name at most.
LONGEST_NAME = 100
#: Characters of a lease's token and of an Idempotency-Key at most.
LONGEST_TOKEN = 200
_NAME = re.compile("[!-~]+")
_STOPPED = (
    "the client went away in the middle, so the batch was stopped and what it held was released: look before anything"
    " is sent again"
)


class Acting:
    """Runs batches for clients; ``metrics`` counts what they come to."""

    def __init__(self, served: ServedDesktop, metrics: Metrics) -> None:
        self._served = served
        self._metrics = metrics
        self.answers = Answers()

    async def __call__(self, request: Request) -> Response:
        body = await request.body()
        wants_json = accepts_json(request)
        session, lease = session_of(request), lease_of(request)

        def work() -> Run:
            gone = asyncio.Event()
            return Run(asyncio.create_task(self._run(body, session, lease, wants_json, gone)), gone)

        key = name_in(request, "Idempotency-Key")
        if key is None:
            run = work()
        else:
            # All that decides about the answer belongs to the request that the key stands for.
            whole = b"\0".join((body, session.encode(), b"json" if wants_json else b""))
            run = self.answers.once(key, whole, work)
        repeated = run.waiting > 0 or run.answer.done()
        await wait_unless_gone(request, run)
        if not run.answer.done():
            return Problem("stopped", _STOPPED, sent="unknown").response()  # nobody is there to read it
        response = run.answer.result()
        if not repeated:
            return response
        again = Response(response.body, response.status_code, dict(response.headers))
        again.headers["Idempotency-Replayed"] = "true"
        return again

    async def _run(
        self, body: bytes, session: str, lease: str | None, wants_json: bool, gone: asyncio.Event
    ) -> Response:
        batch: Any = None
        try:
            batch = read_request(body)
            parse_batch(batch)
        except BatchRefused as error:
            self._served.tell(told_of(session, error, batch))
            return problem_of(error, batch)
        try:
            running = self._served.begin(batch, session, lease)
        except DeskhandError as error:
            return problem_of(error, batch)
        except Problem as problem:
            return problem.response()
        ended: asyncio.Future[Any] = asyncio.wrap_future(running.outcome)
        leaving: asyncio.Future[Any] = asyncio.ensure_future(gone.wait())
        outcome: Outcome | None = None
        gone_at = 0.0
        try:
            await asyncio.wait((ended, leaving), return_when=asyncio.FIRST_COMPLETED)
            gone_at = time.monotonic()
            if not ended.done():
                await asyncio.wrap_future(running.stop())
            outcome = await ended
        except DeskhandError as error:
            return self._problem(error, batch, gone.is_set())
        except asyncio.CancelledError:
            if not running.outcome.cancelled():
                raise
            why = "its client had gone away" if gone.is_set() else "computerd ends"
            return Problem("stopped", f"the batch was not begun, because {why}: nothing was sent").response()
        finally:
            leaving.cancel()
            self._served.ended(running, session, outcome)
            if gone.is_set() and lease is not None:
                await self._served.leases.client_lost(lease, gone_at)
        self._metrics.batch(outcome.results, str(outcome.answer["settle"]))
        return respond_with(outcome, wants_json)

    def _problem(self, error: DeskhandError, batch: Any, stopped: bool) -> Response:
        if isinstance(error, DisplayLost) and stopped:
            # The connection was cut because its batch was far from its next action.
            known = error.facts.get("answer", {})
            return respond({**known, "ok": False, "sent": "unknown", "kind": "stopped", "error": _STOPPED})
        return problem_of(error, batch, "not_now" if isinstance(error, BatchRefused) else None)


async def wait_unless_gone(request: Request, run: Run) -> None:
    """Wait for an answer as long as its client does; what nobody waits for any more is told so."""
    leaving = asyncio.create_task(disconnected(request))
    run.waiting += 1
    try:
        await asyncio.wait([run.answer, leaving], return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        run.waiting -= 1
        if not run.waiting and not run.answer.done():
            run.gone.set()


async def disconnected(request: Request) -> None:
    """Returns when the client of a request, whose body was read, has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def accepts_json(request: Request) -> bool:
    """Whether the client asks for JSON by name, and not for everything."""
    accepted = [part.partition(";")[0].strip().casefold() for part in request.headers.get("accept", "").split(",")]
    return "application/json" in accepted and "multipart/mixed" not in accepted


def session_of(request: Request) -> str:
    """The session that a request belongs to: the one it names, else its lease's; else that of all who name none."""
    name, lease = name_in(request, "Deskhand-Session", LONGEST_NAME), lease_of(request)
    return name or (f"lease {digest(lease).hex()[:16]}" if lease else "")


def lease_of(request: Request) -> str | None:
    """The token of the lease that a request shows."""
    return name_in(request, "Deskhand-Lease")


def name_in(request: Request, header: str, longest: int = LONGEST_TOKEN) -> str | None:
    """What a header of a request names; None without it.

    Raises:
        Problem: It is no name.
    """
    name = request.headers.get(header)
    if name is None or (_NAME.fullmatch(name) and len(name) <= longest):
        return name
    raise Problem("refused", f"{header} has 1 to {longest} printable ASCII characters without spaces")


def respond_with(outcome: Outcome, wants_json: bool) -> Response:
    """The answer: JSON, and the picture's bytes as a second part, or in it as base64 (RFC 2046, Multipart)."""
    answer = dict(outcome.answer)
    if outcome.picture is None:
        return json_response(answer)
    if wants_json:
        encoded = base64.b64encode(outcome.picture).decode("ascii")
        return json_response({**answer, "picture": {**answer["picture"], "base64": encoded}})
    boundary = f"deskhand-{secrets.token_hex(12)}"
    parts = (("application/json", encode(answer)), (f"image/{answer['picture']['format']}", outcome.picture))
    body = b"".join(
        f"--{boundary}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content + b"\r\n"
        for kind, content in parts
    )
    return Response(body + f"--{boundary}--\r\n".encode(), media_type=f'multipart/mixed; boundary="{boundary}"')


def json_response(value: Any, status: int = 200) -> Response:
    return Response(encode(value), status, media_type="application/json")


def encode(value: Any) -> bytes:
    # What X clients call themselves may hold half of a surrogate pair, which only an escape can tell.
    return json.dumps(value).encode()
