"""What who has no token, or an application of the desktop's, can take from those who are served."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import httpx2
import pytest

from deskhand.computerd.metrics import Metrics
from deskhand.testing import XServer, window_manager, xvfb
from tests.computerd.daemons import RunningDaemon, daemon, until


def _ask(running: RunningDaemon, *lines: str, body: bytes = b"") -> bytes:
    with socket.create_connection(running.address, 10) as sock:
        sock.sendall("\r\n".join((*lines, "", "")).encode() + body)
        return sock.makefile("rb").readline()


def test_without_the_token_no_body_is_read(running: RunningDaemon) -> None:
    for path in ("/health", "/live"):
        head = (f"GET {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
        assert b" 400 " in _ask(running, *head, "Content-Length: 8000000", body=b" " * 1000)
        assert b" 400 " in _ask(running, *head, "Transfer-Encoding: chunked", body=b"3e8\r\n")
        assert b" 400 " not in _ask(running, *head, "Content-Length: 0")
    with running.client() as client:
        assert client.get("/health").status_code == 200


def test_who_has_no_token_takes_nobodys_place(running: RunningDaemon) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    strangers = []
    try:
        with running.client() as client:
            assert client.get("/info").status_code == 200
            for _ in range(700):
                strangers.append(socket.create_connection(running.address, 10))
                strangers[-1].sendall(head)
            until(lambda: len(os.listdir(f"/proc/{running.pid}/fd")) > 500)
            for _ in range(20):
                with running.client() as another:  # over a connection of its own
                    assert another.get("/info").status_code == 200
    finally:
        for one in strangers:
            one.close()


def test_a_body_has_one_end(running: RunningDaemon) -> None:
    head = ("Host: localhost", f"Authorization: Bearer {running.token}", "Content-Type: application/json")
    both = ("Content-Length: 5", "Transfer-Encoding: chunked")
    assert b" 400 " in _ask(running, "POST /act HTTP/1.1", *head, *both, body=b"0\r\n\r\n")
    assert b" 400 " in _ask(running, "POST /act HTTP/1.0", *head, both[1], body=b"0\r\n\r\n")


def test_what_is_wrong_is_no_fault_of_ours(running: RunningDaemon) -> None:
    with running.client() as client:
        assert client.get("/live/session").status_code == 401
        for used in ("1e999", "-1e999", "NaN", "1" * 5000, "0.5"):
            body = f'{{"ok": true, "text": "x", "used": {used}}}'
            answer = client.post("/outcome", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 422
            assert "float" not in answer.text
            assert "sys." not in answer.text


def test_leases_that_are_over_take_no_place(server: XServer, tmp_path: Path) -> None:
    with daemon(server, tmp_path) as running, running.client() as client:
        for number in range(40):
            taken = client.post("/lease", json={"holder": f"gone {number}", "ttl": 0.1, "wait": 20})
            assert taken.status_code == 201, (number, taken.text)


def test_what_was_refused_before_anything_was_sent_may_come_again(running: RunningDaemon) -> None:
    key = {"Idempotency-Key": "in-use-first"}
    with running.client(Accept="application/json") as client:
        lease = client.post("/lease", json={"holder": "another", "ttl": 60}).json()["lease"]
        refused = running.act({"action": "move", "x": 3, "y": 3}, headers=key)
        assert (refused.status_code, refused.json()["kind"]) == (409, "in_use")
        client.delete("/lease", headers={"Deskhand-Lease": lease})
        assert running.act({"action": "move", "x": 3, "y": 3}, headers=key).json()["ok"]
        again = running.act({"action": "move", "x": 3, "y": 3}, headers=key)
        assert again.headers["Idempotency-Replayed"] == "true"


def test_a_server_that_hangs_is_asked_once(tmp_path: Path) -> None:
    with xvfb() as server, daemon(server, tmp_path) as running, running.client() as client:
        assert client.get("/health").status_code == 200
        os.kill(server.pid, signal.SIGSTOP)
        try:
            # Another attempt, to connect, would take it over the second that probes wait.
            assert "GetScreenSaver" in client.get("/health").json()["display"]
        finally:
            os.kill(server.pid, signal.SIGCONT)
        until(lambda: client.get("/health").status_code == 200)


def test_problems_are_counted_and_numbers_are_whole(running: RunningDaemon) -> None:
    with running.client() as client:
        client.get("/no-such-path")
        text = client.get("/metrics").text
    assert 'deskhand_problems_total{kind="not_found"}' in text
    metrics = Metrics()
    assert "\na_total 12345678\n" in metrics.text({"a_total": ("What.", 12345678.0)})
    assert any(line["event"] == "request" and line.get("problem") == "not_found" for line in running.log)


def test_pictures_and_windows_wait_for_no_launcher(tmp_path: Path) -> None:
    with (
        socket.socket(socket.AF_UNIX) as silent,
        xvfb() as server,
        window_manager(server),
    ):
        silent.bind(str(tmp_path / "launcher.sock"))
        silent.listen(64)
        with daemon(server, tmp_path, launcher=tmp_path / "launcher.sock") as running:
            answers: list[httpx2.Response] = []

            def ask() -> None:
                with running.client() as client:
                    answers.append(client.get("/apps"))

            asking = threading.Thread(target=ask)
            asking.start()
            while True:
                connection, _ = silent.accept()
                if connection.recv(10):
                    break
                connection.close()
            with running.client() as client:
                assert client.get("/windows").status_code == 200
                assert client.get("/screenshot").status_code == 200
            assert answers == []
            connection.close()
            asking.join(30)
            assert answers[0].status_code == 503


@pytest.mark.parametrize("twice", [True, False])
def test_a_body_of_very_many_names_stops_nobody(running: RunningDaemon, twice: bool) -> None:
    names = ",".join(f'"{number}":0' for number in range(400_000)) + (',"399999":0' if twice else "")
    with running.client() as client:
        answer = client.post("/act", content=f"{{{names}}}", headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert ("twice" in answer.json()["detail"]) is twice
