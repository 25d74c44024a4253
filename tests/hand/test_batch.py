"""A batch on a real display: order, stop at the first failure, guards, settling, the picture, lost displays."""

from __future__ import annotations

import base64
import io
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from tests.probes import RawWindow, pressed, probe_window

from deskhand.hand import batch as batch_module
from deskhand.hand import perform
from deskhand.hand.answering import FAILED, OK, REFUSED, answer
from deskhand.hand.display import Display
from deskhand.hand.errors import BatchRefused, CaptureFailed, RequestFailed
from deskhand.hand.hand import Hand
from deskhand.hand.picture import MAX_BYTES, MAX_EDGE, Picture
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, window_manager, xvfb

NO_WAIT = {"mode": "none"}
LOOK = {"action": "screenshot"}
HERE = {"action": "cursor_position"}
LATE = {"action": "wait_window", "title": "no such window", "timeout": 0}


def move(x: int = 5, y: int = 5) -> dict[str, Any]:
    return {"action": "move", "x": x, "y": y}


@pytest.fixture
def hand(display: XServer) -> Iterator[Hand]:
    with Hand(display.display) as hand:
        yield hand
    assert pressed(display) == []


def statuses(body: dict[str, Any]) -> list[str]:
    return [result["status"] for result in body["results"]]


def pixels(picture: Picture) -> list[bytes]:
    """The rows of a PNG, RGB; read without our own code."""
    data, at, idat, size = picture.content, 8, b"", (0, 0)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            size = struct.unpack_from(">II", body)
            assert body[8:10] == b"\x08\x02"
        idat += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, stride = zlib.decompress(idat), 3 * size[0] + 1
    rows, above = [], bytes(stride - 1)
    for y in range(size[1]):
        coding, line = raw[y * stride], raw[y * stride + 1 : (y + 1) * stride]
        assert coding in (0, 2), "a filter this test does not read"
        above = bytes((line[i] + above[i]) & 255 for i in range(stride - 1)) if coding == 2 else line
        rows.append(above)
    assert size == (picture.width, picture.height)
    return rows


