"""64 clients that mean no good, while one is served: each of its answers must be right, and nothing may happen."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from bench.hostile import CLICK, Attackers, head

from deskhand.testing import XServer
from deskhand.testing.received import Received, fixture_window
from tests.computerd.daemons import RunningDaemon, until


@pytest.fixture
def window(server: XServer) -> Iterator[Received]:
    with fixture_window(server) as received:
        received.forget()
        yield received


@pytest.mark.slow
def test_a_good_client_is_served_among_64_others(running: RunningDaemon, window: Received) -> None:
    with Attackers(running, 64) as attackers:
        for number in range(10, 40):
            answer = running.act({"action": "click", "x": number, "y": number}, picture=True)
            assert answer.status_code == 200, answer.text
            assert answer.json()["picture"]["cursor"] == [number, number]
            with running.client() as client:
                assert client.get("/health").status_code == 200
                assert client.get("/windows").json()["windows"]
    assert attackers.wrong == []
    assert [event["at"] for event in window.all("press")] == [[number, number] for number in range(10, 40)]
    until(lambda: len(os.listdir(f"/proc/{running.pid}/fd")) < 40)  # nothing of all that is kept
    assert running.act({"action": "move", "x": 1, "y": 1}).json()["ok"]


def test_answers_that_nobody_reads_are_soon_made_no_more(running: RunningDaemon, window: Received) -> None:
    """Left to itself, the kernel takes some seventy of them."""

    def made() -> int:
        return len([line for line in running.log if line.get("route") == "/openapi.json"])

    before = made()
    line = f"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {running.token}\r\n\r\n"
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(running.address)
        deaf.sendall(line.encode() * 100)
        until(lambda: made() > before)
        for number in range(20):  # each of which takes longer than such an answer
            assert running.act({"action": "move", "x": number, "y": 1}, picture=True).json()["ok"]
        assert 1 <= made() - before <= 20


def test_connections_are_bounded(running: RunningDaemon) -> None:
    open_ones = []
    try:
        for _ in range(700):
            open_ones.append(socket.create_connection(running.address, 10))
        with running.client() as client:
            assert client.get("/health").status_code == 200
            assert client.get("/info").status_code == 200
        assert len(os.listdir(f"/proc/{running.pid}/fd")) < 600
    finally:
        for one in open_ones:
            one.close()


@pytest.mark.long
def test_a_body_that_is_too_slow_or_too_large_is_told_so(running: RunningDaemon) -> None:
    with socket.create_connection(running.address, 40) as slow, socket.create_connection(running.address, 40) as large:
        slow.sendall(head(running, "Host: localhost", f"Content-Length: {len(CLICK)}") + CLICK[:-1])
        large.sendall(head(running, "Host: localhost", f"Content-Length: {9 << 20}"))
        assert b" 413 " in large.recv(4096)
        assert b" 408 " in slow.recv(4096)
    with socket.create_connection(running.address, 40) as opened:
        opened.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        assert opened.recv(10) == b"", "a head that never comes keeps no connection"
