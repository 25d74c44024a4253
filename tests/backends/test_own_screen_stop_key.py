"""The stop key of the person's own screen."""

from __future__ import annotations

import asyncio

import pytest

from deskhand import OwnScreen, Unsupported
from deskhand.approvals import Declined
from deskhand.testing.batches import quick, until
from deskhand.testing.received import Received, pressed
from tests.own_screens import CLICK, LONG, LOOK, MOVE, Shared, at, begun


def test_the_stop_key(shared: Shared, window: Received) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        running = await begun(backend, quick({"action": "mouse_down", "x": 3, "y": 3}, LONG, CLICK), server)
        person.key(person.ESCAPE, times=3)
        outcome = await running
        assert [result["status"] for result in outcome.results] == ["ok", "failed", "skipped"]
        assert "the person" in (outcome.error or "")  # the first press is enough to stop it
        await asyncio.to_thread(until, lambda: backend.stopped, "it is stopped")
        assert pressed(server) == []
        for batch in (quick(CLICK), LOOK):
            with pytest.raises(Declined, match=r"the stop key \(Escape three times\): leave this computer alone"):
                await backend.act(batch)
        with pytest.raises(Declined):
            await backend.windows()
        backend.resume()
        assert (await backend.act(quick(CLICK))).ok

    at(server, work)


def test_the_stop_key_ends_a_wait_for_the_person(shared: Shared) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        await backend.act(quick({"action": "cursor_position"}))
        person.press(person.SHIFT)
        running = asyncio.create_task(backend.act(quick(CLICK)))
        await asyncio.wait([running], timeout=0.3)
        person.release(person.SHIFT)
        person.key(person.ESCAPE, times=3)
        with pytest.raises(Declined):
            await running

    at(server, work, quiet=600.0, patience=600.0)


@pytest.mark.slow
def test_what_is_no_stop(shared: Shared, window: Received) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        await backend.act(quick(MOVE))
        person.key(person.ESCAPE, times=2)
        person.key(person.A)
        person.key(person.ESCAPE)
        person.press(person.ESCAPE)  # held, it repeats
        await asyncio.sleep(1.2)
        person.release(person.ESCAPE)
        # An agent's Escape is none either.
        escape = {"action": "key", "keys": "Escape", "repeat": 5}
        await asyncio.to_thread(until, lambda: not pressed(server), "nothing is pressed")
        assert (await backend.act(quick(escape))).ok
        assert not backend.stopped

    at(server, work, quiet=0.3, patience=20.0)


def test_a_chord_as_the_stop_key(shared: Shared) -> None:
    server, person = shared

    async def work(backend: OwnScreen) -> None:
        await backend.act(quick(MOVE))
        person.key(person.ESCAPE, times=3)
        person.key(person.Q)
        assert (await backend.act(quick(MOVE))).ok
        person.key(person.CONTROL, person.ALT, person.Q)
        await asyncio.to_thread(until, lambda: backend.stopped, "it is stopped")

    at(server, work, quiet=0.3, patience=20.0, stop_key="ctrl+alt+q", stop_presses=1)


def test_stop_keys_that_can_not_be() -> None:
    with pytest.raises(ValueError, match="nokey"):
        OwnScreen(stop_key="nokey")
    with pytest.raises(ValueError, match="once or more"):
        OwnScreen(stop_presses=0)
    with pytest.raises(ValueError, match="0 or more seconds"):
        OwnScreen(patience=-1)


def test_a_stop_key_that_the_keyboard_does_not_have(shared: Shared) -> None:
    async def work(backend: OwnScreen) -> None:
        with pytest.raises(Unsupported, match="no key for the stop key 'α'"):
            await backend.act(quick(MOVE))

    at(shared[0], work, stop_key="α")
