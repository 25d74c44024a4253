"""The hand as a whole: connecting and again, what it tells, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.probes import RawWindow, pressed, probe_window

from deskhand.hand.envelope import PictureWish
from deskhand.hand.errors import BatchRefused, DisplayLost, NoDisplay
from deskhand.hand.hand import Hand
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, xvfb

HERE = {"actions": [{"action": "cursor_position"}]}


@pytest.fixture
def hand(display: XServer) -> Iterator[Hand]:
    with Hand(display.display) as hand:
        yield hand
    assert pressed(display) == []


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_it_connects_when_first_needed_and_lets_go(display: XServer) -> None:
    hand = Hand(display.display)
    assert not hand.connected
    hand.act(HERE)
    assert hand.connected
    hand.close()
    hand.close()
    assert not hand.connected
    assert hand.act(HERE)[0]["ok"], "it connects again"
    hand.close()


def test_the_display_is_that_of_the_environment(display: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", display.display)
    with Hand() as hand:
        assert hand.info()["display"] == display.display


def test_without_any_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(NoDisplay, match="no display is named: set DISPLAY"):
        Hand().act(HERE)


def test_a_connection_that_died_while_nobody_looked_is_replaced(display: XServer, hand: Hand) -> None:
    hand.act(HERE)
    with Connection.open(display.display) as conn:
        core.kill_client(conn, hand.display.conn.setup.id_base + 1)
        conn.sync()
    body, _ = hand.act({"actions": [{"action": "move", "x": 9, "y": 9}], "settle": {"mode": "none"}})
    assert body["ok"]
    assert body["results"][0]["point"] == [9, 9]


def test_what_the_dead_connection_held_is_released(display: XServer) -> None:
    with RawWindow(display), Hand(display.display) as hand:
        hand.act({"actions": [{"action": "key_down", "keys": "shift"}]})
        assert len(pressed(display)) == 1
        with Connection.open(display.display) as conn:
            core.kill_client(conn, hand.display.conn.setup.id_base + 1)
            conn.sync()
        body, _ = hand.act(HERE)
        assert len(body["released"]) == 1
        assert pressed(display) == []


def test_it_says_what_the_display_is(openbox_display: XServer) -> None:
    with Hand(openbox_display.display) as hand, probe_window(openbox_display, "probe", "200x100+50+60"):
        info = hand.info()
        assert (info["size"], info["depth"], info["window_manager"]) == ([1280, 800], 24, "Openbox")
        assert info["monitors"]
        assert info["server"]
        (window,) = hand.windows()
        assert (window["title"], window["rect"][2:]) == ("probe", [200, 100])


def test_the_applications_are_those_of_the_environment(
    display: XServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "applications").mkdir()
    entry = tmp_path / "applications" / "org.example.One.desktop"
    entry.write_text("[Desktop Entry]\nType=Application\nName=One\nExec=true\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_DIRS", os.devnull)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert Hand().apps() == [{"id": "org.example.One", "name": "One", "path": str(entry)}]


class TestScreenshot:
    def test_of_a_region(self, hand: Hand) -> None:
        picture = hand.screenshot((10, 20, 30, 50))
        assert (picture.width, picture.height, picture.region) == (20, 30, (10, 20, 30, 50))

    @pytest.mark.parametrize("region", [(0, 0, 1281, 10), (5, 5, 5, 10), (-1, 0, 5, 5)])
    def test_of_a_region_that_is_not_there(self, hand: Hand, region: tuple[int, int, int, int]) -> None:
        with pytest.raises(BatchRefused, match="is not inside the 1280x800 screen"):
            hand.screenshot(region)

    def test_without_limits(self) -> None:
        with xvfb(width=3000, height=500) as server, Hand(server.display) as hand:
            assert hand.screenshot().width < 3000
            assert hand.screenshot(limits=False).width == 3000
            assert hand.screenshot(wish=PictureWish(max_edge=100), limits=False).width == 100


@pytest.mark.slow
def test_500_pictures_and_batches_leave_everything_as_it_was(display: XServer) -> None:
    with RawWindow(display), Hand(display.display) as hand:
        request = {"actions": [{"action": "click", "x": 5, "y": 5}], "settle": {"mode": "none"}}
        wish = PictureWish(max_edge=64)
        hand.screenshot((0, 0, 64, 64), wish)
        hand.act(request)
        before = descriptors(os.getpid()), descriptors(display.pid)
        for _ in range(500):
            hand.screenshot((0, 0, 64, 64), wish)
            hand.act(request)
        assert (descriptors(os.getpid()), descriptors(display.pid)) == before


def test_50_hands_one_after_the_other_leave_everything_as_it_was(display: XServer) -> None:
    with Hand(display.display) as hand:
        hand.screenshot((0, 0, 5, 5))
    with Connection.open(display.display) as conn:
        before = descriptors(os.getpid()), len(core.query_tree(conn, conn.root)[2])
        for _ in range(50):
            with Hand(display.display) as hand:
                hand.act(HERE)
                hand.screenshot((0, 0, 5, 5))
        conn.sync()
        assert (descriptors(os.getpid()), len(core.query_tree(conn, conn.root)[2])) == before


def test_closing_after_the_display_is_gone_says_so() -> None:
    with xvfb() as server:
        hand = Hand(server.display)
        hand.act(HERE)
        os.kill(server.pid, signal.SIGKILL)
        conn = hand.display.conn
        with pytest.raises(DisplayLost):
            conn.wait(lambda: False, 20)
    hand.close()
    hand.close()


@pytest.mark.parametrize("name", ["_DESKHAND_HELD", "_DESKHAND_BORROWED", "_DESKHAND_FRAMES"])
@pytest.mark.parametrize(
    "value",
    [
        b"[" * 100_000,
        b'{"owner": 1, "codes": {"38": [1e999]}}',
        b'{"owner": 1, "codes": {"38": [-5, 99999999999]}, "state": [1], "locks": 5}',
        b'{"owner": 1, "codes": {}, "state": [999999,0,0,0,0,0,0,0,0,0], "locks": 0, "groups": [0]}',
        b'{"owner": 1, "codes": {"38": [97]}, "locks": 1e999}',
        b'{"owner": 1, "codes": [], "groups": {}}',
        b"\xff\n\xfe\n{}\n[]",
    ],
)
def test_what_others_write_on_the_root_window_does_not_stop_us(display: XServer, name: str, value: bytes) -> None:
    with Connection.open(display.display) as conn:
        rows = core.get_keyboard_mapping(conn, 8, 248)
        core.change_property(conn, conn.root, conn.atom(name), core.ATOM_STRING, 8, value)
        conn.sync()
        with RawWindow(display), Hand(display.display) as hand:
            body, picture = hand.act({"actions": [{"action": "key", "keys": "é"}], "picture": True})
            assert body["ok"]
            assert picture is not None
        assert core.get_keyboard_mapping(conn, 8, 248) == rows
