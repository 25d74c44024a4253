"""The hand with ``--stream``: what a transport that carries only text needs, silence, and the lease it holds."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.hand.test_stream import ENV, HERE, NOT_WAITED, Stream
from tests.probes import pressed
from tests.xservers import until

from deskhand.hand.lease import holder_of, open_lease
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer


@contextmanager
def stream(server: XServer, *options: str) -> Iterator[Stream]:
    words = [sys.executable, "-m", "deskhand.hand", "--stream", "--display", server.display, *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=ENV) as process:
        try:
            yield Stream(process)
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == b""


def lease(holder: str, seconds: float = 60, **more: Any) -> dict[str, Any]:
    return {"request": "lease", "holder": holder, "seconds": seconds, **more}


def holder(server: XServer) -> str | None:
    with Connection.open(server.display, server.xauthority) as conn:
        return holder_of(conn)


def test_as_text_the_picture_is_in_the_answer(display: XServer) -> None:
    with stream(display, "--text") as hand:
        answer = hand.ask({**HERE, "picture": True})
        assert base64.b64decode(answer["picture"]["base64"]).startswith(b"\x89PNG")
        assert "bytes" not in answer["picture"]
        assert hand.ask(HERE)["ok"]


class TestSilence:
    def test_it_is_the_end(self, display: XServer) -> None:
        with stream(display, "--silence", "0.5") as hand:
            assert hand.ask(HERE)["ok"]
            assert hand.process.wait(20) == 0

    def test_an_empty_line_says_that_somebody_is_there(self, display: XServer) -> None:
        with stream(display, "--silence", "60") as hand:
            for _ in range(3):
                hand.send(b"")
            assert hand.ask(HERE)["ok"]

    def test_in_the_middle_of_a_batch_what_it_held_is_released(self, display: XServer) -> None:
        with stream(display, "--silence", "1") as hand:
            hand.send({"actions": [{"action": "mouse_down"}, {"action": "wait", "seconds": 50}], **NOT_WAITED})
            until(lambda: pressed(display))
            assert hand.process.wait(20) == 1
            assert pressed(display) == []

    def test_empty_lines_keep_a_batch_going(self, display: XServer) -> None:
        with stream(display, "--silence", "2") as hand:
            hand.send({"actions": [{"action": "wait", "seconds": 3}], **NOT_WAITED})
            for _ in range(6):
                with pytest.raises(subprocess.TimeoutExpired):
                    hand.process.wait(0.5)
                hand.send(b"")
            assert hand.answer()[0]["ok"]

    @pytest.mark.parametrize("value", ["0", "-1", "nan", "x", "1000"])
    def test_a_value_that_is_none(self, display: XServer, value: str) -> None:
        words = [sys.executable, "-m", "deskhand.hand", "--stream", "--silence", value]
        done = subprocess.run(words, input=b"", capture_output=True, env=ENV, check=False)
        assert (done.returncode, b"--silence must be a number" in done.stderr) == (2, True)


class TestLease:
    def test_it_lasts_as_long_as_the_stream(self, display: XServer) -> None:
        with stream(display) as hand:
            assert hand.ask(lease("one"))["ok"]
            assert holder(display) == "one"
            assert hand.ask(lease("one"))["ok"]
            assert hand.ask(HERE)["ok"]
            with stream(display) as other:
                refused = other.ask(lease("two"))
                assert (refused["kind"], refused["holder"], refused["sent"]) == ("in_use", "one", "none")
            assert hand.ask({"request": "end_lease"})["ok"]
            assert holder(display) is None
            assert hand.ask(lease("again"))["ok"]
            assert hand.close_input() == 0
            assert holder(display) is None

    def test_killed_it_has_it_no_more(self, display: XServer) -> None:
        with stream(display) as hand:
            assert hand.ask(lease("one"))["ok"]
            hand.process.kill()
            hand.process.wait()
            until(lambda: holder(display) is None)

    def test_the_end_of_its_input_ends_a_wait_in_the_queue(self, display: XServer) -> None:
        first = open_lease(display.display, display.xauthority, "first")
        first.take(60)
        with stream(display) as hand:
            hand.send(lease("waiting", wait=600))
            until(lambda: _waits(display, "waiting"))
            assert hand.close_input() == 1
            assert not _waits(display, "waiting")
        first.release()

    @pytest.mark.parametrize(
        ("request_", "words"),
        [
            ({"holder": "", "seconds": 5}, "holder"),
            ({"seconds": 5}, "holder"),
            ({"holder": "x"}, "seconds"),
            ({"holder": "x", "seconds": "5"}, "seconds"),
            ({"holder": "x", "seconds": True}, "seconds"),
            ({"holder": "x", "seconds": -1}, "from 0 to"),
            ({"holder": "x", "seconds": 5, "wait": 1e9}, "wait of a lease"),
            ({"holder": "x", "seconds": 5, "for": 1}, "no field 'for'"),
        ],
    )
    def test_a_wrong_request(self, display: XServer, request_: dict[str, Any], words: str) -> None:
        with stream(display) as hand:
            answer = hand.ask({"request": "lease", **request_})
            assert (answer["kind"], words in answer["error"]) == ("refused", True)
            assert holder(display) is None

    def test_one_command_can_not_hold_it(self, display: XServer) -> None:
        words = [sys.executable, "-m", "deskhand.hand", "--display", display.display]
        done = subprocess.run(words, input=json.dumps(lease("x")), capture_output=True, env=ENV, text=True, check=False)
        answer = json.loads(done.stdout)
        assert (done.returncode, answer["kind"]) == (2, "unsupported")
        assert "--stream" in answer["error"]


def _waits(server: XServer, name: str) -> bool:
    from deskhand.hand.owned_property import OwnedProperty

    with Connection.open(server.display, server.xauthority) as conn:
        lines = OwnedProperty(conn, "_DESKHAND_LEASE")
        with lines.exclusive():
            return any(line.get("holder") == name for line in lines.others())


def test_a_signal_while_it_is_taken_on_a_display_that_hangs_is_the_end(display: XServer) -> None:
    with stream(display) as hand:
        assert hand.ask(HERE)["ok"]
        os.kill(display.pid, signal.SIGSTOP)
        try:
            hand.send(lease("a"))
            until(lambda: _connections(hand.process.pid) == 2)  # that of the lease is under way
            hand.process.send_signal(signal.SIGTERM)
            assert hand.process.wait(30) == 1
        finally:
            os.kill(display.pid, signal.SIGCONT)


def _connections(pid: int) -> int:
    links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    return sum(link.startswith("socket:") for link in links)
