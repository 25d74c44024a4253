"""One request to the hand that stays: ``python -m deskhand.hand --ask``."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from tests.residents import ENV, HERE, command, resident

from deskhand.hand.errors import SetupError
from deskhand.hand.resident import ask
from deskhand.testing import XServer


class TestAsk:
    def ask(self, path: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(command("--ask", str(path)), input=stdin, capture_output=True, timeout=60, env=ENV)
        assert done.stderr == b""
        return done

    @pytest.mark.parametrize(
        ("stdin", "status"),
        [
            (json.dumps(HERE).encode(), 0),
            (json.dumps(HERE, indent=2).encode() + b"\n", 0),
            (b'{"actions": []}', 2),
            (b"", 2),
            (b"no json", 2),
            (b'{"actions": [{"action": "wait_window", "title": "no", "timeout": 0}]}', 3),
        ],
    )
    def test_the_answer_and_its_status(self, display: XServer, path: Path, stdin: bytes, status: int) -> None:
        with resident(display, path):
            done = self.ask(path, stdin)
        body = json.loads(done.stdout)
        assert (done.returncode, body["status"], body["ok"]) == (status, status, status == 0)

    def test_too_much(self, display: XServer, path: Path) -> None:
        with resident(display, path):
            done = self.ask(path, b" " * (9 << 20))
        assert done.returncode == 2
        assert "longer than 8 MiB" in json.loads(done.stdout)["error"]

    def test_no_hand_there(self, path: Path) -> None:
        done = self.ask(path, b"{}")
        body = json.loads(done.stdout)
        assert (done.returncode, body["sent"], body["kind"]) == (5, "none", "no_hand")
        assert "start one with --resident" in body["error"]

    def test_one_that_ends_before_it_answers(self, path: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen()

            def once() -> None:
                client, _ = listener.accept()
                client.recv(5)
                client.close()

            thread = threading.Thread(target=once)
            thread.start()
            with pytest.raises(SetupError, match="closed the connection without an answer"):
                ask(str(path), b"{}" * 1000)
            thread.join()
