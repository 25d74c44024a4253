"""``LocalDisplay``: cancelling, losing the display, ending; on real X servers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from deskhand import DisplayLost, LocalDisplay, NoDisplay, Outcome
from deskhand.backends.lease import DisplayLease
from deskhand.hand.lease import Lease, holder_of
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer, xvfb
from tests.probes import RawWindow, pressed
from tests.toolkits import toolkit_window

MOVE = {"actions": [{"action": "move", "x": 5, "y": 6}], "settle": {"mode": "none"}}

NOT_WAITED = {"settle": {"mode": "none"}}


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)  # the X server tells nobody that a key went down elsewhere


def on(server: XServer, work: Callable[[LocalDisplay], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        backend = LocalDisplay(server.display)
        try:
            await work(backend)
        finally:
            await backend.aclose()

    asyncio.run(run())


@pytest.mark.parametrize(
    "actions",
    [
        [{"action": "hold_key", "keys": "ctrl+shift+k", "seconds": 50}],
        [{"action": "key_down", "keys": "shift"}, {"action": "wait", "seconds": 50}],
        [{"action": "key_down", "keys": "alt"}, {"action": "wait_window", "title": "no such", "timeout": 50}],
        [{"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}, {"action": "key", "keys": "a"}],
        [{"action": "key", "keys": "x", "repeat": 100}] * 100,
    ],
)
def test_a_cancelled_batch_leaves_nothing_pressed_and_the_backend_usable(
    openbox_display: XServer, tmp_path: Path, actions: list[dict[str, Any]]
) -> None:
    async def work(backend: LocalDisplay) -> None:
        running = asyncio.create_task(backend.act({"actions": actions, "settle": {"mode": "none"}}))
        await until(lambda: pressed(openbox_display) or running.done())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert pressed(openbox_display) == []
        assert (await backend.act(MOVE)).ok
        assert pressed(openbox_display) == []

    with toolkit_window(openbox_display, "tk", tmp_path / "log"):
        on(openbox_display, work)


def test_what_an_earlier_batch_held_is_released_too(display: XServer) -> None:
    async def work(backend: LocalDisplay) -> None:
        await backend.act({"actions": [{"action": "mouse_down", "x": 3, "y": 3}]})
        assert pressed(display)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(backend.act({"actions": [{"action": "wait", "seconds": 60}]}), 0.1)
        assert pressed(display) == []

    on(display, work)


def test_a_batch_cancelled_twice_still_releases(display: XServer) -> None:
    async def work(backend: LocalDisplay) -> None:
        actions = [{"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}]
        running = asyncio.create_task(backend.act({"actions": actions}))
        await until(lambda: pressed(display))
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await backend.act(MOVE)).ok
        assert pressed(display) == []

    on(display, work)


def test_a_batch_cancelled_in_the_queue_is_never_sent(display: XServer) -> None:
    async def work(backend: LocalDisplay) -> None:
        with RawWindow(display) as window:
            first = asyncio.create_task(backend.act({"actions": [{"action": "wait", "seconds": 0.3}]}))
            second = asyncio.create_task(backend.act({"actions": [{"action": "click", "x": 9, "y": 9}]}))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert (await first).ok
            assert (await backend.act(MOVE)).ok
            assert window.all("press") == []

    on(display, work)


def test_batches_at_once_take_turns(display: XServer) -> None:
    async def work(backend: LocalDisplay) -> None:
        with RawWindow(display) as window:
            clicks = [{"actions": [{"action": "click", "x": n, "y": n, "count": 3}]} for n in range(1, 6)]
            done = await asyncio.gather(*(backend.act(click) for click in clicks))
            assert all(one.ok for one in done)
            assert [event.at for event in window.all("press")] == [(n, n) for n in range(1, 6) for _ in range(3)]

    on(display, work)


def test_the_answer_and_the_picture(display: XServer) -> None:
    async def work(backend: LocalDisplay) -> None:
        outcome = await backend.act({"actions": [{"action": "screenshot"}]})
        assert outcome.picture is not None
        assert outcome.picture.startswith(b"\x89PNG")
        assert outcome.answer["picture"]["width"] == 1280
        assert "base64" not in outcome.answer["picture"]
        assert (await backend.info())["size"] == [1280, 800]
        assert isinstance(await backend.apps(), list)
        assert await backend.windows() == []

    on(display, work)


def test_a_display_that_dies() -> None:
    async def work(backend: LocalDisplay) -> None:
        with pytest.raises(DisplayLost) as caught:
            await backend.act({"actions": [{"action": "move", "x": 1, "y": 1}, {"action": "wait", "seconds": 60}]})
        assert caught.value.sent == "unknown"
        assert [r["status"] for r in caught.value.facts["answer"]["results"]] == ["ok", "failed"]
        await backend.aclose()

    async def run() -> None:
        with xvfb() as server:
            backend = LocalDisplay(server.display)
            assert (await backend.act(MOVE)).ok
            task = asyncio.create_task(work(backend))
            with RawWindow(server) as window:
                await until(lambda: window.all("motion"))
            os.kill(server.pid, 15)
            await task

    asyncio.run(run())


def test_a_display_that_is_not_there() -> None:
    async def run() -> None:
        backend = LocalDisplay(":987")
        with pytest.raises(NoDisplay) as refused:
            await backend.act(MOVE)
        assert refused.value.sent == "none"
        await backend.aclose()

    asyncio.run(run())


def test_closing_a_display_that_died_is_no_error() -> None:
    async def run() -> None:
        with xvfb() as server:
            backend = LocalDisplay(server.display)
            await backend.act({"actions": [{"action": "mouse_down", "x": 3, "y": 3}]})
        await backend.aclose()

    asyncio.run(run())


def test_the_end(display: XServer) -> None:
    async def run() -> None:
        before = threading.active_count()
        backend = LocalDisplay(display.display)
        await backend.act({"actions": [{"action": "mouse_down"}, {"action": "mouse_down", "button": "right"}]})
        assert len(pressed(display)) == 2
        await asyncio.gather(backend.aclose(), backend.aclose())
        await backend.aclose()
        assert pressed(display) == []
        with pytest.raises(RuntimeError, match="closed"):
            await backend.act(MOVE)
        await until(lambda: threading.active_count() == before)

    asyncio.run(run())


def test_one_that_was_never_used_can_be_closed() -> None:
    asyncio.run(LocalDisplay(":987").aclose())


def test_the_words_of_an_outcome() -> None:
    from deskhand.backends.base import in_words

    fine = {"ok": True, "results": [{"action": "click", "status": "ok", "point": [1, 2]}], "settle": "none"}
    assert in_words(Outcome(fine)) == "click at (1, 2)"
    failed = {
        "ok": False,
        "results": [
            {"action": "key", "status": "failed", "error": "no window"},
            {"action": "key", "status": "skipped"},
        ],
        "settle": "settled",
        "settle_ms": 4,
    }
    assert in_words(Outcome(failed)) == "FAILED after 0 of 2: no window [settled after 4 ms]"


def test_the_end_comes_and_releases_also_when_nobody_waits_for_it(display: XServer) -> None:
    async def work(backend: LocalDisplay) -> None:
        assert (await backend.act({"actions": [{"action": "mouse_down", "x": 1, "y": 1}], **NOT_WAITED})).ok
        assert pressed(display)
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
        await backend.aclose()
        assert pressed(display) == []

    on(display, work)


def test_a_batch_that_is_cancelled_while_the_end_waits_for_it(display: XServer) -> None:
    async def work(backend: LocalDisplay) -> None:
        actions = [{"action": "mouse_down", "x": 1, "y": 1}, {"action": "wait_window", "title": "-", "timeout": 50}]
        running = asyncio.create_task(backend.act({"actions": actions, **NOT_WAITED}))
        await until(lambda: pressed(display))
        closing = asyncio.create_task(backend.aclose())
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await closing
        assert pressed(display) == []

    on(display, work)


@pytest.mark.parametrize("end", ["cancelled", "released"])
def test_a_lease_of_a_display_that_hangs_does_not_stop_the_event_loop(display: XServer, end: str) -> None:
    async def work() -> None:
        lease = DisplayLease(display.display, None, "a")
        opening = threading.Event()
        opens = lease._open

        def told() -> Lease:
            opening.set()
            return opens()

        lease._open = told
        os.kill(display.pid, signal.SIGSTOP)
        try:
            taking = asyncio.create_task(lease.take(5.0, 30.0))
            await until(opening.is_set)
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0.01)
                    turns += 1

            counting = asyncio.create_task(count())
            if end == "cancelled":
                taking.cancel()
                await asyncio.wait([taking])
            releasing = asyncio.create_task(lease.release())
            await until(lambda: turns >= 5)
            assert not releasing.done()  # the display has not answered yet, and nobody waited for it
        finally:
            os.kill(display.pid, signal.SIGCONT)
        await releasing
        await asyncio.wait([taking])
        counting.cancel()
        with Connection.open(display.display) as conn:
            assert holder_of(conn) is None

    asyncio.run(work())
