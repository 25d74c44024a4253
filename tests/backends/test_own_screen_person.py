"""The person at their own screen: a batch stops when they begin, and waits until they are quiet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from deskhand import BatchRefused, OwnScreen
from deskhand.testing.batches import quick, until
from deskhand.testing.received import Received, pressed
from tests.own_screens import CLICK, LONG, LOOK, MOVE, Shared, at, begun


@pytest.mark.parametrize("what", ["key", "move", "click"])
def test_a_batch_stops_when_the_person_begins(shared: Shared, window: Received, what: str) -> None:
    server, person = shared
    does = {"key": lambda: person.key(person.A), "move": lambda: person.move(700, 300), "click": person.click}[what]

    async def work(backend: OwnScreen) -> None:
        down = {"action": "key_down", "keys": "x"}  # Xephyr itself lets go of modifiers that the person does not hold
        running = await begun(backend, quick(MOVE, down, LONG, CLICK, picture=True), server)
        does()
        outcome = await running
        assert [result["status"] for result in outcome.results] == ["ok", "ok", "failed", "skipped"]
        assert (outcome.error or "").startswith("the person is using the computer: ")
        assert outcome.answer["sent"] == "part"
        assert outcome.picture
        assert outcome.answer["released"]
        # A click of the person's takes its time, too.
        await asyncio.to_thread(until, lambda: not pressed(server), "nothing is pressed")
        # The next batch goes on.
        assert (await backend.act(quick(CLICK))).ok

    at(server, work)
    window.until("press", 2 if what == "click" else 1)  # openbox hands clicks on in its own time
    assert [event["at"] for event in window.all("press")][-1] == [50, 60]


@pytest.mark.slow
def test_what_we_do_ourselves_does_not_stop_us(shared: Shared, window: Received) -> None:
    server, _ = shared
    actions: list[dict[str, Any]] = [
        {"action": "type", "text": "Grüße 你好"},
        {"action": "drag", "path": [[10, 10], [200, 200]]},
        {"action": "scroll", "dy": 3},
        {"action": "hold_key", "keys": "x", "seconds": 1.2},
        CLICK,
    ]

    async def work(backend: OwnScreen) -> None:
        for _ in range(2):
            outcome = await backend.act(quick(*actions))
            assert outcome.ok, outcome.error

    at(server, work)
    window.until("press", 10)
    assert len([event for event in window.all("press") if event["at"] == [50, 60]]) == 2


def test_a_long_drag_stops_in_the_middle(shared: Shared, window: Received) -> None:
    server, person = shared
    path = [[10 + n % 1000, 10 + n % 3] for n in range(1000)]  # the server takes 10 ms a point

    async def work(backend: OwnScreen) -> None:
        running = asyncio.create_task(backend.act(quick({"action": "drag", "path": path}, CLICK, picture=True)))
        await asyncio.to_thread(window.until, "press")
        person.move(300, 300)
        outcome = await running
        assert [result["status"] for result in outcome.results] == ["failed", "skipped"]
        assert "the person is using the computer" in (outcome.error or "")
        assert outcome.answer["sent"] == "part"
        assert not outcome.picture
        assert pressed(server) == []
        assert (await backend.act(quick(CLICK))).ok

    at(server, work)
    window.until("release", 2)
    told = window.all("press", "release", "motion")
    assert [event["is"] for event in told if event["is"] != "motion"] == ["press", "release"] * 2
    assert path[-1] not in [event["at"] for event in told]


def test_what_is_held_between_batches_is_let_go(shared: Shared, window: Received) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        down: list[dict[str, Any]] = [{"action": "mouse_down", "x": 9, "y": 9}, {"action": "key_down", "keys": "ctrl"}]
        assert (await backend.act(quick(*down))).ok
        assert len(pressed(server)) == 2
        person.move(700, 300)
        await asyncio.to_thread(until, lambda: not pressed(server), "nothing is pressed")
        assert (await backend.act(quick(CLICK))).ok

    at(server, work)


@pytest.mark.slow
def test_a_batch_waits_until_the_person_is_quiet(shared: Shared, window: Received) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        await backend.info()
        assert (await backend.act(quick({"action": "cursor_position"}))).ok
        person.press(person.SHIFT)  # held: they are busy
        running = asyncio.create_task(backend.act(quick(CLICK)))
        done, _ = await asyncio.wait([running], timeout=1.5)
        assert not done
        assert window.all("press") == []
        person.release(person.SHIFT)
        assert (await running).ok

    at(server, work, quiet=0.5, patience=60.0)
    window.until("press")
    assert [event["state"] & 1 for event in window.all("press")] == [0]


def test_a_person_who_does_not_pause(shared: Shared, window: Received) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        await backend.act(quick({"action": "cursor_position"}))
        person.press(person.SHIFT)
        with pytest.raises(BatchRefused, match="the person is using the computer, and did not pause") as caught:
            await backend.act(quick(CLICK))
        assert caught.value.sent == "none"
        # Looking disturbs nobody.
        outcome = await backend.act(LOOK)
        assert outcome.ok
        assert outcome.picture
        person.release(person.SHIFT)

    at(server, work, quiet=0.5, patience=1.0)
    assert window.all("press") == []


def test_what_the_person_did_before_counts(shared: Shared) -> None:
    server, person = shared
    person.key(person.A)

    async def work(backend: OwnScreen) -> None:
        with pytest.raises(BatchRefused, match="did not pause"):
            await backend.act(quick(MOVE))

    at(server, work, quiet=600.0, patience=0.0)


def test_a_wrong_batch_is_refused_at_once(shared: Shared) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        await backend.act(quick({"action": "cursor_position"}))
        person.press(person.SHIFT)
        with pytest.raises(BatchRefused, match="there is no action 'dance'"):
            await backend.act(quick({"action": "dance"}))
        person.release(person.SHIFT)

    at(server, work, quiet=60.0, patience=3000.0)


def test_cancelled_while_it_waits_nothing_is_sent(shared: Shared, window: Received) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        await backend.act(quick({"action": "cursor_position"}))
        person.press(person.SHIFT)
        running = asyncio.create_task(backend.act(quick(CLICK)))
        await asyncio.wait([running], timeout=0.5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        person.release(person.SHIFT)

    at(server, work, quiet=2.0, patience=60.0)
    assert window.all("press") == []
