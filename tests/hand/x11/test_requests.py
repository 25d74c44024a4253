"""Requests, replies, errors and events of one connection: order, numbers, lengths."""

from __future__ import annotations

import os
import select
import signal
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.xservers import until

from deskhand.hand.errors import RequestFailed
from deskhand.hand.x11 import Connection, Event, core, shm
from deskhand.testing import XServer

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
