"""Who may ask: token, Host, Origin and the body's type on every route, and that the token is seen nowhere."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from deskhand.testing import XServer
from tests.commands import PROGRAM, environment
from tests.computerd.daemons import RunningDaemon, daemon, write_token

#: Every route with a body that it would take.
ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/health", None),
    ("GET", "/info", None),
    ("GET", "/apps", None),
    ("GET", "/windows", None),
    ("GET", "/screenshot", None),
    ("GET", "/metrics", None),
    ("GET", "/openapi.json", None),
    ("POST", "/act", {"actions": [{"action": "move", "x": 7, "y": 7}]}),
    ("POST", "/outcome", {"ok": True, "text": "done"}),
    ("POST", "/lease", {"holder": "intruder"}),
    ("PATCH", "/lease", {"ttl": 1}),
    ("DELETE", "/lease", None),
    ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ("GET", "/mcp", None),
    ("GET", "/no-such-path", None),
]
WRONG = {
    "no token": {"Authorization": ""},
    "another token": {"Authorization": "Bearer " + "x" * 43},
    "another scheme": {"Authorization": "Basic {token}"},
    "the token alone": {"Authorization": "{token}"},
    "a foreign host": {"Host": "evil.example"},
    "a foreign host with our port": {"Host": "evil.example:{port}"},
    "our name in a foreign one": {"Host": "localhost.evil.example"},
    "a user in the host": {"Host": "localhost@evil.example"},
    "no host": {"Host": ""},
    "origin null": {"Origin": "null"},
    "a foreign origin": {"Origin": "http://evil.example"},
    "another port's origin": {"Origin": "http://127.0.0.1:1"},
    "text": {"Content-Type": "text/plain"},
    "a form": {"Content-Type": "application/x-www-form-urlencoded"},
    "no utf-8": {"Content-Type": "application/json; charset=utf-16"},
}


def pointer(running: RunningDaemon) -> list[int]:
    return list(running.act({"action": "cursor_position"}).json()["results"][0]["point"])


def test_every_route_refuses_what_may_not_ask(running: RunningDaemon) -> None:
    before = pointer(running)
    served = []
    with running.client() as client:
        for method, path, body in ROUTES:
            for name, headers in WRONG.items():
                if path == "/health" and "Authorization" in headers:
                    continue
                filled = {
                    key: value.format(token=running.token, port=running.address[1]) for key, value in headers.items()
                }
                answer = client.request(method, path, json=body, headers=filled)
                if not 400 <= answer.status_code < 500:
                    served.append((method, path, name, answer.status_code))
                if name != "no host":
                    assert answer.headers["content-type"] == "application/problem+json", (path, name)
                    assert answer.json()["status"] == answer.status_code
        assert served == []
        assert client.get("/health").status_code == 200
    assert pointer(running) == before
    with running.client(Accept="application/json") as client:  # no lease was taken
        taken = client.post("/lease", json={"holder": "me", "ttl": 5})
        assert taken.status_code == 201


def test_what_is_ours_is_let_in(server: XServer, tmp_path: Path) -> None:
    options = ("--allow-host", "desk.example", "--allow-origin", "https://agents.example")
    with daemon(server, tmp_path, *options) as running, running.client() as client:
        host, port = running.address
        for headers in (
            {},
            {"Host": f"localhost:{port}"},
            {"Host": "desk.example"},
            {"Host": f"DESK.example:{port}"},
            {"Host": f"{host}:9"},  # a port that was forwarded
            {"Origin": f"http://{host}:{port}"},
            {"Origin": "https://agents.example"},
            {"Content-Type": "application/json; charset=utf-8"},
        ):
            assert client.get("/info", headers=headers).status_code == 200, headers
        # The pages of a name that is allowed as host are our own only under that name.
        assert client.get("/info", headers={"Origin": "http://desk.example"}).status_code == 403


def test_two_hosts_and_two_tokens_are_none(running: RunningDaemon) -> None:
    host, port = running.address
    for twice in (f"Host: {host}:{port}\r\nHost: {host}:{port}", f"Host: {host}:{port}\r\nAuthorization: Bearer x"):
        with socket.create_connection(running.address, 10) as sock:
            lines = ("GET /info HTTP/1.1", twice, f"Authorization: Bearer {running.token}", "Connection: close", "", "")
            sock.sendall("\r\n".join(lines).encode())
            assert sock.makefile("rb").readline().split()[1] in (b"400", b"401", b"403")


def test_the_token_is_seen_nowhere(server: XServer, tmp_path: Path) -> None:
    with daemon(server, tmp_path) as running:
        with running.client() as client:
            client.get("/info", params={"token": running.token})
            client.get(f"/{running.token}")
            client.get("/info", headers={"Authorization": "Bearer wrong", "Origin": f"http://{running.token}.example"})
        secret = running.token.encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ"):
                try:
                    content = Path(f"/proc/{pid}/{name}").read_bytes()
                except OSError:
                    continue
                assert secret not in content, (pid, name)
        assert not any("token" in os.readlink(f"/proc/{running.pid}/fd/{fd}") for fd in _descriptors(running.pid))
        running.stop()
        assert running.token not in "".join(running.lines)
        assert {line["event"] for line in running.log} >= {"ready", "request", "ending"}


def _descriptors(pid: int) -> list[str]:
    return [fd for fd in os.listdir(f"/proc/{pid}/fd") if os.path.lexists(f"/proc/{pid}/fd/{fd}")]


def test_the_token_from_a_descriptor(server: XServer, tmp_path: Path) -> None:
    path = write_token(tmp_path)
    fd = os.open(path, os.O_RDONLY)
    try:
        options = ("--token-fd", str(fd))
        with (
            daemon(server, tmp_path, *options, token_file=path, pass_fds=(fd,)) as running,
            running.client() as client,
        ):
            assert client.get("/info").status_code == 200
    finally:
        os.close(fd)


def _serve(server: XServer, *options: str) -> subprocess.CompletedProcess[str]:
    words = [PROGRAM, "serve", "--display", server.display, "--listen", "127.0.0.1:0", *options]
    return subprocess.run(words, env=environment(None), capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(
    ("content", "mode", "part"),
    [
        (b"a" * 40, 0o644, "others may read"),
        (b"a" * 40, 0o640, "others may read"),
        (b"short", 0o600, "16 characters"),
        (b"", 0o600, "16 characters"),
        (b"two words that are long enough", 0o600, "without spaces"),
        (b"\xff" * 40, 0o600, "printable ASCII"),
        (b"a" * 5000, 0o600, "one line"),
    ],
    ids=range(7),
)
def test_a_token_file_that_is_none(server: XServer, tmp_path: Path, content: bytes, mode: int, part: str) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(mode)
    done = _serve(server, "--token-file", str(path))
    assert done.returncode == 1
    assert part in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_token_file_that_is_a_directory(server: XServer, tmp_path: Path) -> None:
    done = _serve(server, "--token-file", str(tmp_path))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"the token file {tmp_path} is no file" in done.stderr


def test_without_a_token_it_does_not_start(server: XServer, tmp_path: Path) -> None:
    for options in ((), ("--token-file", str(tmp_path / "missing")), ("--token-fd", "77")):
        done = _serve(server, *options)
        assert done.returncode in (1, 2)
        assert "token" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_unix_socket_is_for_its_owner(server: XServer, tmp_path: Path) -> None:
    path = tmp_path / "computerd.sock"
    with daemon(server, tmp_path, listen=f"unix:{path}") as running:
        assert path.stat().st_mode & 0o777 == 0o600
        headers = {"Authorization": f"Bearer {running.token}"}
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://localhost") as client:
            assert client.get("/info", headers=headers).json()["size"] == [1280, 800]
            assert client.get("/info").status_code == 401
    assert not path.exists()
