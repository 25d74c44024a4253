"""The hand with ``--stream``: requests on standard input for as long as it is open."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from tests.probes import RawWindow, keycode, pressed
from tests.xservers import put_pixels, until

import deskhand
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer

F_SETPIPE_SZ = 1031  # fcntl(2); Python's module has it from 3.10 on
SOURCES = str(Path(deskhand.__file__).parents[1])
ENV = {"PYTHONPATH": SOURCES, **{name: value for name, value in os.environ.items() if name.startswith("COV")}}
NOT_WAITED = {"settle": {"mode": "none"}}
HERE = {"actions": [{"action": "cursor_position"}]}
SHIFT_DOWN = {"action": "key_down", "keys": "shift"}
DOWN = {"actions": [SHIFT_DOWN], **NOT_WAITED}
HELD = [
    [{"action": "mouse_down", "x": 1, "y": 1}, {"action": "wait", "seconds": 50}],
    [{"action": "mouse_down", "x": 1, "y": 1}, {"action": "wait_window", "title": "no such", "timeout": 50}],
    [{"action": "hold_key", "keys": "a", "seconds": 50}],
]


class Stream:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, request: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((request if isinstance(request, bytes) else json.dumps(request).encode()) + b"\n")
        self.process.stdin.flush()

    def answer(self) -> tuple[dict[str, Any], bytes]:
        assert self.process.stdout is not None
        body = json.loads(self.process.stdout.readline())
        return body, self.process.stdout.read((body.get("picture") or {}).get("bytes", 0))

    def ask(self, request: Any) -> dict[str, Any]:
        self.send(request)
        return self.answer()[0]

    def close_input(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(20)


@contextmanager
def stream(server: XServer, session: str = "s") -> Iterator[Stream]:
    words = [sys.executable, "-m", "deskhand.hand", "--stream", "--session", session, "--display", server.display]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=ENV) as process:
        try:
            yield Stream(process)
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_requests_and_answers(display: XServer) -> None:
    with stream(display) as hand:
        assert hand.ask({"request": "info"})["size"] == [1280, 800]
        hand.send({**HERE, "picture": True})
        body, picture = hand.answer()
        assert (body["ok"], body["status"], picture[:4]) == (True, 0, b"\x89PNG")
        refused = hand.ask({"actions": []})
        assert (refused["kind"], refused["status"]) == ("refused", 2)
        for wrong in (b"", b"{", b'{"a": 1, "a": 2}', b"[" * 100_000):
            assert hand.ask(wrong)["kind"] == "refused"
        assert hand.ask(HERE)["ok"]
        assert hand.close_input() == 0


def test_several_requests_at_once_are_answered_in_order(display: XServer) -> None:
    with stream(display) as hand:
        for n in range(5):
            hand.send({"actions": [{"action": "move", "x": n, "y": n}], **NOT_WAITED})
        assert [hand.answer()[0]["results"][0]["point"] for _ in range(5)] == [[n, n] for n in range(5)]


def test_a_request_that_was_cut_off_is_not_carried_out(display: XServer) -> None:
    with RawWindow(display) as window, stream(display) as hand:
        assert hand.process.stdin is not None
        hand.process.stdin.write(json.dumps({"actions": [{"action": "click", "x": 9, "y": 9}]}).encode())
        assert hand.close_input() == 0
        assert hand.process.stdout is not None
        assert hand.process.stdout.read() == b""
        assert window.all() == []


def test_too_long_a_request_is_the_last(display: XServer) -> None:
    with stream(display) as hand:
        assert hand.process.stdin is not None
        try:
            hand.process.stdin.write(b" " * (9 << 20))
            hand.process.stdin.flush()
        except BrokenPipeError:
            pass
        assert "longer than 8 MiB" in hand.answer()[0]["error"]
        assert hand.process.wait(20) == 2
        try:
            hand.process.stdin.close()
        except BrokenPipeError:
            pass


def test_the_end_between_two_requests_keeps_what_the_session_holds(display: XServer) -> None:
    with RawWindow(display), stream(display) as first:
        assert first.ask(DOWN)["ok"]
        assert first.close_input() == 0
        assert pressed(display) == [f"key {keycode(display, 0xFFE1)}"]
        with stream(display) as second:
            assert second.ask({"request": "release"})["ok"]
        assert pressed(display) == []


@pytest.mark.parametrize("actions", HELD, ids=["wait", "wait_window", "hold"])
@pytest.mark.parametrize("end", ["stdin", "stdout", "SIGTERM", "SIGHUP"])
def test_nobody_waits_any_more(display: XServer, actions: list[dict[str, Any]], end: str) -> None:
    with RawWindow(display) as window, stream(display) as hand:
        assert hand.ask(DOWN)["ok"]  # what an earlier batch holds goes too
        window.forget()
        hand.send({"actions": [*actions, {"action": "click", "x": 77, "y": 77}], **NOT_WAITED})
        assert window.conn.wait(lambda: [one for one in window.received if one.kind in ("press", "key")], 20)
        if end == "stdin":
            assert hand.close_input() == 1
        elif end == "stdout":
            assert hand.process.stdout is not None
            hand.process.stdout.close()
            assert hand.process.wait(20) == 1
        else:
            hand.process.send_signal(getattr(signal, end))
            assert hand.process.wait(20) == 1
        assert pressed(display) == []
        assert (77, 77) not in [one.at for one in window.all("press")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_two_requests_ends_it_and_releases(display: XServer, number: int) -> None:
    with RawWindow(display), stream(display) as hand:
        assert hand.ask(DOWN)["ok"]
        hand.process.send_signal(number)
        hand.process.wait(20)
        until(lambda: pressed(display) == [])


def test_the_one_shot_form_sees_that_nobody_reads(display: XServer) -> None:
    words = [sys.executable, "-m", "deskhand.hand", "--session", "s", "--display", display.display]
    with RawWindow(display) as window, subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, env=ENV) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"actions": [SHIFT_DOWN, *HELD[0]], **NOT_WAITED}).encode())
        process.stdin.close()
        assert window.conn.wait(lambda: window.received, 20)
        process.stdout.close()
        assert process.wait(20) == 1
        assert pressed(display) == []
        assert process.stderr is not None
        assert process.stderr.read().count(b"\n") == 1


@pytest.mark.parametrize("form", ["stream", "one-shot"])
def test_a_signal_ends_it_also_when_nobody_reads_its_answer(display: XServer, form: str) -> None:
    with Connection.open(display.display) as conn:
        for place in range(0, 800, 8):  # so that the picture does not fit into the pipe
            put_pixels(conn, conn.root, place, place, 7, 5, 0x10203 * place)
        conn.sync()
    options = ["--stream"] if form == "stream" else []
    words = [sys.executable, "-m", "deskhand.hand", *options, "--display", display.display]
    with subprocess.Popen(words, stdin=-1, stdout=-1, env=ENV) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, F_SETPIPE_SZ, 4096)
        try:
            process.stdin.write(json.dumps({**HERE, "picture": True}).encode() + b"\n")
            process.stdin.flush()
            if form == "one-shot":
                process.stdin.close()
            until(lambda: _unread(process.stdout) == 4096)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == (1 if form == "stream" else -signal.SIGTERM)
        finally:
            process.kill()


def _unread(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def test_ctrl_c_before_the_request_shows_no_traceback(display: XServer) -> None:
    words = [sys.executable, "-m", "deskhand.hand", "--display", display.display]
    with subprocess.Popen(words, stdin=-1, stdout=-1, stderr=-1, env=ENV) as process:
        try:
            # It reads standard input once that is what it sleeps in.
            until(lambda: "pipe" in Path(f"/proc/{process.pid}/wchan").read_text())
            process.send_signal(signal.SIGINT)
            _out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, err) == (-signal.SIGINT, b"")


def test_standard_input_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    with open(tmp_path / "written", "wb") as written:
        words = [sys.executable, "-m", "deskhand.hand", "--display", ":0"]
        done = subprocess.run(words, stdin=written, capture_output=True, env=ENV, timeout=60)
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (2, b"")
    assert (answer["sent"], answer["kind"]) == ("none", "refused")
    assert "standard input can not be read" in answer["error"]


@pytest.mark.parametrize("options", [[], ["--stream"]])
def test_where_no_thread_can_be_started_that_is_told(display: XServer, options: list[str]) -> None:
    program = (
        "import sys, threading\n"
        'def refuse(self):\n    raise RuntimeError("can\'t start new thread")\n'
        "threading.Thread.start = refuse\n"
        "from deskhand.hand.__main__ import main\n"
        f"sys.exit(main({[*options, '--display', display.display]!r}))"
    )
    request = json.dumps(HERE).encode() + b"\n"
    done = subprocess.run([sys.executable, "-c", program], input=request, capture_output=True, env=ENV, timeout=60)
    answer = json.loads(done.stdout)
    assert done.stderr == b""
    assert done.returncode == answer.get("status", 1) == 1
    assert (answer["ok"], answer["sent"]) == (False, "none")
    assert "no thread can be started" in answer["error"]