class TestOrder:
    def test_actions_run_in_order(self, display: XServer, hand: Hand) -> None:
        with RawWindow(display) as window:
            body, picture = hand.act(
                {
                    "actions": [
                        {"action": "click", "x": 10, "y": 10},
                        {"action": "click", "x": 20, "y": 10, "button": "right"},
                        HERE,
                        {"action": "scroll", "dy": 1},
                    ],
                    "settle": NO_WAIT,
                }
            )
            assert [(event.detail, event.at[0]) for event in window.all("press")] == [(1, 10), (3, 20), (5, 20)]
        assert (body["ok"], body["sent"], statuses(body)) == (True, "all", ["ok"] * 4)
        assert [result["action"] for result in body["results"]] == ["click", "click", "cursor_position", "scroll"]
        assert body["results"][2]["point"] == [20, 10]
        assert picture is None
        assert "picture" not in body

    def test_the_answer_has_the_contracts_fields(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [move()]})
        assert {"ok", "sent", "results", "settled", "settle", "settle_ms", "moving"} <= set(body)
        assert (body["settled"], body["settle"], body["moving"]) == (True, "settled", [])
        assert body["settle_ms"] >= 100
        assert isinstance(body["settle_ms"], int)

    def test_the_first_failure_stops_it(self, display: XServer, hand: Hand) -> None:
        with RawWindow(display) as window:
            body, _ = hand.act({"actions": [move(), LATE, {"action": "click"}, HERE], "settle": NO_WAIT})
            assert window.all("press") == []
        assert (body["ok"], body["sent"]) == (False, "part")
        assert statuses(body) == ["ok", "failed", "skipped", "skipped"]
        assert "no such window" in body["results"][1]["error"]
        assert all("error" not in result for index, result in enumerate(body["results"]) if index != 1)

    def test_a_failure_before_anything_was_sent(self, hand: Hand) -> None:
        for first in (LATE, {"action": "key", "keys": "a"}, {"action": "type", "text": "a"}):
            body, _ = hand.act({"actions": [first, move()], "settle": NO_WAIT})
            assert (statuses(body), body["sent"]) == (["failed", "skipped"], "none"), first

    def test_keys_without_a_window_say_what_to_do(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [{"action": "key", "keys": "a"}]})
        assert "no application would get the keys: move the pointer to a window" in body["results"][0]["error"]

    def test_100_actions(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [move(n, n) for n in range(100)], "settle": NO_WAIT})
        assert statuses(body) == ["ok"] * 100

    def test_a_fault_of_ours_is_an_answer_too(self, display: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: Any) -> Any:
            raise KeyError("oops\nagain")

        monkeypatch.setitem(perform._HANDLERS, "wait", broken)
        with RawWindow(display), Hand(display.display) as hand:
            request = {"actions": [{"action": "key_down", "keys": "shift"}, {"action": "wait", "seconds": 0}, move()]}
            body, _ = hand.act(request)
            assert statuses(body) == ["ok", "failed", "skipped"]
            error = body["results"][1]["error"]
            assert "a fault in deskhand itself: KeyError at test_batch.py:" in error
            assert "\n" not in error
            assert pressed(display) == []

    def test_so_is_one_outside_of_any_action(self, hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: Any) -> Any:
            raise IndexError("oops")

        monkeypatch.setattr(Display, "confirm", broken)
        reply = answer(hand, {"actions": [move()]})
        assert (reply.status, reply.answer["ok"], reply.answer["kind"]) == (1, False, "fault")
        assert "a fault in deskhand itself: IndexError" in reply.answer["error"]

    def test_the_client_goes_away(self, display: XServer) -> None:
        left = [3]

        def alive() -> bool:
            left[0] -= 1
            return left[0] > 0

        with RawWindow(display), Hand(display.display) as hand:
            request = {"actions": [{"action": "key_down", "keys": "a"}, move(), move(), move()], "settle": NO_WAIT}
            body, _ = hand.act(request, alive)
            assert statuses(body) == ["ok", "ok", "failed", "skipped"]
            assert "the client has gone away" in body["results"][2]["error"]
            assert pressed(display) == []

    @pytest.mark.parametrize(
        "action", [{"action": "wait", "seconds": 60}, {"action": "hold_key", "keys": "a", "seconds": 60}]
    )
    def test_a_long_action_ends_with_its_client(self, display: XServer, action: dict[str, Any]) -> None:
        gone = threading.Event()
        threading.Timer(0.3, gone.set).start()
        with RawWindow(display), Hand(display.display) as hand:
            body, _ = hand.act({"actions": [action, move()], "settle": NO_WAIT}, lambda: not gone.is_set())
            assert statuses(body) == ["failed", "skipped"]
            assert pressed(display) == []


