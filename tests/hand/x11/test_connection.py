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
from tests.xservers import open_fds, until, xvfb_with

from deskhand.hand.errors import DisplayLost, DisplayTimeout, NoDisplay, RequestFailed
from deskhand.hand.x11 import Connection, Event, core, shm
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


# -- requests and their answers --------------------------------------------------------------------


def test_sequence_numbers_wrap(connection: Connection) -> None:
    prop = connection.atom("COUNT")
    for number in range(70_000):
        connection.send(NO_OPERATION, 0)
        if number % 20_000 == 0:
            core.change_property(connection, connection.root, prop, core.ATOM_CARDINAL, 32, struct.pack("=I", number))
    assert core.get_property(connection, connection.root, prop).cardinals() == [60_000]
    connection.send(2, 0, struct.pack("=III", 0xDEAD, 1 << 11, 0))  # its error must be told of this very request
    with pytest.raises(RequestFailed, match=r"ChangeWindowAttributes: BadWindow \(0xdead\)"):
        connection.sync()
    connection.sync()


def test_many_requests_under_way_are_answered_in_order(connection: Connection) -> None:
    root = struct.pack("=I", connection.root)
    asked = [connection.ask(14 if number % 2 else 38, 0, root) for number in range(40_000)]
    # Of GetGeometry the second byte is the depth, of QueryPointer whether the pointer is on the same screen.
    for number, sequence in enumerate(asked):
        assert connection.reply(sequence)[1] == (24 if number % 2 else 1)


def test_replies_may_be_taken_in_any_order(connection: Connection) -> None:
    names = [f"DESKHAND_TEST_{number}" for number in range(500)]
    asked = [connection.ask(16, 0, struct.pack("=H2x", len(name)) + name.encode()) for name in names]
    atoms = [struct.unpack_from("=I", connection.reply(sequence), 8)[0] for sequence in reversed(asked)]
    assert [connection.atom_name(atom) for atom in reversed(atoms)] == names
    assert connection.atoms(names) == list(reversed(atoms))
    assert connection.atoms(["PRIMARY", "PRIMARY"]) == [1, 1]
    assert connection.atom_name(0) == ""


def test_errors_go_to_whom_they_belong(connection: Connection) -> None:
    unmap = struct.pack("=I", 0x77)
    with pytest.raises(RequestFailed) as caught:
        core.get_geometry(connection, 0x99)
    assert (caught.value.error, caught.value.request, caught.value.value) == ("BadDrawable", "GetGeometry", 0x99)
    connection.send(10, 0, unmap, ignore=True)
    connection.sync()
    first = connection.send(10, 0, unmap)
    second = connection.send(4, 0, struct.pack("=I", 0x88))
    good = connection.send(NO_OPERATION, 0)
    connection.check(good)
    with pytest.raises(RequestFailed, match=r"DestroyWindow: BadWindow \(0x88\)"):
        connection.check(second)
    with pytest.raises(RequestFailed, match=r"UnmapWindow: BadWindow \(0x77\)"):
        connection.sync()
    connection.check(first)  # told once
    connection.sync()
    awaited = connection.ask(14, 0, struct.pack("=I", 1))
    connection.sync()  # the error of a request that somebody waits for is not everybody's
    with pytest.raises(RequestFailed, match="GetGeometry"):
        connection.reply(awaited)


def test_an_extensions_error_has_its_name(connection: Connection) -> None:
    assert shm.query_version(connection) is not None
    with pytest.raises(RequestFailed) as caught:
        shm.get_image(connection, connection.root, 0, 0, 1, 1, 0x1234)
    assert caught.value.request == "MIT-SHM GetImage"
    assert caught.value.error == "BadSeg"


@pytest.mark.parametrize("size", [0, 1, 3, 262_130, 262_140, 262_144, 3_000_001])
def test_long_requests_and_replies(connection: Connection, size: int) -> None:
    value = os.urandom(size)
    prop = connection.atom("LONG")
    core.change_property(connection, connection.root, prop, core.ATOM_STRING, 8, value)
    assert core.get_property(connection, connection.root, prop).value == value


