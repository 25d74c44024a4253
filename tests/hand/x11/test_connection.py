"""One connection to a real X server: deadlines, losses, order, numbers."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.xservers import open_fds, xvfb_with

from deskhand.hand.errors import DisplayLost, DisplayTimeout, NoDisplay, RequestFailed
from deskhand.hand.x11 import Connection, core, shm
from deskhand.testing import XServer, xvfb

NO_OPERATION = 127


@pytest.fixture
def connection(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as opened:
        yield opened


@contextmanager
def stopped(server: XServer) -> Iterator[None]:
    """The server answers nothing inside the block."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


# -- opening ---------------------------------------------------------------------------------------


def test_no_name_and_no_server(monkeypatch: pytest.MonkeyPatch, display: XServer) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(NoDisplay, match="no display is named: set DISPLAY"):
        Connection.open()
    with pytest.raises(NoDisplay, match=r"no X server listens on display :59999") as caught:
        Connection.open(":59999")
    assert display.display in str(caught.value)  # the ones found are named
    with pytest.raises(NoDisplay, match="has no screen 3"):
        Connection.open(display.display + ".3")
    with pytest.raises(NoDisplay):
        Connection.open("localhost:65000")  # the port would be more than a port can be
    with pytest.raises(NoDisplay, match="can not be found"):
        Connection.open("no-such-host.invalid:0", timeout=5)


def test_display_from_the_environment(monkeypatch: pytest.MonkeyPatch, display: XServer) -> None:
    monkeypatch.setenv("DISPLAY", display.display)
    with Connection.open() as opened:
        assert str(opened.name) == display.display
        assert (opened.screen.width, opened.screen.height) == (1280, 800)


def test_a_socket_left_by_a_dead_server() -> None:
    number = 58123
    path = f"/tmp/.X11-unix/X{number}"
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()
    try:
        with pytest.raises(NoDisplay, match="no X server listens"):
            Connection.open(f":{number}")
    finally:
        os.unlink(path)


@contextmanager
def impostor(number: int, says: bytes | None, backlog: int = 5) -> Iterator[socket.socket]:
    """Something that is no X server on a display's socket; ``says`` None: it ends each connection."""
    path = f"/tmp/.X11-unix/X{number}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(backlog)
        ended = threading.Event()

        def serve() -> None:
            listener.settimeout(0.05)
            kept = []
            while not ended.is_set():
                try:
                    client, _ = listener.accept()
                except OSError:
                    continue
                if says is None:
                    client.close()
                else:
                    client.sendall(says)
                    kept.append(client)
            for client in kept:
                client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener
        finally:
            ended.set()
            thread.join()
            os.unlink(path)


@pytest.mark.parametrize(
    "says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\1\0\0\0", b"\1" + bytes(5) + b"\xff\xff"], ids=repr
)
def test_set_up_has_a_deadline(says: bytes) -> None:
    with impostor(58124, says), pytest.raises((DisplayTimeout, NoDisplay)) as caught:
        Connection.open(":58124", timeout=0.3)
    assert "\n" not in str(caught.value)


def test_a_connection_ended_during_set_up() -> None:
    with impostor(58125, None), pytest.raises(DisplayLost):
        Connection.open(":58125", timeout=5)


def test_a_full_queue_of_connections_is_a_timeout_and_not_no_server() -> None:
    path = "/tmp/.X11-unix/X58126"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        waiting = []
        try:
            while True:
                sock = socket.socket(socket.AF_UNIX)
                sock.setblocking(False)
                waiting.append(sock)
                try:
                    sock.connect(path)
                except BlockingIOError:
                    break
            with pytest.raises(DisplayTimeout, match=r"did not take the connection within 0\.2 s"):
                Connection.open(":58126", timeout=0.2)
        finally:
            for sock in waiting:
                sock.close()
            os.unlink(path)


def test_a_stopped_server_stops_nobody(display: XServer) -> None:
    before = open_fds()
    with stopped(display), pytest.raises(DisplayTimeout, match=r"connection set-up within 0\.2 s"):
        Connection.open(display.display, timeout=0.2)
    assert open_fds() == before


def test_descriptors_are_flat(display: XServer) -> None:
    with Connection.open(display.display):
        pass
    before = open_fds()
    for _ in range(300):  # more than the 256 clients a server takes
        with Connection.open(display.display) as opened:
            opened.sync()
    assert open_fds() == before