class TestExpect:
    def test_the_picture_looked_at_must_be_the_newest(self, display: XServer, hand: Hand) -> None:
        first, _ = hand.act({"actions": [LOOK]})[0], None
        number = number_of(hand)
        body, _ = hand.act({"actions": [move()], "expect": {"sequence": number}, "settle": NO_WAIT})
        assert body["ok"]
        assert first["ok"]
        newer = number_of(hand)
        assert newer > number
        with pytest.raises(BatchRefused, match=f"the picture {number} is not the newest.*\\({newer}\\)") as caught:
            hand.act({"actions": [move()], "expect": {"sequence": number}})
        assert (caught.value.index, caught.value.sent) == (0, "none")

    def test_a_session_that_was_given_none(self, hand: Hand) -> None:
        with pytest.raises(BatchRefused, match="it was given none"):
            hand.act({"actions": [move()], "expect": {"sequence": 1}})

    def test_numbers_go_on_over_processes_and_each_session_has_its_own_newest(self, display: XServer) -> None:
        with Hand(display.display, session="a") as hand:
            a = number_of(hand)
        with Hand(display.display, session="b") as hand:
            b = number_of(hand)
        assert b > a
        with Hand(display.display, session="a") as hand:
            assert hand.act({"actions": [HERE], "expect": {"sequence": a}})[0]["ok"]
            with pytest.raises(BatchRefused, match=f"the picture {b} is not the newest"):
                hand.act({"actions": [HERE], "expect": {"sequence": b}})

    @pytest.mark.parametrize("value", [b"", b"{", b"[" * 50_000, b'{"last": 1e999, "sessions": {}}',
                                       b'{"last": -5, "sessions": {}}', b'{"last": 1, "sessions": {"": 1e999}}',
                                       b'{"last": "x", "sessions": []}', b"\xff\xfe"])  # fmt: skip
    def test_anything_may_stand_where_the_numbers_are_kept(self, display: XServer, value: bytes) -> None:
        with Connection.open(display.display) as conn:
            core.change_property(conn, conn.root, conn.atom("_DESKHAND_FRAMES"), core.ATOM_STRING, 8, value)
            conn.sync()
        with Hand(display.display) as hand:
            one, two = number_of(hand), number_of(hand)
        assert 0 < one < two

    def test_the_window_must_be_active_or_under_the_pointer(self, openbox_display: XServer) -> None:
        with (
            probe_window(openbox_display, "one", "200x200+0+50") as one,
            probe_window(openbox_display, "two", "200x200+400+50") as two,
            Hand(openbox_display.display) as hand,
        ):
            ids = {window["title"]: window["id"] for window in hand.windows()}
            hand.act({"actions": [{"action": "focus", "window": ids["two"]}]})
            inside = {"action": "click", "x": 80, "y": 150}
            elsewhere = {"action": "click", "x": 900, "y": 700}
            # Under the pointer though not active; then active though not under the pointer.
            guard = {"expect": {"window": ids["one"]}, "settle": NO_WAIT}
            assert hand.act({"actions": [inside], **guard})[0]["ok"]
            hand.act({"actions": [{"action": "focus", "window": ids["one"]}]})
            assert hand.act({"actions": [elsewhere], **guard})[0]["ok"]
            # Neither.
            hand.act({"actions": [{"action": "focus", "window": ids["two"]}]})
            before = len(one.all("press")) + len(two.all("press"))
            for action in (elsewhere, {"action": "scroll", "x": 900, "y": 700, "dy": 1},
                           {"action": "mouse_down", "x": 900, "y": 700},
                           {"action": "drag", "path": [[900, 700], [80, 150]]}):  # fmt: skip
                body, _ = hand.act({"actions": [action, HERE], **guard})
                assert statuses(body) == ["failed", "skipped"]
                assert "is neither active nor under the pointer: look again" in body["results"][0]["error"]
            body, _ = hand.act({"actions": [{"action": "key", "keys": "a"}], **guard})
            assert "does not have the keyboard focus: focus it before typing" in body["results"][0]["error"]
            assert len(one.all("press")) + len(two.all("press")) == before
            assert one.all("key") == two.all("key") == []

    def test_a_window_that_does_not_exist(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [{"action": "click", "x": 5, "y": 5}], "expect": {"window": 0x7FFFFFFF}})
        assert statuses(body) == ["failed"]


def number_of(hand: Hand) -> int:
    body, picture = hand.act({"actions": [LOOK]})
    assert picture is not None
    assert body["ok"]
    return picture.sequence


