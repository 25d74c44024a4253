"""A socket that outlives computerd: who passes it, who can not take its address meanwhile, and what is refused."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from deskhand.computerd.listening import listening
from deskhand.desktop.address import tcp_socket
from deskhand.errors import SetupError
from deskhand.testing import XServer
from tests.commands import PROGRAM, deskhand, environment
from tests.computerd.daemons import daemon, write_token

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def answer(client: socket.socket) -> bytes:
    """All that comes until the other end closes."""
    return b"".join(iter(lambda: client.recv(65536), b""))


def test_nobody_takes_the_address_and_clients_wait_while_it_is_started_again(server: XServer, tmp_path: Path) -> None:
    with tcp_socket("127.0.0.1:0") as kept:
        address = kept.getsockname()
        with daemon(server, tmp_path, listen="systemd", passed=kept) as first:
            assert first.address == address
            assert first.act({"action": "move", "x": 3, "y": 4}).json()["ok"]
            first.stop(signal.SIGKILL)
            with pytest.raises(OSError, match="in use"):
                tcp_socket(first.listen)
            with socket.create_connection(address, 30) as client:
                client.sendall(HEALTH)
                with daemon(server, tmp_path, listen="systemd", passed=kept) as second:
                    assert b" 200 OK" in answer(client).splitlines()[0]
                    assert second.listen == first.listen
                    assert second.stop(signal.SIGTERM) == 0
            with pytest.raises(OSError, match="in use"):
                tcp_socket(first.listen)


def test_a_path_that_is_passed_stays_when_it_ends(server: XServer, tmp_path: Path) -> None:
    path = tmp_path / "computerd.sock"
    with socket.socket(socket.AF_UNIX) as kept:
        kept.bind(str(path))
        kept.listen()
        with daemon(server, tmp_path, listen="systemd", passed=kept) as running:
            assert running.url == f"unix:{path}"
        assert path.is_socket()


def test_systemds_own_activation(server: XServer, tmp_path: Path) -> None:
    """It starts computerd at the first connection, whose request is served."""
    program = shutil.which("systemd-socket-activate")
    if program is None:
        pytest.skip("systemd-socket-activate is not installed")
    path = tmp_path / "computerd.sock"
    words = [program, "--listen", str(path), PROGRAM, "serve", "--display", server.display, "--listen", "systemd"]
    words += ["--token-file", str(write_token(tmp_path)), "--xauthority", str(server.xauthority)]
    process = subprocess.Popen(words, env=environment(None), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "Listening on" in process.stderr.readline()
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(30)
            client.connect(str(path))
            client.sendall(HEALTH)
            assert b" 200 OK" in answer(client).splitlines()[0]
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


def test_the_variables_are_for_one_process_and_gone_afterwards() -> None:
    for mine, count, said in (
        ("", "", "no socket was passed"),
        (str(os.getppid()), "1", "no socket was passed"),
        (str(os.getpid()), "2", "2 sockets were passed"),
        (str(os.getpid()), "", "no sockets were passed"),
    ):
        variables = {"LISTEN_PID": mine, "LISTEN_FDS": count, "LISTEN_FDNAMES": "a", "PATH": "/bin"}
        with pytest.raises(SetupError, match=said), listening("systemd", variables):
            pass
        assert variables == {"PATH": "/bin"}


def test_what_can_not_be_listened_on_is_told_in_a_line(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        for listen, said in (
            ("systemd", "start it by its socket unit"),
            (f"fd:{reader}", "Socket operation on non-socket"),
            ("fd:x", "HOST:PORT"),
            ("fd:99999", "Bad file descriptor"),
            ("here", "it names no port: 'here' is no number"),
            ("127.0.0.1:-1", "it names no port: '-1' is no number"),
            ("8799", "it names no host: 127.0.0.1:8799 is this machine alone"),
            (":8799", "it names no host"),
            ("[]:8799", "it names no host"),
        ):
            with pytest.raises(SetupError, match=said), listening(listen, {}):
                pass
    finally:
        os.close(reader)
        os.close(writer)
    with (
        socket.socket() as silent,
        pytest.raises(SetupError, match="no socket that is listened on"),
        listening(f"fd:{os.dup(silent.fileno())}"),
    ):
        pass
    refused = deskhand(
        None, "serve", "--display", ":1", "--listen", "systemd", "--token-file", str(write_token(tmp_path))
    )
    assert (refused.status, "no socket was passed to this process" in refused.error) == (1, True)
