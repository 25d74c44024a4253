"""What every backend must do, as pytest classes: subclass one, and say in a fixture how to make yours.

::

    class TestMine(DesktopConformance):
        @pytest.fixture
        def make_backend(self) -> MakeBackend:
            return lambda server: MyBackend(server.display, server.xauthority)

``DesktopConformance`` judges by what a window on the display received, and by what the X server has as pressed; never
by what the backend says of itself. It starts a desktop for each test (override ``server`` for another one).
``BackendConformance``, the part of it that needs no X server, is for pretend desktops.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PIL import Image

from deskhand.backends.base import Backend, Outcome
from deskhand.errors import BatchRefused, DisplayLost, NoDisplay, Unsupported

from .backend_conformance import BackendConformance as BackendConformance
from .batches import LAYOUTS, TEXT, WRONG, quick, run, until
from .fixture_window import TITLE
from .lease_conformance import LeaseConformance
from .received import Received, fixture_window, pressed
from .xserver import XServer, window_manager, xvfb

#: Makes a backend for the display of a server, not connected yet.
MakeBackend = Callable[[XServer], Backend]
#: The same for one whose next answer is lost on its way back once the function is called.
MakeLossy = Callable[[XServer], tuple[Backend, Callable[[], None]]]

Actions = list[dict[str, Any]]
T = TypeVar("T")


class DesktopConformance(LeaseConformance):
    """Everything, on a real display."""

    @pytest.fixture
    def server(self) -> Iterator[XServer]:
        """A fresh X server with openbox that asks for a cookie."""
        with xvfb(auth=True) as server, window_manager(server):
            yield server

    @pytest.fixture
    def window(self, server: XServer) -> Iterator[Received]:
        """The window whose word counts."""
        with fixture_window(server) as received:
            received.forget()
            yield received

    @pytest.fixture
    def make_lossy(self) -> MakeLossy:
        """Override it where an answer can be lost between the desktop and the caller."""
        pytest.skip("no answer of this backend can be lost on its way")

    # -- what arrives -----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_text_arrives_exactly(self, server: XServer, window: Received, make_backend: Any, layout: str) -> None:
        if shutil.which("setxkbmap") is None:
            pytest.skip("setxkbmap is not installed (Debian: x11-xkb-utils)")
        name, _, variant = layout.rstrip(")").partition("(")
        subprocess.run(["setxkbmap", name, *(["-variant", variant] if variant else [])], env=server.env, check=True)
        window.forget()
        typing = quick({"action": "type", "text": TEXT})
        outcome: Outcome = self.on(make_backend, server, lambda backend: backend.act(typing))
        assert outcome.ok, outcome.error
        assert window.text() == TEXT
        assert pressed(server) == []

    def test_chords(self, server: XServer, window: Received, make_backend: Any) -> None:
        keys = [{"action": "key", "keys": name} for name in ("ctrl+shift+t", "Return", "ctrl++")]
        assert self.on(make_backend, server, lambda backend: backend.act(quick(*keys))).ok
        names = [event["name"] for event in window.all("key") if event["text"] or event["name"] == "Return"]
        assert names == ["T", "Return", "plus"]
        assert pressed(server) == []

    def test_the_position_0_0(self, server: XServer, window: Received, make_backend: Any) -> None:
        away = {"action": "move", "x": 200, "y": 200}
        self.on(make_backend, server, lambda b: b.act(quick(away, {"action": "click", "x": 0, "y": 0})))
        assert [(e["button"], e["at"]) for e in window.all("press", "release")] == [(1, [0, 0])] * 2

    def test_every_corner_in_a_grid_and_on_the_screen(
        self, server: XServer, window: Received, make_backend: Any
    ) -> None:
        async def work(backend: Backend) -> list[list[int]]:
            width, height = (await backend.info())["size"]
            await backend.act(quick({"action": "click", "x": width - 1, "y": height - 1}))
            await backend.act(quick({"action": "click", "x": 999, "y": 999}, space={"grid": 999}))
            await backend.act(quick({"action": "click", "x": 0, "y": 999}, space={"grid": 999}))
            return [[width - 1, height - 1]] * 2 + [[0, height - 1]]

        corners = self.on(make_backend, server, work)
        assert [event["at"] for event in window.all("press")] == corners

    @pytest.mark.parametrize(("button", "number"), [("left", 1), ("middle", 2), ("right", 3), ("back", 8)])
    def test_buttons_and_counts(
        self, server: XServer, window: Received, make_backend: Any, button: str, number: int
    ) -> None:
        click = {"action": "click", "x": 50, "y": 60, "button": button, "count": 2, "modifiers": ["ctrl"]}
        self.on(make_backend, server, lambda backend: backend.act(quick(click)))
        assert [(e["button"], e["at"], e["state"] & 4) for e in window.all("press")] == [(number, [50, 60], 4)] * 2
        assert pressed(server) == []

    def test_a_drag_of_several_points(self, server: XServer, window: Received, make_backend: Any) -> None:
        path = [[100, 100], [300, 100], [300, 250], [120, 180]]
        self.on(make_backend, server, lambda backend: backend.act(quick({"action": "drag", "path": path})))
        told = window.all("press", "release", "motion")
        kinds = [event["is"] for event in told]
        assert kinds.count("press") == kinds.count("release") == 1
        start, end = kinds.index("press"), kinds.index("release")
        assert (told[start]["at"], told[end]["at"]) == (path[0], path[-1])
        dragged = [event["at"] for event in told[start:end] if event["is"] == "motion"]
        assert all(event["state"] & 0x100 for event in told[start + 1 : end])
        assert len(dragged) >= 10
        at = 0
        for point in path[1:]:
            assert point in dragged[at:], f"{point} was not passed in its turn"
            at += dragged[at:].index(point)

    @pytest.mark.parametrize(
        ("dx", "dy", "buttons"), [(3, 0, [7] * 3), (-2, 0, [6] * 2), (0, 2, [5] * 2), (0, -1, [4])]
    )
    def test_scrolling(
        self, server: XServer, window: Received, make_backend: Any, dx: int, dy: int, buttons: list[int]
    ) -> None:
        scroll = {"action": "scroll", "x": 70, "y": 80, "dx": dx, "dy": dy}
        self.on(make_backend, server, lambda backend: backend.act(quick(scroll)))
        assert [(e["button"], e["at"]) for e in window.all("press")] == [(number, [70, 80]) for number in buttons]

    def test_a_refused_batch_sends_nothing(self, server: XServer, window: Received, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            for batch, _, _ in WRONG:
                with pytest.raises(BatchRefused):
                    await backend.act(batch)

        self.on(make_backend, server, work)
        assert window.all("press", "key", "motion") == []

    def test_batches_at_once_take_turns(self, server: XServer, window: Received, make_backend: Any) -> None:
        async def work(backend: Backend) -> list[Outcome]:
            clicks = [quick({"action": "click", "x": n, "y": n, "count": 2}) for n in range(1, 4)]
            return await asyncio.gather(*(backend.act(click) for click in clicks))

        assert [outcome.answer for outcome in self.on(make_backend, server, work) if not outcome.ok] == []
        assert [event["at"] for event in window.all("press")] == [[n, n] for n in range(1, 4) for _ in range(2)]

    # -- what is seen -----------------------------------------------------------------------------------------------

    def test_the_picture_is_of_now(self, server: XServer, window: Received, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            hashes = []
            for colour in (0x336699, 0xC03000, 0x00FF00):
                window.paint(colour)
                outcome = await backend.act({"actions": [{"action": "screenshot"}]})
                assert outcome.picture is not None
                image = Image.open(io.BytesIO(outcome.picture)).convert("RGB")
                expected = (colour >> 16, colour >> 8 & 255, colour & 255)
                assert [image.getpixel((x, y)) for x, y in ((0, 0), (640, 400), (1279, 799))] == [expected] * 3
                hashes.append(outcome.answer["picture"]["hash"])
            assert len(set(hashes)) == 3

        self.on(make_backend, server, work)

    def test_the_fixture_is_among_the_windows(self, server: XServer, window: Received, make_backend: Any) -> None:
        found = self.on(make_backend, server, lambda backend: backend.windows())
        (ours,) = [one for one in found if one["title"] == TITLE]
        assert (ours["rect"], ours["active"]) == ([0, 0, 1280, 800], True)

    def test_settling_is_told(self, server: XServer, window: Received, make_backend: Any) -> None:
        batch = {"actions": [{"action": "click", "x": 5, "y": 5}]}
        answer = self.on(make_backend, server, lambda backend: backend.act(batch)).answer
        assert (answer["ok"], answer["settled"], answer["settle"]) == (True, True, "settled")

    # -- what is held -----------------------------------------------------------------------------------------------

    def test_what_is_held_stays_for_the_next_batch(self, server: XServer, window: Received, make_backend: Any) -> None:
        async def work(backend: Backend) -> None:
            await backend.act(quick({"action": "key_down", "keys": "shift"}))
            await backend.act(quick({"action": "mouse_down", "x": 9, "y": 9}))
            assert len(pressed(server)) == 2
            assert (await backend.act(quick({"action": "move", "x": 30, "y": 30}))).ok
            assert len(pressed(server)) == 2
            up = await backend.act(quick({"action": "mouse_up"}, {"action": "key_up", "keys": "shift"}))
            assert up.ok
            assert pressed(server) == []

        self.on(make_backend, server, work)
        assert all(event["state"] & 0x101 == 0x101 for event in window.all("release"))
        assert [event["is"] for event in window.all("press", "release", "key", "up")] == [
            "key",
            "press",
            "release",
            "up",
        ]

    def test_the_end_releases(self, server: XServer, window: Received, make_backend: Any) -> None:
        held = quick({"action": "key_down", "keys": "ctrl"}, {"action": "mouse_down"})
        assert self.on(make_backend, server, lambda backend: backend.act(held)).ok
        assert pressed(server) == []
        assert [event["is"] for event in window.all("press", "release")] == ["press", "release"]

    def test_a_failure_releases(self, server: XServer, window: Received, make_backend: Any) -> None:
        missing = {"action": "wait_window", "title": "there is no such window", "timeout": 0}

        async def work(backend: Backend) -> None:
            outcome = await backend.act(quick({"action": "key_down", "keys": "ctrl"}, missing))
            assert not outcome.ok
            assert pressed(server) == []

        self.on(make_backend, server, work)
        assert [event["is"] for event in window.all("key", "up")] == ["key", "up"]

    @pytest.mark.parametrize(
        "actions",
        [
            [{"action": "hold_key", "keys": "ctrl+shift+k", "seconds": 50}],
            [{"action": "key_down", "keys": "shift"}, {"action": "wait", "seconds": 50}],
            [{"action": "key_down", "keys": "alt"}, {"action": "wait_window", "title": "no such", "timeout": 50}],
            [{"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50}],
        ],
        ids=["hold", "wait", "wait_window", "button"],
    )
    def test_cancelling_leaves_nothing_pressed(
        self, server: XServer, window: Received, make_backend: Any, actions: Actions
    ) -> None:
        after = {"action": "click", "x": 77, "y": 77}

        async def work(backend: Backend) -> None:
            running = asyncio.create_task(backend.act(quick(*actions, after)))
            await asyncio.to_thread(until, lambda: pressed(server) or running.done(), "something is pressed")
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.to_thread(until, lambda: not pressed(server), "nothing is pressed")
            assert (await backend.act(quick({"action": "move", "x": 5, "y": 5}))).ok
            assert pressed(server) == []

        self.on(make_backend, server, work)
        assert [77, 77] not in [event["at"] for event in window.all("press")], "the rest of the batch was run"

    def test_cancelled_before_its_turn_it_is_never_sent(
        self, server: XServer, window: Received, make_backend: Any
    ) -> None:
        async def work(backend: Backend) -> None:
            first = asyncio.create_task(backend.act(quick({"action": "wait", "seconds": 0.3})))
            second = asyncio.create_task(backend.act(quick({"action": "click", "x": 9, "y": 9})))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert (await first).ok
            assert (await backend.act(quick({"action": "move", "x": 5, "y": 5}))).ok

        self.on(make_backend, server, work)
        assert window.all("press") == []

    # -- what is lost -----------------------------------------------------------------------------------------------

    def test_a_client_that_is_killed_leaves_nothing_pressed(
        self, server: XServer, window: Received, make_backend: Any
    ) -> None:
        actions = ({"action": "key_down", "keys": "ctrl"}, {"action": "mouse_down"}, {"action": "wait", "seconds": 50})
        with self.client(make_backend, server, quick(*actions)):
            window.until("press")

        async def next_one(backend: Backend) -> Outcome:
            lease = None
            with contextlib.suppress(Unsupported):
                lease = backend.lease("the next")
                await lease.take(60, wait=60)  # where nothing tells that a client was killed, its turn has to end first
            try:
                return await backend.act(quick({"action": "cursor_position"}))
            finally:
                if lease is not None:
                    await lease.release()

        assert self.on(make_backend, server, next_one).ok
        until(lambda: pressed(server) == [], "nothing is pressed")
        assert [event["is"] for event in window.all("press", "release")] == ["press", "release"]

    def test_a_lost_answer_is_unknown_and_never_sent_again(
        self, server: XServer, window: Received, make_lossy: MakeLossy
    ) -> None:
        async def work() -> None:
            backend, lose = make_lossy(server)
            try:
                await backend.info()
                lose()
                with pytest.raises(DisplayLost) as caught:
                    await backend.act(quick({"action": "click", "x": 40, "y": 41}))
                assert caught.value.sent == "unknown"
                assert (await backend.act(quick({"action": "move", "x": 5, "y": 5}))).ok
            finally:
                await backend.aclose()

        run(work())
        assert [event["at"] for event in window.all("press")] == [[40, 41]]
        assert pressed(server) == []

    def test_no_display_there(self, make_backend: Any, tmp_path: Path) -> None:
        async def work(backend: Backend) -> None:
            for call in (backend.info, backend.windows):
                with pytest.raises(NoDisplay) as looked:
                    await call()
                assert looked.value.sent == "none"
            with pytest.raises(NoDisplay) as caught:
                await backend.act(quick({"action": "move", "x": 1, "y": 1}))
            assert caught.value.sent == "none"
            assert ":4711" in str(caught.value)

        nobody = XServer(":4711", None, 0, dict(os.environ))
        self.on(make_backend, nobody, work)

    def test_a_display_that_dies_in_the_middle(self, make_backend: Any) -> None:
        with xvfb(auth=True) as server:

            async def work(backend: Backend) -> None:
                batch = quick({"action": "mouse_down", "x": 3, "y": 3}, {"action": "wait", "seconds": 50})
                running = asyncio.create_task(backend.act(batch))
                await asyncio.to_thread(until, lambda: pressed(server) or running.done(), "the button is down")
                os.kill(server.pid, signal.SIGTERM)
                with pytest.raises(DisplayLost) as caught:
                    await running
                assert caught.value.sent == "unknown"
                results = caught.value.facts["answer"]["results"]
                assert [result["status"] for result in results] == ["ok", "failed"]

            self.on(make_backend, server, work)
