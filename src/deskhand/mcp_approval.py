"""What needs a person, asked through an MCP client: by elicitation, where the client can show a question.

Up to protocol 2025-11-25 the server asks in the middle of the call. From 2026-07-28 on it answers the call with what it
wants to know, and the client calls again with the person's answer; in between the session is parked.

MCP specification: Elicitation (form mode); Multi Round-Trip Requests.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from deskhand.approvals import Answer, Ask, Declined, declined
from deskhand.errors import DeskhandError
from deskhand.extras import needs
from deskhand.session import Session
from deskhand.turns import PARKED

with needs("The MCP server", "mcp", "mcp", "mcp_types"):
    import mcp_types as types
    from mcp.server import ServerRequestContext
    from mcp.shared.exceptions import MCPError
    from mcp_types.version import is_version_at_least

#: The first protocol in which a server answers a call with its question.
_ROUND_TRIPS = "2026-07-28"
#: The name of the one question of a call.
_QUESTION = "allow"
#: Accepting it is the answer: there is nothing to fill in.
_FORM = {"type": "object", "properties": {}}
#: Seconds in which a client may come back with an answer: nobody tells when it does not. The SDK's own for such state.
_COMES_BACK = 600.0
#: Calls that may wait for an answer at a time; the oldest is given up for a new one.
_MOST_WAITING = 16


@dataclass
class _Waiting:
    """A call that was answered with a question."""

    call: str
    asks: list[Ask]
    parked: AsyncExitStack
    began: float
    started: float
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)


class ClientApproval:
    """Asks the person at an MCP client, for the calls of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: dict[str, _Waiting] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def ask(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams, asks: Sequence[Ask]
    ) -> types.InputRequiredResult | None:
        """Ask for all of ``asks``: None when they are allowed, or the question that the client has to answer first.

        Raises:
            Declined: They are not allowed, or the client can not ask; worded for the model.
            DesktopInUse: Another session has the desktop.
        """
        if not _can_ask(ctx):
            for ask in asks:
                self._session.answered(ask, "nobody")
            raise Declined(
                f"this needs a person to allow it ({_reasons(asks)}), and this client can not ask one: it has no"
                " elicitation. Tell the user; whoever runs the server can start it with --approve, or without the --ask"
                " for this",
                asks[0].call,
            )
        if is_version_at_least(ctx.protocol_version, _ROUND_TRIPS):
            return await self._park(params, asks)
        began, started = time.time(), time.monotonic()
        answer: Answer = "cancelled"
        try:
            async with self._session.parked():
                answer = await _elicit(ctx, _message(asks))
        finally:
            self._record(asks, answer, began, time.monotonic() - started)
        _judge(asks, answer)
        return None

    async def resume(self, params: types.CallToolRequestParams) -> list[Ask]:
        """What was asked, and allowed, for a call that comes again with an answer; nothing for one that was not asked.

        Raises:
            Declined: The person said no; or this is not the call that was asked about.
        """
        waiting = self._waiting.pop(params.request_state or "", None)
        if waiting is None:
            return []
        told = (params.input_responses or {}).get(_QUESTION)
        answer: Answer = "no answer"
        if waiting.call != _identity(params):
            answer = "cancelled"
        elif isinstance(told, types.ElicitResult):
            answer = _ANSWERS[told.action]
        await self._end(waiting, answer)
        _judge(waiting.asks, answer)
        return waiting.asks

    async def aclose(self) -> None:
        """Nobody will bring an answer any more."""
        for state in list(self._waiting):
            await self._end(self._waiting.pop(state), "no answer")

    async def _park(self, params: types.CallToolRequestParams, asks: Sequence[Ask]) -> types.InputRequiredResult:
        while len(self._waiting) >= _MOST_WAITING:
            await self._end(self._waiting.pop(next(iter(self._waiting))), "no answer")
        parked = AsyncExitStack()
        await parked.enter_async_context(self._session.parked())
        state = secrets.token_urlsafe(16)
        waiting = _Waiting(_identity(params), list(asks), parked, time.time(), time.monotonic())
        self._waiting[state] = waiting
        waiting.timer = asyncio.get_running_loop().call_later(_COMES_BACK, self._give_up, state)
        question = types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=_message(asks), requested_schema=_FORM)
        )
        return types.InputRequiredResult(input_requests={_QUESTION: question}, request_state=state)

    def _give_up(self, state: str) -> None:
        waiting = self._waiting.pop(state, None)
        if waiting is not None:
            task = asyncio.get_running_loop().create_task(self._end(waiting, "no answer"))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _end(self, waiting: _Waiting, answer: Answer) -> None:
        if waiting.timer is not None:
            waiting.timer.cancel()
        try:
            await waiting.parked.aclose()
        finally:
            self._record(waiting.asks, answer, waiting.began, time.monotonic() - waiting.started)

    def _record(self, asks: Sequence[Ask], answer: Answer, began: float, elapsed: float) -> None:
        # A trace that can not be written fails again, and is told, with the batch.
        with suppress(DeskhandError):
            for ask in asks:
                self._session.answered(ask, answer, began, elapsed)


_ANSWERS: dict[str, Answer] = {"accept": "allowed", "decline": "declined", "cancel": "no answer"}


async def _elicit(ctx: ServerRequestContext[Any], message: str) -> Answer:
    try:
        async with asyncio.timeout(PARKED):
            result = await ctx.session.elicit_form(message, _FORM, related_request_id=ctx.request_id)
    except TimeoutError:
        return "no answer"
    except MCPError:
        return "nobody"  # it said that it can ask, and then did not
    return _ANSWERS[result.action]


def _judge(asks: Sequence[Ask], answer: Answer) -> None:
    if answer == "allowed":
        return
    if answer == "declined":
        raise Declined(declined(asks[0]), asks[0].call)
    if answer == "cancelled":
        raise Declined(
            "the answer belongs to another call, so nothing of this one was done: send it again without the answer"
        )
    raise Declined(
        f"the user was asked to allow this ({_reasons(asks)}) and gave no answer: speak with the user before you try it"
        " again",
        asks[0].call,
    )


def _can_ask(ctx: ServerRequestContext[Any]) -> bool:
    """Whether the client shows forms; one that names no mode is of the time when there was no other."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _reasons(asks: Sequence[Ask]) -> str:
    return "; ".join(dict.fromkeys(ask.reason for ask in asks))


def _message(asks: Sequence[Ask]) -> str:
    return f"The agent wants to use your desktop: {_reasons(asks)}. Allow it?"


def _identity(params: types.CallToolRequestParams) -> str:
    return json.dumps([params.name, params.arguments], sort_keys=True)
