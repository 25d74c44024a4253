"""A display that goes away, or that another client holds: an error in time that says how much was sent."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from tests.probes import RawWindow, grabbed, pressed

from deskhand.hand.answering import NO_DISPLAY, OK, answer
from deskhand.hand.errors import DisplayLost, DisplayTimeout
from deskhand.hand.hand import Hand
from deskhand.hand.held import Ledger
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer, xvfb

pytestmark = pytest.mark.slow

NO_WAIT = {"mode": "none"}
HERE = {"action": "cursor_position"}
MOVE = {"action": "move", "x": 5, "y": 5}
LATE = {"action": "wait_window", "title": "no such window", "timeout": 0}


def statuses(body: dict[str, Any]) -> list[str]:
    return [result["status"] for result in body["results"]]


def test_it_dies_in_the_middle() -> None:
    with xvfb() as server, Hand(server.display) as hand:
        threading.Timer(0.5, os.kill, (server.pid, signal.SIGKILL)).start()
        request = {"actions": [MOVE, {"action": "wait", "seconds": 60}, MOVE], "picture": True}
        reply = answer(hand, request)
        assert (reply.status, reply.answer["kind"], reply.answer["sent"]) == (NO_DISPLAY, "lost", "unknown")
        assert statuses(reply.answer) == ["ok", "failed", "skipped"]
        assert "closed the connection" in reply.answer["error"]
        assert "\n" not in reply.answer["error"]
        assert reply.picture is None
        assert not hand.connected


def test_it_dies_before_anything_was_sent() -> None:
    with xvfb() as server, Hand(server.display) as hand:
        threading.Timer(0.5, os.kill, (server.pid, signal.SIGKILL)).start()
        reply = answer(hand, {"actions": [{"action": "wait", "seconds": 60}, MOVE]})
        assert (reply.status, reply.answer["sent"]) == (NO_DISPLAY, "none")


def test_it_dies_while_the_screen_settles() -> None:
    with xvfb() as server, Hand(server.display) as hand:
        threading.Timer(0.5, os.kill, (server.pid, signal.SIGKILL)).start()
        reply = answer(hand, {"actions": [MOVE], "settle": {"mode": "fixed", "timeout": 30}})
        assert (reply.status, reply.answer["sent"], statuses(reply.answer)) == (NO_DISPLAY, "unknown", ["ok"])


def test_it_dies_while_a_failure_is_cleaned_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with xvfb() as server, Hand(server.display) as hand:

        def dies(ledger: Ledger) -> Any:
            os.kill(server.pid, signal.SIGKILL)
            return ledger.release([("key", 38)]) or ledger._conn.wait(lambda: False, 10)

        monkeypatch.setattr(Ledger, "release_all", dies)
        reply = answer(hand, {"actions": [MOVE, LATE, MOVE]})
        assert (reply.status, reply.answer["sent"]) == (NO_DISPLAY, "unknown")
        assert statuses(reply.answer) == ["ok", "failed", "skipped"]


def test_the_next_batch_finds_the_next_server() -> None:
    with xvfb() as server:
        hand = Hand(server.display)
        assert hand.act({"actions": [HERE]})[0]["ok"]
    reply = answer(hand, {"actions": [HERE]})
    assert (reply.status, reply.answer["sent"]) == (NO_DISPLAY, "none")
    assert "no X server listens" in reply.answer["error"]


@pytest.mark.parametrize("connected", [True, False])
def test_a_server_held_by_another_client(display: XServer, connected: bool) -> None:
    with Hand(display.display, timeout=0.5) as hand:
        if connected:
            assert hand.act({"actions": [HERE]})[0]["ok"]
        with grabbed(display):
            reply = answer(hand, {"actions": [MOVE], "picture": True})
            assert (reply.status, reply.answer["kind"], reply.answer["sent"]) == (NO_DISPLAY, "timeout", "none")
            assert "within 0.5 s: another client may hold a grab" in reply.answer["error"]
            with pytest.raises(DisplayTimeout):
                hand.screenshot()
        assert hand.act({"actions": [MOVE]})[0]["ok"], "when the grab is over it works again"


def test_one_grabbed_in_the_middle_and_what_was_held(display: XServer) -> None:
    with RawWindow(display), Hand(display.display, timeout=0.5) as hand:
        holder: list[Connection] = []

        def grab() -> None:
            conn = Connection.open(display.display)
            core.grab_server(conn)
            conn.sync()
            holder.append(conn)

        timer = threading.Timer(0.3, grab)
        timer.start()
        actions = [{"action": "key_down", "keys": "shift"}, {"action": "wait", "seconds": 2}, MOVE]
        reply = answer(hand, {"actions": actions, "settle": NO_WAIT})
        timer.join()
        assert (reply.status, reply.answer["kind"], reply.answer["sent"]) == (NO_DISPLAY, "timeout", "unknown")
        assert statuses(reply.answer) == ["ok", "ok", "failed"]
        holder[0].close()
        again = answer(hand, {"actions": [HERE]})
        assert again.status == OK
        assert len(again.answer["released"]) == 1
        assert pressed(display) == []


def test_a_wrong_cookie() -> None:
    with xvfb(auth=True) as server:
        reply = answer(Hand(server.display, os.devnull), {"actions": [HERE]})
        assert (reply.status, reply.answer["kind"], reply.answer["sent"]) == (NO_DISPLAY, "no_display", "none")
        assert os.devnull in reply.answer["error"]
        assert "set XAUTHORITY" in reply.answer["error"]
        assert answer(Hand(server.display, server.xauthority), {"actions": [HERE]}).status == OK


def test_the_exception_carries_the_answer() -> None:
    with xvfb() as server, Hand(server.display) as hand:
        threading.Timer(0.3, os.kill, (server.pid, signal.SIGKILL)).start()
        with pytest.raises(DisplayLost) as caught:
            hand.act({"actions": [MOVE, {"action": "wait", "seconds": 60}]})
        assert caught.value.sent == "unknown"
        assert statuses(caught.value.facts["answer"]) == ["ok", "failed"]
