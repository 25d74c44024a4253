"""The person's own screen: when it is locked or gone, and what is not done there."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deskhand import BatchRefused, NoDisplay, OwnScreen, Session, Unsupported
from deskhand.approvals import Ask, Declined
from deskhand.hand.screen_lock import ScreenLock
from deskhand.hand.x11 import Connection, xinput2
from deskhand.testing import XServer, xvfb
from deskhand.testing.batches import quick, run, until
from deskhand.testing.received import Received, pressed
from deskhand.tools import ComputerTools
from tests.own_screens import CLICK, LONG, LOOK, MOVE, Shared, at, begun
from tests.xservers import open_fds, own_number

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
        number = own_number()
        with xvfb(number=number) as server:
            backend = OwnScreen(server.display, quiet=0.0)
            assert (await backend.act(quick(MOVE))).ok
        with pytest.raises(NoDisplay):
            await backend.act(quick(MOVE))
        with xvfb(number=number):
            assert (await backend.act(quick(MOVE))).ok
            await backend.aclose()

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


def test_the_watch_over_the_person_ends_also_when_nobody_waits_for_the_end(display: XServer) -> None:
    async def work() -> None:
        backend = OwnScreen(display.display, quiet=0)
        await backend.windows()
        go_on = threading.Event()
        working = asyncio.create_task(backend.with_hand(lambda hand: go_on.wait(20)))
        await asyncio.sleep(0)
        closing = asyncio.create_task(backend.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        go_on.set()
        await working
        assert backend._person is None

    before = threading.active_count()
    asyncio.run(work())
    until(lambda: threading.active_count() == before, "no thread is left")