class TestSettle:
    def test_nothing_is_waited_for_when_asked_so(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [move()], "settle": NO_WAIT})
        assert (body["settled"], body["settle"], body["settle_ms"]) == (True, "none", 0)

    def test_nothing_is_waited_for_after_mere_looking(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [HERE, LOOK, {"action": "wait", "seconds": 0}]})
        assert (body["settle"], body["settle_ms"]) == ("none", 0)

    def test_a_fixed_time(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [move()], "settle": {"mode": "fixed", "timeout": 0.25}})
        assert (body["settled"], body["settle"]) == (True, "settled")
        assert body["settle_ms"] >= 250

    @pytest.mark.parametrize("mode", ["quiet", "fixed"])
    def test_what_never_stops_moving_is_named_and_no_error(self, openbox_display: XServer, mode: str) -> None:
        with (
            probe_window(openbox_display, "moving", "200x200+300+200", "--animate"),
            Hand(openbox_display.display) as hand,
        ):
            click = {"action": "click", "x": 400, "y": 350}
            body, picture = hand.act(
                {"actions": [click], "settle": {"mode": mode, "timeout": 1.5}, "picture": {"max_edge": 100}}
            )
        assert body["ok"]
        assert picture is not None
        assert body["settled"] is False
        assert body["settle"] in ("animating", "timeout")
        x, y, width, height = body["moving"][0]
        window = (299, 199, 301 + 200, 230 + 200)  # with its frame
        assert window[0] <= x < x + width <= window[2]
        assert window[1] <= y < y + height <= window[3]

    def test_after_a_failure_too(self, hand: Hand) -> None:
        body, _ = hand.act({"actions": [move(), LATE]})
        assert body["settle"] == "settled"

    def test_a_window_that_comes_late_is_waited_for(self, openbox_display: XServer) -> None:
        arguments = ("late one", "300x200+100+100", "--late", "1")
        with probe_window(openbox_display, *arguments, shown=False) as probe, Hand(openbox_display.display) as hand:
            wait = {"action": "wait_window", "title": "late one", "focused": True, "timeout": 10}
            body, _ = hand.act({"actions": [wait, {"action": "type", "text": "first"}]})
            assert body["ok"], body
            assert "".join(event["char"] for event in probe.until_all("key", 5)) == "first"

    def test_a_screen_that_can_not_be_watched_is_an_error_and_nothing_hangs(
        self, display: XServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: Any, **__: Any) -> Any:
            raise RequestFailed("BadWindow", "GetGeometry", 5)

        monkeypatch.setattr(batch_module, "wait_until_settled", broken)
        with RawWindow(display), Hand(display.display) as hand:
            reply = answer(hand, {"actions": [{"action": "key_down", "keys": "shift"}]})
            assert reply.status == FAILED
            assert statuses(reply.answer) == ["ok"]
            assert "the screen could not be watched: the X server refused GetGeometry" in reply.answer["error"]
            assert reply.answer["sent"] == "all"
            assert pressed(display) == []
        monkeypatch.setattr(batch_module, "ScreenWatch", broken)
        with Hand(display.display) as hand:
            reply = answer(hand, {"actions": [move()]})
            assert (reply.status, statuses(reply.answer), reply.answer["sent"]) == (FAILED, ["skipped"], "none")


