"""Clients that mean no good or are slow: ``python -m bench.hostile ADDRESS TOKEN_FILE COUNT``.

They begin at a line on standard input and stop at the next one; each time a line says so when it is done. They are on
once the first rush is over, two seconds later; at the line ``rush`` they are on at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Reached(Protocol):
    """A computerd that can be reached; its token, as some of them have it."""

    @property
    def address(self) -> tuple[str, int]: ...

    @property
    def token(self) -> str: ...


Attack = Callable[[Reached, threading.Event], None]
CLICK = json.dumps({"actions": [{"action": "click", "x": 1, "y": 1}]}).encode()


def head(running: Reached, *lines: str, token: str | None = None, path: str = "/act") -> bytes:
    """The head of a batch's request, with the token unless another is given."""
    whole = (f"POST {path} HTTP/1.1", "Content-Type: application/json", *lines)
    authorization = f"Authorization: Bearer {token if token is not None else running.token}"
    return "\r\n".join((*whole, authorization)).encode() + b"\r\n\r\n"


def _slowly(sock: socket.socket, content: bytes, over: threading.Event) -> None:
    for number in range(len(content)):
        sock.sendall(content[number : number + 1])
        if over.wait(1.0):
            return


def half_open(running: Reached, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10):
        over.wait()


def a_slow_head(running: Reached, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        _slowly(sock, head(running, "Host: localhost"), over)


def a_slow_body(running: Reached, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        sock.sendall(head(running, "Host: localhost", f"Content-Length: {len(CLICK)}"))
        _slowly(sock, CLICK[:-1], over)


def a_body_that_never_ends(running: Reached, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        sock.sendall(head(running, "Host: localhost", "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        while not over.is_set():
            sock.sendall(chunk)


def a_huge_body(running: Reached, over: threading.Event) -> None:
    with socket.create_connection(running.address, 10) as sock:
        sock.sendall(head(running, "Host: localhost", "Content-Length: 99999999999"))
        while not over.is_set():
            sock.sendall(b" " * 0x10000)


def wrong_tokens(running: Reached, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            sock.sendall(head(running, "Host: localhost", f"Content-Length: {len(CLICK)}", token="x" * 43) + CLICK)
            assert b" 401 " in sock.recv(4096)


def foreign_hosts(running: Reached, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            sock.sendall(head(running, "Host: evil.example", f"Content-Length: {len(CLICK)}") + CLICK)
            assert b" 403 " in sock.recv(4096)


def foreign_origins(running: Reached, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            lines = ("Host: localhost", "Origin: null", f"Content-Length: {len(CLICK)}")
            sock.sendall(head(running, *lines) + CLICK)
            assert b" 403 " in sock.recv(4096)


def no_http(running: Reached, over: threading.Event) -> None:
    while not over.is_set():
        with socket.create_connection(running.address, 10) as sock:
            sock.sendall(os.urandom(2000) + b"\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                sock.recv(4096)


def answers_that_nobody_reads(running: Reached, over: threading.Event) -> None:
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


class Attackers:
    """``count`` of them in threads, until the block is left; ``wrong`` says which was not refused as it should be."""

    def __init__(self, reached: Reached, count: int) -> None:
        self._reached = reached
        self._over = threading.Event()
        self.wrong: list[str] = []
        self._threads = [threading.Thread(target=self._attack, args=(number,), daemon=True) for number in range(count)]

    def __enter__(self) -> Attackers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(30)

    def _attack(self, number: int) -> None:
        attack = ATTACKS[number % len(ATTACKS)]
        while not self._over.is_set():
            try:
                attack(self._reached, self._over)
            except OSError:
                time.sleep(0.05)  # cut off, which is the right answer; the next one does not come at once
            except AssertionError as error:
                self.wrong.append(f"{attack.__name__}: {error}")
                return


class _Named:
    def __init__(self, address: str, token_file: str) -> None:
        host, _, port = address.rpartition(":")
        self.address = (host, int(port))
        self.token = Path(token_file).read_text().strip()


def main(address: str, token_file: str, count: str) -> int:
    """Stop and go by lines; the status is 1 when one of them was not refused."""
    reached = _Named(address, token_file)
    wrong: list[str] = []
    while line := sys.stdin.readline():
        with Attackers(reached, int(count)) as attackers:
            if line.strip() != "rush":
                time.sleep(2.0)  # until all have connected, and the first rush is over: it counts what they go on doing
            print("on", flush=True)
            sys.stdin.readline()
        wrong += attackers.wrong
        print("off", flush=True)
    for fault in wrong:
        print(fault, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
