"""A flood of refusals is thinned out, and a few are answered at once."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from starlette.types import Message, Receive, Scope, Send

from deskhand.computerd import refusals
from deskhand.computerd.refusals import A_SECOND, AT_ONCE, WAIT, Refusals, SlowRefusals


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(refusals, "time", clock)
    monkeypatch.setattr(refusals, "REFUSALS", Refusals())
    return clock


def test_a_few_are_answered_at_once_and_a_flood_is_not(clock: Clock) -> None:
    counted = Refusals()
    waits = [counted.wait() for _ in range(100)]
    assert waits == [0.0] * int(AT_ONCE) + [WAIT] * (100 - int(AT_ONCE))
    clock.now += 3600
    assert [counted.wait() for _ in range(100)] == waits, "no more than that is saved up"


def test_in_the_long_run_it_is_so_many_a_second(clock: Clock) -> None:
    counted = Refusals()
    free = 0
    for _ in range(10_000):
        clock.now += 0.001
        free += counted.wait() == 0.0
    assert AT_ONCE <= free <= AT_ONCE + 10 * A_SECOND + 1


@pytest.mark.parametrize(
    ("status", "slow"), [(401, True), (403, True), (413, True), (400, True), (200, False), (422, False), (409, False)]
)
def test_only_what_was_kept_from_the_desktop_waits(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, status: int, slow: bool
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"whole"})

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def whole() -> None:
        monkeypatch.setattr(asyncio, "sleep", sleep)
        for _ in range(int(AT_ONCE) + 5):
            await SlowRefusals(app)({"type": "http"}, receive, send)

    asyncio.run(whole())
    assert [seconds for seconds in waited if seconds] == ([WAIT] * 5 if slow else [])
    kinds = itertools.cycle(["http.response.start", "http.response.body"])
    assert [message["type"] for message in sent] == [next(kinds) for _ in range(len(sent))]
    assert len(sent) == 2 * (int(AT_ONCE) + 5)