def test_all_places_taken() -> None:
    with xvfb_with("-maxclients", "64") as name:
        kept: list[Connection] = []

        def take_all_places() -> None:
            for _ in range(70):
                kept.append(Connection.open(name))

        with pytest.raises(NoDisplay, match="Maximum number of clients"):
            take_all_places()
        for opened in kept:
            opened.close()
        with Connection.open(name, timeout=10) as opened:
            opened.sync()


def test_of_several_requests_no_answer_is_left_behind(connection: Connection) -> None:
    good, bad = connection.root, 0x7FFFFFFF
    asked = [core.ask_geometry(connection, window) for window in (good, bad, good, bad)]
    with pytest.raises(RequestFailed, match="BadDrawable"):
        connection.replies(asked)
    assert (connection._awaited, connection._replies) == (set(), {})
    one, two = connection.replies([core.ask_geometry(connection, good), core.ask_tree(connection, good)])
    assert core.parse_geometry(one) == core.get_geometry(connection, good)
    assert core.parse_tree(two) == core.query_tree(connection, good)
    connection.sync()


# -- waiting ---------------------------------------------------------------------------------------


def test_a_server_grabbed_by_another_is_an_error_in_time(display: XServer, connection: Connection) -> None:
    with Connection.open(display.display, timeout=0.3) as victim:
        core.grab_server(connection)
        connection.sync()
        with pytest.raises(DisplayTimeout, match=r"GetGeometry within 0\.3 s: another client may hold a grab"):
            core.get_geometry(victim, victim.root)
        assert victim.closed
        with pytest.raises(DisplayTimeout):  # and stays so: a late answer must not be misread
            victim.sync()
        with pytest.raises(DisplayTimeout):
            Connection.open(display.display, timeout=0.3)
        core.ungrab_server(connection)
        connection.sync()
        with Connection.open(display.display, timeout=5) as again:
            again.sync()


def test_the_extension_is_named_in_a_timeout(display: XServer) -> None:
    with Connection.open(display.display, timeout=0.2) as victim:
        assert shm.query_version(victim) is not None
        with stopped(display), pytest.raises(DisplayTimeout, match="MIT-SHM QueryVersion"):
            shm.query_version(victim)


def test_writing_has_a_deadline(display: XServer) -> None:
    with Connection.open(display.display, timeout=0.3) as victim:
        victim.sync()
        prop = victim.atom("BIG")
        for _ in range(20):
            core.change_property(victim, victim.root, prop, core.ATOM_STRING, 8, bytes(200_000))
        with stopped(display), pytest.raises(DisplayTimeout):
            victim.flush()


def test_waiting_for_a_condition(connection: Connection) -> None:
    assert connection.wait(lambda: True, 0.0)
    assert not connection.wait(lambda: False, 0.0)
    assert not connection.wait(lambda: False, 0.05)
    reader, writer = os.pipe()
    try:
        os.write(writer, b"x")
        assert connection.wait(lambda: select.select([reader], [], [], 0)[0], 10, fds=[reader])
    finally:
        os.close(reader)
        os.close(writer)


def test_a_server_that_dies_is_lost() -> None:
    with xvfb() as server, Connection.open(server.display) as opened:
        opened.sync()
        asked = []
        os.kill(server.pid, signal.SIGSTOP)
        asked.append(opened.ask(14, 0, struct.pack("=I", opened.root)))
        opened.flush()
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(DisplayLost, match=f"the X server of display {server.display} closed the connection") as one:
            opened.reply(asked[0])
        assert not isinstance(one.value, DisplayTimeout)
        assert opened.closed
        with pytest.raises(DisplayLost) as two:
            opened.send(NO_OPERATION, 0)
        assert one.value is not two.value  # whoever catches one adds facts of its own to it
        for name in (f"/tmp/.X11-unix/X{server.number}", f"/tmp/.X{server.number}-lock"):
            Path(name).unlink(missing_ok=True)


def test_a_wait_ends_when_the_server_dies() -> None:
    with xvfb() as server, Connection.open(server.display) as opened:
        timer = threading.Timer(0.1, os.kill, (server.pid, signal.SIGTERM))
        timer.start()
        with pytest.raises(DisplayLost):
            opened.wait(lambda: False, 60)
        timer.join()


def test_cut_from_another_thread_ends_a_wait(connection: Connection) -> None:
    timer = threading.Timer(0.1, connection.cut)
    timer.start()
    with pytest.raises(DisplayLost):
        connection.wait(lambda: False, 60)
    timer.join()


def test_a_closed_connection_says_so(connection: Connection) -> None:
    connection.close()
    connection.close()
    assert connection.closed
    for call in (connection.sync, connection.flush, lambda: connection.send(NO_OPERATION, 0)):
        with pytest.raises(DisplayLost, match="is closed"):
            call()
