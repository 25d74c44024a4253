"""The hand that stays: requests over a unix socket."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from tests.probes import RawWindow, keycode, pressed
from tests.residents import DOWN, HERE, IMPATIENT, Client, resident

from deskhand.testing import XServer


def test_several_requests_over_one_connection(display: XServer, path: Path) -> None:
    with resident(display, path), Client(path) as client:
        first = client.act({"request": "screenshot", "region": [0, 0, 9, 9]})
        assert (first["status"], first["picture"]["width"]) == (0, 9)
        assert client.act({"actions": [{"action": "move", "x": 5, "y": 6}]})["results"][0]["point"] == [5, 6]
        assert client.act({"request": "info"})["size"] == [1280, 800]
        second = client.act({"request": "screenshot", "region": [0, 0, 9, 9]})
        assert second["picture"]["sequence"] == first["picture"]["sequence"] + 1


def test_several_clients_one_after_the_other_over_one_x_connection(display: XServer, path: Path) -> None:
    def connections() -> int:
        return len(os.listdir(f"/proc/{display.pid}/fd"))

    with resident(display, path):
        with Client(path) as client:
            client.act(HERE)
        before = connections()
        for _ in range(5):
            with Client(path) as client:
                assert client.act(HERE)["ok"]
        assert connections() == before


@pytest.mark.slow
def test_requests_may_be_sent_before_the_answers_are_read(display: XServer, path: Path) -> None:
    with resident(display, path), Client(path) as client:
        client.send(*[{"actions": [{"action": "move", "x": n, "y": 0}]} for n in range(5)])
        assert [client.answer()["results"][0]["point"][0] for _ in range(5)] == [0, 1, 2, 3, 4]


def test_the_pictures_bytes_after_the_answer(display: XServer, path: Path) -> None:
    with resident(display, path), Client(path) as client:
        body = client.act({"request": "screenshot", "raw": True})
        picture = body["picture"]
        assert "base64" not in picture
        assert client.lines.read(picture["bytes"]).startswith(b"\x89PNG")
        assert "base64" in client.act({"request": "screenshot"})["picture"], "the next answer begins where it should"


@pytest.mark.parametrize("line", [b"{", b"", b"[]", b"\xff", b'{"a": 1, "a": 1}', b"[" * 100_000])
def test_bad_requests_end_nothing(display: XServer, path: Path, line: bytes) -> None:
    with resident(display, path), Client(path) as client:
        client.socket.sendall(line + b"\n")
        body = client.answer()
        assert (body["status"], body["ok"], body["sent"]) == (2, False, "none")
        assert client.act(HERE)["ok"]


@pytest.mark.parametrize("part", [b"", b'{"actions": ['])
def test_a_silent_client_does_not_keep_others_out(display: XServer, path: Path, part: bytes) -> None:
    with resident(display, path, program=("-c", IMPATIENT)), Client(path) as silent:
        assert silent.act(HERE)["ok"]
        silent.socket.sendall(part)
        with Client(path) as other:
            assert other.act(HERE)["ok"]
        assert silent.lines.read() == b"", "it is told: the connection is closed"


@pytest.mark.slow
def test_a_silent_client_may_stay_while_nobody_else_waits(display: XServer, path: Path) -> None:
    with resident(display, path, program=("-c", IMPATIENT)), Client(path) as client:
        for _ in range(3):
            assert client.act(HERE)["ok"]
            time.sleep(0.5)  # longer than its patience


def test_a_request_that_is_too_long(display: XServer, path: Path) -> None:
    with resident(display, path):
        with Client(path) as client:
            try:
                client.socket.sendall(b" " * (12 << 20))
            except OSError:
                pass  # it does not read the rest
            body = client.answer()
            assert body["status"] == 2
            assert "longer than 8 MiB" in body["error"]
        with Client(path) as client:
            assert client.act(HERE)["ok"]


def test_a_last_request_without_a_newline_from_a_client_that_sends_no_more(display: XServer, path: Path) -> None:
    """What ``nc -N`` and ``socat`` do with a file."""
    with resident(display, path), Client(path) as client:
        client.socket.sendall(json.dumps({"actions": [{"action": "move", "x": 3, "y": 4}]}).encode())
        client.socket.shutdown(socket.SHUT_WR)
        body = client.answer()
        assert body["ok"]
        assert body["results"][0]["point"] == [3, 4]


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_client_that_vanishes_in_the_middle_of_its_batch(display: XServer, path: Path, pipelined: bool) -> None:
    with RawWindow(display) as window, resident(display, path, "--session", "s"):
        client = Client(path)
        actions = [
            {"action": "key_down", "keys": "shift"},
            {"action": "wait", "seconds": 60},
            {"action": "click", "x": 5, "y": 5},
        ]
        client.send({"actions": actions}, *([HERE] if pipelined else []))
        assert window.conn.wait(lambda: window.received, 20)
        client.close()
        assert window.conn.wait(lambda: [event.kind for event in window.received] == ["key", "up"], 20)
        with Client(path) as client:
            assert client.act(HERE)["ok"]
        assert window.all("press") == []
        assert pressed(display) == []


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer(display: XServer, path: Path) -> None:
    with RawWindow(display) as window, resident(display, path):
        client = Client(path)
        client.send(DOWN, *[{"request": "screenshot"}] * 200)
        assert window.conn.wait(lambda: window.received, 20)
        # Nothing is read; when its patience is over the hand lets go and serves the next.
        with Client(path) as other:
            other.socket.settimeout(60)
            assert other.act(HERE)["ok"]
        client.close()
        assert pressed(display) == []


class TestHolds:
    def test_a_client_without_a_session_leaves_nothing(self, display: XServer, path: Path) -> None:
        with RawWindow(display) as window, resident(display, path):
            with Client(path) as client:
                assert client.act(DOWN)["ok"]
                assert client.act(HERE)["ok"]
                assert len(pressed(display)) == 1
            assert window.conn.wait(lambda: window.all("up"), 20)

    def test_a_session_keeps_its_own_from_client_to_client(self, display: XServer, path: Path) -> None:
        shift = f"key {keycode(display, 0xFFE1)}"
        with RawWindow(display), resident(display, path, "--session", "s"):
            for request in (DOWN, HERE):
                with Client(path) as client:
                    assert client.act(request)["ok"]
            assert pressed(display) == [shift]
            with Client(path) as client:
                assert client.act({"actions": [{"action": "key_up", "keys": "shift"}]})["ok"]
            assert pressed(display) == []

    def test_the_end_of_the_hand_without_a_session_releases(self, display: XServer, path: Path) -> None:
        with RawWindow(display):
            with resident(display, path) as process, Client(path) as client:
                client.act(DOWN)
                process.terminate()
                process.wait(20)
            assert pressed(display) == []

    def test_kill_9_and_the_next_start(self, display: XServer, path: Path) -> None:
        with RawWindow(display):
            with resident(display, path, "--session", "s") as process, Client(path) as client:
                client.act(DOWN)
                process.kill()
                process.wait()
            assert len(pressed(display)) == 1
            with resident(display, path, "--session", "s"), Client(path) as client:
                assert len(client.act(HERE)["released"]) == 1
                assert pressed(display) == []


class TestOtherUsers:
    CODE = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try: s.connect(sys.argv[1])\n"
        "except OSError as e: print(e.strerror); sys.exit()\n"
        "try:\n"
        '    s.sendall(b\'{"request": "info"}\\n\')\n'
        "    print(s.recv(100) or 'nothing')\n"
        "except OSError as e: print('nothing')\n"
    )

    def as_nobody(self, path: Path) -> str:
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            pytest.skip("only root can become another user")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = subprocess.run(
            [*nobody, "/usr/bin/python3", "-c", self.CODE, str(path)],
            capture_output=True, text=True, timeout=60, check=True, cwd="/", env={},
        )  # fmt: skip
        return done.stdout.strip()

    def test_are_refused_by_the_sockets_mode_and_again_by_who_they_are(self, display: XServer) -> None:
        # pytest's own directories let nobody else in, at a depth that depends on how it is run.
        with tempfile.TemporaryDirectory(prefix="deskhand-test-") as directory:
            os.chmod(directory, 0o755)
            self.check(display, Path(directory) / "hand.sock")

    def check(self, display: XServer, path: Path) -> None:
        with resident(display, path):
            assert self.as_nobody(path) == "Permission denied"
            path.chmod(0o666)
            assert self.as_nobody(path) == "nothing"
            with Client(path) as client:
                assert client.act(HERE)["ok"]