class TestPicture:
    def test_of_the_whole_screen(self, display: XServer, hand: Hand) -> None:
        body, picture = hand.act({"actions": [move(7, 9)], "picture": True, "settle": NO_WAIT})
        assert picture is not None
        assert body["ok"]
        assert (picture.width, picture.height, picture.scale, picture.format) == (1280, 800, 1.0, "png")
        assert picture.facts()["cursor"] == [7, 9]
        assert picture.facts()["screen"] == [1280, 800]
        assert picture.blank
        assert len(pixels(picture)) == 800

    @pytest.mark.parametrize("actions", [[LOOK], [move(), LOOK], [LOOK, move()]])
    def test_a_screenshot_action_needs_no_other_word(self, hand: Hand, actions: list[dict[str, Any]]) -> None:
        body, picture = hand.act({"actions": actions, "settle": NO_WAIT})
        assert picture is not None
        assert body["ok"]
        assert picture.region == (0, 0, 1280, 800)

    def test_zoom_is_that_region_at_full_detail(self, display: XServer, hand: Hand) -> None:
        with RawWindow(display) as window:
            small = core.create_window(window.conn, 600, 300, 10, 10, background=0xFF0000)
            core.map_window(window.conn, small)
            window.conn.sync()
            zoom = {"action": "zoom", "region": [595, 295, 615, 315]}
            _, picture = hand.act({"actions": [zoom, {"action": "move", "x": 600, "y": 300}]})
            assert picture is not None
            assert (picture.width, picture.height, picture.region) == (20, 20, (595, 295, 615, 315))
            rows = pixels(picture)
            assert rows[5][15:18] == rows[14][42:45] == b"\xff\x00\x00"
            assert rows[4][15:18] == rows[15][42:45] == b"\x80\x80\x80"

    def test_the_last_zoom_or_screenshot_decides(self, hand: Hand) -> None:
        zoom = {"action": "zoom", "region": [0, 0, 20, 20]}
        for actions, size in (([zoom, LOOK], (1280, 800)), ([LOOK, zoom], (20, 20))):
            _, picture = hand.act({"actions": actions})
            assert picture is not None
            assert (picture.width, picture.height) == size

    def test_a_region_in_the_batchs_space(self, hand: Hand) -> None:
        request = {"actions": [HERE], "space": {"picture": [640, 400]}, "picture": {"region": [10, 20, 30, 40]}}
        _, picture = hand.act(request)
        assert picture is not None
        assert picture.region == (20, 40, 60, 80)

    @pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("jpeg", b"\xff\xd8"), ("webp", b"RIFF")])
    def test_formats(self, hand: Hand, form: str, magic: bytes) -> None:
        if form != "png":
            pytest.importorskip("PIL")
        _, picture = hand.act({"actions": [HERE], "picture": {"format": form, "max_edge": 200}})
        assert picture is not None
        assert picture.content.startswith(magic)
        assert picture.format == form
        assert (picture.width, picture.height) == (200, 125)
        if form != "png":
            from PIL import Image

            assert Image.open(io.BytesIO(picture.content)).size == (200, 125)

    def test_its_limits_hold_whatever_is_asked(self) -> None:
        with xvfb(width=4880, height=2560) as server, Hand(server.display) as hand, RawWindow(server) as window:
            noise(window)
            body, picture = hand.act({"actions": [HERE], "picture": {"max_edge": 16000}})
            assert picture is not None
            assert body["ok"]
            assert max(picture.width, picture.height) <= MAX_EDGE
            assert len(picture.content) <= MAX_BYTES
            assert picture.scale == pytest.approx(picture.width / 4880, abs=1e-4)
            _, region = hand.act({"actions": [{"action": "zoom", "region": [4000, 2000, 4880, 2560]}]})
            assert region is not None
            assert (region.width, region.height, region.scale) == (880, 560, 1.0)

    def test_two_pictures_with_a_change_between_differ(self, display: XServer, hand: Hand) -> None:
        hashes = []
        with RawWindow(display) as window:
            for number in range(6):
                small = core.create_window(window.conn, 10 * number, 0, 5, 5, background=0xFF0000)
                core.map_window(window.conn, small)
                window.conn.sync()
                hashes.append(hand.screenshot().hash)
            assert len(set(hashes)) == 6
            assert hand.screenshot().hash == hashes[-1]

    def test_one_that_can_not_be_taken_is_an_error(self, hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: Any) -> Any:
            raise CaptureFailed("no picture could be taken of display :0: BadMatch")

        hand.screenshot()
        monkeypatch.setattr(Screen, "capture", broken)
        reply = answer(hand, {"actions": [move()], "settle": NO_WAIT, "picture": True})
        assert (reply.status, reply.picture, reply.answer["ok"], reply.answer["sent"]) == (FAILED, None, False, "all")
        assert "no picture could be taken" in reply.answer["error"]
        assert statuses(reply.answer) == ["ok"]
        assert "picture" not in reply.answer

    def test_base64(self, hand: Hand) -> None:
        reply = answer(hand, {"actions": [LOOK]})
        assert reply.picture is not None
        assert reply.status == OK
        assert base64.b64decode(reply.with_base64()["picture"]["base64"]) == reply.picture.content
        assert "base64" not in reply.answer["picture"]


def noise(window: RawWindow) -> None:
    """Fill the window with what no encoder makes smaller (X Window System Protocol, PutImage)."""
    width, rows = 4880, 64
    conn = window.conn
    context = conn.new_id()
    conn.send(55, 0, struct.pack("=III", context, window.id, 0))
    data = os.urandom(4 * width * rows)
    for y in range(0, 2560, rows):
        head = struct.pack("=IIHHhhBBxx", window.id, context, width, rows, 0, y, 0, conn.screen.root_depth)
        conn.send(72, 2, head + data)
    conn.sync()


def test_refused_is_never_anything_but_none(hand: Hand) -> None:
    reply = answer(hand, {"actions": [move(), {"action": "move", "x": 5000, "y": 5}]})
    assert (reply.status, reply.answer["sent"], reply.answer["kind"]) == (REFUSED, "none", "refused")


def test_with_a_window_manager_that_comes_and_goes(display: XServer, hand: Hand) -> None:
    request = {"actions": [move()], "settle": {"timeout": 1.0}}
    assert hand.act(request)[0]["ok"]
    with window_manager(display):
        assert hand.act(request)[0]["ok"]
    assert hand.act(request)[0]["ok"]
