"""The person's own screen: what they do comes from devices of the server's own, what we do from XTEST's."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from deskhand import BatchRefused, NoDisplay, OwnScreen, Session, Unsupported
from deskhand.approvals import Ask, Declined
from deskhand.hand.screen_lock import ScreenLock
from deskhand.hand.x11 import Connection, xinput2
from deskhand.testing import XServer, window_manager, xvfb
from deskhand.testing.batches import quick, run, until
from deskhand.testing.received import Received, fixture_window, pressed
from deskhand.tools import ComputerTools
from tests.own_screens import PersonAtIt, screen_with_a_person
from tests.xservers import open_fds

MOVE = {"action": "move", "x": 5, "y": 5}
CLICK = {"action": "click", "x": 50, "y": 60}
LONG = {"action": "wait", "seconds": 50}
LOOK: dict[str, Any] = {"actions": [{"action": "screenshot"}]}
Shared = tuple[XServer, PersonAtIt]


@pytest.fixture
def shared() -> Iterator[Shared]:
    with screen_with_a_person() as (server, person):
        yield server, person


@pytest.fixture
def window(shared: Shared) -> Iterator[Received]:
    with window_manager(shared[0]), fixture_window(shared[0]) as received:
        received.forget()
        yield received


def at(server: XServer, work: Callable[[OwnScreen], Awaitable[Any]], **options: Any) -> Any:
    """Run ``work`` with a backend that waits for a person only as long as they hold something down."""
    options = {"quiet": 0.0, "patience": 20.0, **options}

    async def whole() -> Any:
        backend = OwnScreen(server.display, server.xauthority, **options)
        try:
            return await work(backend)
        finally:
            await backend.aclose()

    return run(whole())


async def begun(backend: OwnScreen, batch: dict[str, Any], server: XServer) -> asyncio.Task[Any]:
    """A batch under way, which holds something down by now."""
    running = asyncio.create_task(backend.act(batch))
    await asyncio.to_thread(until, lambda: pressed(server) or running.done(), "something is pressed")
    return running


# -- the person --------------------------------------------------------------------------------------------------------


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


# -- the stop key ------------------------------------------------------------------------------------------------------


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


# -- a locked screen ---------------------------------------------------------------------------------------------------


@contextmanager
def locked(server: XServer) -> Iterator[None]:
    if shutil.which("i3lock") is None:
        pytest.skip("i3lock is not installed")
    with Connection.open(server.display) as conn, subprocess.Popen(["i3lock", "-n"], env=server.env) as process:
        lock = ScreenLock(conn)
        until(lambda: lock.seen() or process.poll() is not None, "it is locked")
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)
            until(lambda: lock.seen() is None, "it is unlocked")


def test_nothing_is_done_while_the_screen_is_locked(shared: Shared, window: Received) -> None:
    server, _ = shared

    async def work(backend: OwnScreen) -> None:
        with locked(server):
            for batch in (quick(CLICK), LOOK):
                with pytest.raises(BatchRefused, match=r"the screen is locked .*: somebody has to unlock it") as caught:
                    await backend.act(batch)
                assert caught.value.sent == "none"
            with pytest.raises(BatchRefused, match="locked"):
                await backend.windows()
            assert (await backend.info())["size"] == [1280, 800]
        assert (await backend.act(quick(CLICK))).ok

    at(server, work)
    window.until("press")
    assert len(window.all("press")) == 1


def test_a_screen_that_is_locked_in_the_middle(shared: Shared, window: Received) -> None:
    server, _ = shared

    async def work(backend: OwnScreen) -> None:
        running = await begun(backend, quick({"action": "key_down", "keys": "shift"}, LONG, CLICK), server)
        with locked(server):
            outcome = await running
            assert [result["status"] for result in outcome.results] == ["ok", "failed", "skipped"]
            assert "the screen is locked" in (outcome.error or "")
            assert pressed(server) == []

    at(server, work)
    assert window.all("press") == []


# -- a display that goes, and what is left -----------------------------------------------------------------------------


def test_a_server_that_is_started_anew() -> None:
    async def work() -> None:
        with xvfb() as server:
            number = server.number
            backend = OwnScreen(server.display, quiet=0.0)
            assert (await backend.act(quick(MOVE))).ok
        with pytest.raises(NoDisplay):
            await backend.act(quick(MOVE))
        process = subprocess.Popen(["Xvfb", f":{number}", "-noreset", "-nolisten", "tcp"], stderr=subprocess.DEVNULL)
        try:
            await asyncio.to_thread(until, lambda: os.path.exists(f"/tmp/.X11-unix/X{number}"), "it listens")
            assert (await backend.act(quick(MOVE))).ok
            await backend.aclose()
        finally:
            process.terminate()
            process.wait(20)

    run(work())


def test_nothing_is_left_open(display: XServer) -> None:
    async def work(backend: OwnScreen) -> None:
        assert (await backend.act(quick(MOVE))).ok

    at(display, work)
    files, threads = open_fds(), threading.active_count()
    for _ in range(3):
        at(display, work)
    assert (open_fds(), threading.active_count()) == (files, threads)


# -- what it does not do -----------------------------------------------------------------------------------------------


def test_no_launching(display: XServer) -> None:
    async def work(backend: OwnScreen) -> None:
        for verb in ("launch", "quit"):
            action = {"action": verb, "app": "Firefox"}
            with pytest.raises(Unsupported, match=r"action 1 .*the computer's own launcher \(the Super key") as caught:
                await backend.act(quick(MOVE, action))
            assert caught.value.sent == "none"
        with pytest.raises(Unsupported, match="own launcher"):
            await backend.apps()
        tools = await ComputerTools.open(Session(backend))
        assert "Neither launch nor computer_apps works on this desktop" in tools.instructions
        assert "Super key" in tools.instructions

    at(display, work)


def test_launching_when_it_is_allowed(display: XServer) -> None:
    async def work(backend: OwnScreen) -> None:
        await backend.apps()
        tools = await ComputerTools.open(Session(backend))
        assert "Open applications with the launch action" in tools.instructions
        with pytest.raises(BatchRefused, match="no such thing"):
            await backend.act(quick({"action": "launch", "app": "no such thing"}))

    at(display, work, allow_launch=True)


def test_the_first_action_is_asked_for_once(display: XServer) -> None:
    asked: list[Ask] = []

    async def work(answer: bool) -> None:
        async def approve(ask: Ask) -> bool:
            asked.append(ask)
            return answer

        backend = OwnScreen(display.display, quiet=0.0)
        async with Session(backend, approve=approve) as session:
            await session.screenshot()
            assert asked == []
            if answer:
                assert (await session.act(quick(MOVE))).ok
                assert (await session.act(quick(CLICK))).ok
            else:
                with pytest.raises(Declined):
                    await session.act(quick(CLICK))

    for answer in (True, False):
        asked.clear()
        run(work(answer))
        assert [ask.source for ask in asked] == ["policy: input"]


def test_nobody_to_ask(display: XServer) -> None:
    async def work() -> None:
        async with Session(OwnScreen(display.display, quiet=0.0)) as session:
            with pytest.raises(Declined):
                await session.act(quick(CLICK))

    run(work())


def test_a_server_that_does_not_tell_devices_apart(display: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xinput2, "available", lambda conn: False)  # no server of today can be started without it

    async def work(backend: OwnScreen) -> None:
        with pytest.raises(Unsupported, match="has no XInput"):
            await backend.act(quick(MOVE))

    at(display, work)


def test_no_display() -> None:
    async def work(backend: OwnScreen) -> None:
        with pytest.raises(NoDisplay):
            await backend.act(quick(MOVE))

    at(XServer(":4711", None, 0, {}), work)
