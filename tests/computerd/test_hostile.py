"""64 clients that mean no good, while one is served: each of its answers must be right, and nothing may happen."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from deskhand.testing import XServer
from deskhand.testing.received import Received, fixture_window
from tests.computerd.daemons import RunningDaemon, until

Attack = Callable[[RunningDaemon, threading.Event], None]
CLICK = json.dumps({"actions": [{"action": "click", "x": 1, "y": 1}]}).encode()


def _head(running: RunningDaemon, *lines: str, token: str | None = None, path: str = "/act") -> bytes:
    whole = (f"POST {path} HTTP/1.1", "Content-Type: application/json", *lines)
    authorization = f"Authorization: Bearer {token if token is not None else running.token}"
    return "\r\n".join((*whole, authorization)).encode() + b"\r\n\r\n"


def _slowly(sock: socket.socket, content: bytes, over: threading.Event) -> None:
    for number in range(len(content)):
        sock.sendall(content[number : number + 1])
        if over.wait(1.0):
            return


def half_open(running: RunningDaemon, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10):
        over.wait()


def a_slow_head(running: RunningDaemon, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        _slowly(sock, _head(running, "Host: localhost"), over)


def a_slow_body(running: RunningDaemon, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        sock.sendall(_head(running, "Host: localhost", f"Content-Length: {len(CLICK)}"))
        _slowly(sock, CLICK[:-1], over)


def a_body_that_never_ends(running: RunningDaemon, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        sock.sendall(_head(running, "Host: localhost", "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        while not over.is_set():
            sock.sendall(chunk)


def a_huge_body(running: RunningDaemon, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        sock.sendall(_head(running, "Host: localhost", "Content-Length: 99999999999"))
        while not over.is_set():
            sock.sendall(b" " * 0x10000)


def wrong_tokens(running: RunningDaemon, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            sock.sendall(_head(running, "Host: localhost", f"Content-Length: {len(CLICK)}", token="x" * 43) + CLICK)
            assert b" 401 " in sock.recv(4096)


def foreign_hosts(running: RunningDaemon, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            sock.sendall(_head(running, "Host: evil.example", f"Content-Length: {len(CLICK)}") + CLICK)
            assert b" 403 " in sock.recv(4096)


def foreign_origins(running: RunningDaemon, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            lines = ("Host: localhost", "Origin: null", f"Content-Length: {len(CLICK)}")
            sock.sendall(_head(running, *lines) + CLICK)
            assert b" 403 " in sock.recv(4096)


def no_http(running: RunningDaemon, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            sock.sendall(os.urandom(2000) + b"\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                sock.recv(4096)


def answers_that_nobody_reads(running: RunningDaemon, over: threading.Event) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(running.address)
        line = f"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {running.token}\r\n\r\n"
        sock.settimeout(1)
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                sock.sendall(line.encode())


ATTACKS: tuple[Attack, ...] = (
    half_open, a_slow_head, a_slow_body, a_body_that_never_ends, a_huge_body, wrong_tokens, foreign_hosts,
    foreign_origins, no_http, answers_that_nobody_reads,
)  # fmt: skip


@pytest.fixture
def window(server: XServer) -> Iterator[Received]:
    with fixture_window(server) as received:
        received.forget()
        yield received


@pytest.mark.slow
def test_a_good_client_is_served_among_64_others(running: RunningDaemon, window: Received) -> None:
    over = threading.Event()
    wrong: list[str] = []

    def attack(number: int) -> None:
        while not over.is_set():
            try:
                ATTACKS[number % len(ATTACKS)](running, over)
            except OSError:
                time.sleep(0.05)  # cut off, which is the right answer; the next one does not come at once
            except AssertionError as error:
                wrong.append(f"{ATTACKS[number % len(ATTACKS)].__name__}: {error}")
                return

    threads = [threading.Thread(target=attack, args=(number,), daemon=True) for number in range(64)]
    for thread in threads:
        thread.start()
    try:
        for number in range(10, 40):
            answer = running.act({"action": "click", "x": number, "y": number}, picture=True)
            assert answer.status_code == 200, answer.text
            assert answer.json()["picture"]["cursor"] == [number, number]
            with running.client() as client:
                assert client.get("/health").status_code == 200
                assert client.get("/windows").json()["windows"]
    finally:
        over.set()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert [event["at"] for event in window.all("press")] == [[number, number] for number in range(10, 40)]
    until(lambda: len(os.listdir(f"/proc/{running.pid}/fd")) < 40)  # nothing of all that is kept
    assert running.act({"action": "move", "x": 1, "y": 1}).json()["ok"]


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


@pytest.mark.slow
def test_a_body_that_is_too_slow_or_too_large_is_told_so(running: RunningDaemon) -> None:
    with socket.create_connection(running.address, 40) as slow, socket.create_connection(running.address, 40) as large:
        slow.sendall(_head(running, "Host: localhost", f"Content-Length: {len(CLICK)}") + CLICK[:-1])
        large.sendall(_head(running, "Host: localhost", f"Content-Length: {9 << 20}"))
        assert b" 413 " in large.recv(4096)
        assert b" 408 " in slow.recv(4096)
    with socket.create_connection(running.address, 40) as head:
        head.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        assert head.recv(10) == b"", "a head that never comes keeps no connection"
