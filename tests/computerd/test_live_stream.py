"""The stream of the live view, byte by byte, on a real X server: what is sent, when, and to whom."""

from __future__ import annotations

import asyncio
import random
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from deskhand.computerd.live.audience import Audience
from deskhand.computerd.live.stream import Stream
from deskhand.computerd.live.tickets import Viewer
from deskhand.computerd.served import ServedDesktop
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer, xvfb
from tests.computerd.daemons import RunningDaemon, daemon
from tests.computerd.viewers import BINARY, PING, Closed, RawViewer, cookie
from tests.xservers import own_number, put_pixels, resize, until


@pytest.fixture(scope="module")
def server() -> Iterator[XServer]:
    with xvfb() as it:
        yield it


@pytest.fixture(scope="module")
def running(server: XServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """One daemon for the tests that do not mind what was before."""
    with daemon(server, tmp_path_factory.mktemp("computerd")) as it:
        yield it


@pytest.fixture
def conn(server: XServer) -> Iterator[Connection]:
    with Connection.open(server.display, server.xauthority) as it:
        yield it


@pytest.fixture
def fresh(display: XServer, tmp_path: Path) -> Iterator[RunningDaemon]:
    """A daemon of the test's own, on a display of its own."""
    with daemon(display, tmp_path) as it:
        yield it


@pytest.fixture
def fresh_conn(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display, display.xauthority) as it:
        yield it


def capture(conn: Connection) -> Image.Image:
    screen = Screen(conn)
    try:
        taken = screen.capture()
    finally:
        screen.close()
    return Image.frombytes("RGB", taken.screen, taken.rgb())


def put_photo(conn: Connection, x: int, y: int, width: int = 400, height: int = 300, seed: int = 1) -> None:
    """Draw something that JPEG is good at on the root window (PutImage), some rows at a time."""
    small = Image.new("RGB", (width // 16, height // 16))
    numbers = random.Random(seed)
    small.putdata([tuple(numbers.randrange(256) for _ in range(3)) for _ in range(small.width * small.height)])
    image = small.resize((width, height), Image.Resampling.BICUBIC)
    context = conn.new_id()
    conn.send(55, 0, struct.pack("=IIIII", context, conn.root, (1 << 2) | (1 << 15), 0, 1))  # CreateGC
    for top in range(0, height, 50):
        part = image.crop((0, top, width, min(height, top + 50)))
        head = struct.pack("=IIHHhhBB2x", conn.root, context, width, part.height, x, y + top, 0, 24)
        conn.send(72, 2, head + part.tobytes("raw", "BGRX"))
    conn.sync()


def test_nothing_is_sent_while_nothing_changes(running: RunningDaemon, conn: Connection) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        before, frames = viewer.received, dict(viewer.frames)
        with pytest.raises(TimeoutError):
            viewer.turn(1.5)
        pings = viewer.frames.get(PING, 0) - frames.get(PING, 0)
        assert viewer.received - before == 6 * pings
        assert viewer.frames[BINARY] == frames[BINARY]
        assert viewer.screen.tobytes() == capture(conn).tobytes()


@pytest.mark.slow
def test_what_is_drawn_again_with_the_same_pixels_is_not_sent(running: RunningDaemon, conn: Connection) -> None:
    put_pixels(conn, conn.root, 0, 0, 300, 300, 0x336699)
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        before = viewer.received
        for _ in range(20):
            put_pixels(conn, conn.root, 0, 0, 300, 300, 0x336699)
        with pytest.raises(TimeoutError):
            viewer.turn(1.0)
        assert viewer.received == before


def test_a_small_change_is_few_bytes(running: RunningDaemon, conn: Connection) -> None:
    put_photo(conn, 0, 0)
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        before = viewer.received
        put_pixels(conn, conn.root, 700, 460, 3, 16, 0xFFFFFF)
        turn = viewer.turn()
        assert [image[:4] for image in turn["images"]] == [[640, 448, 64, 64]]
        assert viewer.received - before < 1000
        viewer.until_quiet()
        assert viewer.screen.tobytes() == capture(conn).tobytes()


def test_the_picture_is_exact_once_it_is_still(running: RunningDaemon, conn: Connection) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        for seed in range(8):
            put_photo(conn, 37 * seed, 29 * seed, seed=seed)
            put_pixels(conn, conn.root, 900 - seed, 100 * seed, 50, 7, 0xFF0000 >> seed)
            viewer.turn()
        viewer.until_quiet()
        assert "jpeg" in viewer.formats
        assert viewer.screen.tobytes() == capture(conn).tobytes()


@pytest.mark.long
def test_a_viewer_may_stay(running: RunningDaemon, conn: Connection) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        with pytest.raises(TimeoutError):
            viewer.turn(25.0)  # longer than the deadline of a request's head, and a ping
        put_pixels(conn, conn.root, 10, 10, 9, 9, 0x123456)
        viewer.turn()
        viewer.until_quiet()
        assert viewer.screen.tobytes() == capture(conn).tobytes()


@pytest.mark.slow
def test_a_program_that_draws_is_followed(running: RunningDaemon, server: XServer, conn: Connection) -> None:
    words = ["xterm", "-geometry", "100x30+5+5", "-e", "sh", "-c", "seq 1 4000; read line"]
    with RawViewer(running, cookie(running)) as viewer:
        process = subprocess.Popen(words, env=server.env, stderr=subprocess.DEVNULL)
        try:
            viewer.until(lambda: viewer.turns > 3 and viewer.screen.getextrema() != ((0, 0), (0, 0), (0, 0)))
            viewer.until_quiet(2.0)
            assert viewer.screen.tobytes() == capture(conn).tobytes()
        finally:
            process.terminate()
            process.wait()
        viewer.until_quiet(1.0)
        assert viewer.screen.tobytes() == capture(conn).tobytes()


@pytest.mark.slow
def test_no_more_than_ten_updates_a_second(running: RunningDaemon, conn: Connection) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        began, turns = time.monotonic(), 0
        for n in range(300):
            put_pixels(conn, conn.root, n, n, 20, 20, 0xFFFFFF - n)
            try:
                viewer.turn(0.01)
                turns += 1
            except TimeoutError:
                pass
        assert 1 <= turns <= 10 * (time.monotonic() - began) + 1


def test_another_size(fresh: RunningDaemon, fresh_conn: Connection) -> None:
    with RawViewer(fresh, cookie(fresh)) as viewer:
        viewer.until(lambda: viewer.screen.size == (1280, 800))
        resize(fresh_conn, 800, 600)
        viewer.until(lambda: viewer.state["screen"] == [800, 600] and viewer.screen.size == (800, 600))
        put_pixels(fresh_conn, fresh_conn.root, 750, 550, 50, 50, 0xFF00FF)
        viewer.until_quiet()
        assert viewer.screen.tobytes() == capture(fresh_conn).tobytes()


def test_the_pointer_is_told_and_not_drawn(running: RunningDaemon, conn: Connection) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        formats = len(viewer.formats)
        running.act({"action": "move", "x": 321, "y": 123})
        viewer.until(lambda: viewer.state["pointer"] == [321, 123])
        assert len(viewer.formats) == formats


def test_outcomes_refusals_and_the_budget(fresh: RunningDaemon) -> None:
    fresh.act({"action": "click", "x": 5, "y": 6}, headers={"Deskhand-Session": "before"})
    with RawViewer(fresh, cookie(fresh)) as viewer:
        viewer.until(lambda: len(viewer.outcomes) == 1)
        assert viewer.outcomes[0]["session"] == "before"
        assert fresh.act({"action": "click", "x": 50, "y": 60}, headers={"Deskhand-Session": "bot"}).is_success
        assert fresh.act({"action": "key", "keys": "nosuchkey"}).is_error
        assert fresh.act({"action": "quit", "app": "firefox"}).is_error
        with fresh.client() as client:
            client.post("/act", json={"actions": "not a list"})
            refused = {"ok": False, "text": "the budget of 3 actions is spent", "used": 3, "limit": 3}
            client.post("/outcome", json=refused, headers={"Deskhand-Session": "bot"})
        viewer.until(lambda: len(viewer.outcomes) == 6)
        _, clicked, key, launched, malformed, spent = viewer.outcomes
        assert (clicked["ok"], clicked["session"], clicked["actions"]) == (
            True, "bot", [{"words": "click (50, 60)", "status": "ok"}],
        )  # fmt: skip
        assert clicked["marks"] == [{"n": 1, "kind": "click", "status": "ok", "points": [[50.5, 60.5]]}]
        for outcome, word in ((key, "nosuchkey"), (launched, "launch"), (malformed, "list")):
            assert (outcome["ok"], outcome["sent"]) == (False, "none")
            assert word in outcome["text"]
            assert outcome["marks"] == []
        assert spent["text"] == "the budget of 3 actions is spent"
        assert viewer.state["budget"] == {"used": 3, "limit": 3, "session": "bot"}
        assert [outcome["n"] for outcome in viewer.outcomes] == [1, 2, 3, 4, 5, 6]


def test_what_a_session_says_of_its_own_batch_is_told_once(fresh: RunningDaemon) -> None:
    with RawViewer(fresh, cookie(fresh)) as viewer, fresh.client() as client:
        fresh.act({"action": "move", "x": 1, "y": 2}, headers={"Deskhand-Session": "bot"})
        said = {"ok": True, "text": "done", "used": 1, "limit": None}
        client.post("/outcome", json=said, headers={"Deskhand-Session": "bot"})
        viewer.until(lambda: viewer.state.get("budget") is not None)
        assert len(viewer.outcomes) == 1


def test_a_secret_is_in_nothing_that_is_sent(fresh: RunningDaemon) -> None:
    with RawViewer(fresh, cookie(fresh)) as viewer:
        fresh.act({"action": "type", "text": "hunter2hunter2", "secret": True})
        viewer.until(lambda: len(viewer.outcomes) == 1)
        assert "hunter2" not in str(viewer.outcomes)


def test_who_has_the_lease_and_until_when(running: RunningDaemon) -> None:
    with RawViewer(running, cookie(running)) as viewer, running.client() as client:
        viewer.until(lambda: "lease" in viewer.state)
        assert not viewer.state["lease"]
        lease = client.post("/lease", json={"holder": "invoices", "ttl": 500}).json()["lease"]
        viewer.until(lambda: viewer.state["lease"] is not None)
        assert viewer.state["lease"]["holder"] == "invoices"
        assert 400 < viewer.state["lease"]["until"] - time.time() < 501
        client.delete("/lease", headers={"Deskhand-Lease": lease})
        viewer.until(lambda: viewer.state["lease"] is None)


def test_how_many_watch(running: RunningDaemon) -> None:
    mine = cookie(running)
    with RawViewer(running, mine) as viewer:
        viewer.until(lambda: viewer.state.get("viewers") == 1)
        with RawViewer(running, mine) as other:
            other.until(lambda: other.state.get("viewers") == 2)
            viewer.until(lambda: viewer.state["viewers"] == 2)
        viewer.until(lambda: viewer.state["viewers"] == 1)


@pytest.mark.slow
def test_who_reads_nothing_slows_nobody(fresh: RunningDaemon, fresh_conn: Connection) -> None:
    mine = cookie(fresh)
    with RawViewer(fresh, mine, receive_buffer=4096), RawViewer(fresh, mine) as viewer:
        viewer.until_quiet()
        for n in range(50):
            put_photo(fresh_conn, 10 * n, 5 * n, seed=n)
            answer = fresh.act({"action": "move", "x": n, "y": 2 * n}, picture=True)
            assert answer.status_code == 200
            assert answer.json()["results"][0]["point"] == [n, 2 * n]
        viewer.until(lambda: len(viewer.outcomes) == 50)
        viewer.until_quiet()
        assert viewer.screen.tobytes() == capture(fresh_conn).tobytes()


@pytest.mark.slow
def test_a_page_that_nobody_looks_at_gets_no_pictures(running: RunningDaemon, conn: Connection) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.until_quiet()
        viewer.say({"watching": False})
        viewer.until_quiet(0.3)
        running.act({"action": "move", "x": 9, "y": 9})  # told: what was said has been heard by then
        viewer.until(lambda: viewer.outcomes and viewer.outcomes[-1]["actions"][0]["words"] == "move to (9, 9)")
        formats = len(viewer.formats)
        put_pixels(conn, conn.root, 0, 0, 100, 100, 0x00FF00)
        viewer.until_quiet()
        assert len(viewer.formats) == formats
        viewer.say({"watching": True})
        viewer.until(lambda: len(viewer.formats) > formats)


@pytest.mark.parametrize(
    "said", [b"no JSON", b"[1]", b'{"ack": 99}', b'{"take": true}', b'{"act": [{"action": "click"}]}', b"[" * 100_000]
)
def test_who_says_what_is_not_to_be_said_is_dropped(running: RunningDaemon, said: bytes) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.turn()
        viewer.say(said)
        with pytest.raises(Closed) as caught:
            viewer.until_quiet(10.0)
        assert caught.value.code in (4400, 4403)
    assert running.act({"action": "move", "x": 1, "y": 1}).json()["ok"]


def test_no_more_viewers_than_there_are_places(running: RunningDaemon) -> None:
    mine = cookie(running)
    viewers = [RawViewer(running, mine) for _ in range(16)]
    try:
        for viewer in viewers:
            viewer.turn()
        with RawViewer(running, mine) as late, pytest.raises(Closed) as caught:
            late.turn()
        assert caught.value.code == 4429
    finally:
        for viewer in viewers:
            viewer.__exit__()
    with RawViewer(running, mine) as again:
        again.until(lambda: again.state.get("viewers") == 1)


@pytest.mark.slow
def test_the_server_goes_and_comes_back_with_another_size(tmp_path: Path) -> None:
    number = own_number()
    with xvfb(1280, 800, number=number) as server:
        running = daemon(server, tmp_path)
        served = running.__enter__()
        viewer = RawViewer(served, cookie(served))
        viewer.until(lambda: viewer.screen.size == (1280, 800))
    try:
        viewer.until(lambda: viewer.state["trouble"] is not None)
        assert "can not be seen" in viewer.state["trouble"]
        with xvfb(640, 480, number=number):
            viewer.until(lambda: viewer.state["trouble"] is None and viewer.screen.size == (640, 480))
            with Connection.open(server.display) as conn:
                put_pixels(conn, conn.root, 600, 400, 40, 40, 0x123456)
                viewer.until_quiet()
                assert viewer.screen.tobytes() == capture(conn).tobytes()
    finally:
        viewer.__exit__()
        running.__exit__(None, None, None)


class _Deaf:
    """A socket whose other end takes what it is sent and never says a word."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed: list[int] = []

    async def accept(self) -> None:
        pass

    async def send_bytes(self, data: bytes) -> None:
        self.sent.append(data)

    async def receive(self) -> dict[str, str]:
        await asyncio.Event().wait()
        raise AssertionError

    async def close(self, code: int, reason: str = "") -> None:
        self.closed.append(code)


def test_who_never_acknowledges_is_dropped(display: XServer) -> None:
    async def scenario() -> None:
        async with ServedDesktop(display.display, display.xauthority) as served:
            audience = Audience(served, None)
            socket = _Deaf()
            who = Viewer(control=False, until=int(time.time()) + 100)
            stream = Stream(audience, socket, who, 1, patience=0.3)  # type: ignore[arg-type]
            await asyncio.wait_for(stream.run(), 20)
            assert (len(socket.sent), socket.closed) == (1, [4408])
            assert audience.state()["viewers"] == 0

    asyncio.run(scenario())


def test_a_view_ends_with_its_time(display: XServer) -> None:
    async def scenario() -> None:
        async with ServedDesktop(display.display, display.xauthority) as served:
            socket = _Deaf()
            stream = Stream(Audience(served, None), socket, Viewer(False, int(time.time())), 1)  # type: ignore[arg-type]
            await asyncio.wait_for(stream.run(), 20)
            assert socket.closed == [4401]

    asyncio.run(scenario())


def test_nobody_watches_the_display_when_nobody_is_there(display: XServer) -> None:
    async def scenario() -> None:
        async with ServedDesktop(display.display, display.xauthority) as served:
            audience = Audience(served, None)
            assert not watching()
            leave = audience.join(lambda: None)
            assert watching()
            leave()
            await asyncio.to_thread(until, lambda: not watching())

    def watching() -> bool:
        return any(thread.name == "deskhand-live" for thread in threading.enumerate())

    asyncio.run(scenario())