def test_more_than_the_server_takes_is_refused_here(connection: Connection) -> None:
    with pytest.raises(ValueError, match="more than display"):
        core.change_property(connection, connection.root, 1, core.ATOM_STRING, 8, bytes(300 << 20))
    connection.sync()


def test_events_come_in_order_while_replies_are_awaited(display: XServer, connection: Connection) -> None:
    prop = connection.atom("NUMBER")
    core.select_input(connection, connection.root, core.PROPERTY_CHANGE)
    connection.sync()
    seen: list[int] = []
    nested: list[int] = []

    def take(event: Event) -> None:
        if event.name == "PropertyNotify":
            seen.append(event["time"])
            if len(seen) % 10 == 0:  # a subscriber may ask the server, too
                nested.append(core.get_property(connection, connection.root, prop).cardinals()[0])

    with Connection.open(display.display) as other, connection.subscribe(take):
        for number in range(2000):
            core.change_property(other, other.root, prop, core.ATOM_CARDINAL, 32, struct.pack("=I", number))
            if number % 100 == 0:
                other.sync()
                assert core.get_geometry(connection, connection.root).width == 1280
        other.sync()
        connection.sync()
    assert len(seen) == 2000
    assert seen == sorted(seen)
    assert nested == sorted(nested)
    after = len(seen)
    core.change_property(connection, connection.root, prop, core.ATOM_CARDINAL, 32, b"")
    connection.sync()
    assert len(seen) == after  # the subscription has ended


def test_a_subscriber_may_send_while_a_long_request_is_being_written(display: XServer, connection: Connection) -> None:
    tick, long = connection.atoms(["TICK", "LONG"])
    core.select_input(connection, connection.root, core.PROPERTY_CHANGE)
    answered = 0

    def take(event: Event) -> None:
        nonlocal answered
        if event.name == "PropertyNotify" and event["atom"] == tick:
            answered += 1
            core.change_property(connection, connection.root, connection.atom("TOCK"), core.ATOM_CARDINAL, 32, b"1234")
            connection.flush()

    ended = threading.Event()

    def tick_on() -> None:
        with Connection.open(display.display) as other:
            while not ended.is_set():
                core.change_property(other, other.root, tick, core.ATOM_CARDINAL, 32, b"")
                other.sync()

    ticking = threading.Thread(target=tick_on)
    ticking.start()
    try:
        with connection.subscribe(take):
            for _ in range(30):
                value = os.urandom(2_000_000)
                core.change_property(connection, connection.root, long, core.ATOM_STRING, 8, value)
                connection.sync()  # an error here: the stream was torn
            assert core.get_property(connection, connection.root, long).value == value
    finally:
        ended.set()
        ticking.join()
    assert answered


def test_a_descriptor_arrives_also_when_the_socket_is_full(display: XServer, connection: Connection) -> None:
    shm.query_version(connection)
    with stopped(display):
        while select.select([], [connection], [], 0)[1]:
            connection.send(NO_OPERATION, 0, bytes(4000))
            connection.flush()
        for _ in range(200):
            connection.send(NO_OPERATION, 0, bytes(4000))
        timer = threading.Timer(0.2, os.kill, (display.pid, signal.SIGCONT))
        timer.start()
        fd = os.memfd_create("test")
        os.ftruncate(fd, 4096)
        segment = shm.attach_fd(connection, fd)
        os.close(fd)
        timer.join()
    assert shm.get_image(connection, connection.root, 0, 0, 4, 4, segment)[2] == 64


def test_resource_ids_do_not_repeat(connection: Connection) -> None:
    ids = {connection.new_id() for _ in range(1000)}
    assert len(ids) == 1000
    mask = connection.setup.id_mask
    assert all(number & ~mask == connection.setup.id_base for number in ids)


def test_two_connections_do_not_disturb_each_other(display: XServer, connection: Connection) -> None:
    with Connection.open(display.display) as other:
        window = core.create_window(other)
        other.sync()
        assert core.get_geometry(connection, window).width == 1

    def gone() -> bool:
        try:
            core.get_geometry(connection, window)
        except RequestFailed:
            return True
        return False

    until(gone)  # its windows end with it, as soon as the server sees it
