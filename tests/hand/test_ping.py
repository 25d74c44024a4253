"""_NET_WM_PING as real toolkits answer it, or do not."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator

import pytest
from tests.settle_windows import settle_window

from deskhand.hand.ping import Pings
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer


@pytest.fixture
def connection(openbox_display: XServer) -> Iterator[Connection]:
    with Connection.open(openbox_display.display) as opened:
        yield opened


def test_gtk_answers_and_its_child_windows_are_climbed(openbox_display: XServer, connection: Connection) -> None:
    pings = Pings(connection)
    with settle_window(openbox_display, connection, "gtk", "still") as (window, _):
        assert pings.target(window) == window
        focus = core.get_input_focus(connection)
        assert pings.target(focus) == window  # GTK's focus window is a child of its own
        took = pings.barrier(window)
        assert took is not None
        assert pings.slowest == took
        parent = core.query_tree(connection, window)[1]
        assert pings.target(parent) is None  # the window manager's frame
    assert pings.target(connection.root) is None
    assert pings.target(0) is None
    assert pings.target(1) is None
    assert pings.target(window) is None  # gone


def test_a_slow_answer_is_forgotten(
    openbox_display: XServer, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pings = Pings(connection)
    with settle_window(openbox_display, connection, "gtk", "still") as (window, pid):
        os.kill(pid, signal.SIGSTOP)
        ping = pings.send(window)
        assert not connection.wait(lambda: pings.answered(ping) is not None, 0.3)
        os.kill(pid, signal.SIGCONT)
        assert connection.wait(lambda: pings.answered(ping) is not None, 20)
        slow = pings.slowest
        assert slow >= 0.3
        assert pings.barrier(window, 20) is not None
        assert pings.slowest == slow  # both are recent
        monkeypatch.setattr("deskhand.hand.ping.RECENT", 0.0)
        assert pings.slowest == 0.0
        monkeypatch.undo()
        for _ in range(70):
            assert pings.barrier(window, 20) is not None
        assert 0.0 < pings.slowest < slow  # as many are remembered as tell something


def test_tk_does_not_take_part(openbox_display: XServer, connection: Connection) -> None:
    with settle_window(openbox_display, connection, "tk", "still") as (window, _):
        assert Pings(connection).target(window) is None


def test_a_window_that_hangs_is_asked_once(openbox_display: XServer, connection: Connection) -> None:
    pings = Pings(connection)
    with settle_window(openbox_display, connection, "gtk", "still") as (window, pid):
        os.kill(pid, signal.SIGSTOP)
        try:
            assert pings.barrier(window, 0.2) is None
            assert pings.target(window) is None
        finally:
            os.kill(pid, signal.SIGCONT)
    assert pings.slowest == 0.0


def test_a_window_that_ends_has_answered(openbox_display: XServer, connection: Connection) -> None:
    pings = Pings(connection)
    with settle_window(openbox_display, connection, "gtk", "still") as (window, pid):
        os.kill(pid, signal.SIGSTOP)
        ping = pings.send(window)
        assert pings.answered(ping) is None
        os.kill(pid, signal.SIGKILL)
        assert connection.wait(lambda: pings.answered(ping) is not None, 20)


def test_a_window_that_ended_before_the_ping_has_answered_too(connection: Connection) -> None:
    pings = Pings(connection)
    window = core.create_window(connection)
    connection.sync()
    core.destroy_window(connection, window)
    connection.sync()
    assert pings.answered(pings.send(window)) is not None
    assert pings.barrier(window, 5) is not None
    assert pings.target(window) is None


def test_another_clients_message_is_no_answer(openbox_display: XServer, connection: Connection) -> None:
    pings = Pings(connection)
    window = core.create_window(connection, override_redirect=True)
    names = connection.atoms(["WM_PROTOCOLS", "_NET_WM_PING"])
    core.change_property(connection, window, names[0], core.ATOM_ATOM, 32, struct.pack("=I", names[1]))
    connection.sync()
    ping = pings.send(window)
    stamp = ping[1]
    # The ping itself came back to us, as the window is ours, and is none either.
    for about, data in (
        (connection.root, [names[1], stamp + 1, window]),  # a stamp never sent
        (connection.root, [names[1], stamp, window + 1]),  # of another window
        (connection.root, [names[0], stamp, window]),  # another protocol
        (window, [names[1], stamp, window]),  # not about the root window
    ):
        core.send_client_message(connection, connection.root, core.SUBSTRUCTURE_NOTIFY, about, names[0], data)
    connection.sync()
    assert pings.answered(ping) is None
    core.send_client_message(
        connection, connection.root, core.STRUCTURE_NOTIFY, connection.root, names[0], [names[1], stamp, window]
    )
    connection.sync()
    assert pings.answered(ping) is not None
