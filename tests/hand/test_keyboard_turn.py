"""Processes of ours on one display use the keyboard one after the other."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.probes import probe_window
from tests.toolkits import ToolkitWindow, toolkit_window
from tests.xservers import until

import deskhand
from deskhand.hand.errors import ActionFailed
from deskhand.hand.hand import Hand
from deskhand.hand.keyboard_turn import KeyboardTurn
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer

SOURCES = str(Path(deskhand.__file__).parents[1])
HOLDER = (
    "import sys, time\n"
    "from deskhand.hand.keyboard_turn import KeyboardTurn\n"
    "from deskhand.hand.x11 import Connection\n"
    "with KeyboardTurn(Connection.open()).taken():\n"
    "    print('mine', flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture
def gtk(openbox_display: XServer, tmp_path: Path) -> Iterator[ToolkitWindow]:
    with toolkit_window(openbox_display, "gtk", tmp_path / "log") as window:
        yield window


@contextlib.contextmanager
def turn_on(server: XServer) -> Iterator[KeyboardTurn]:
    from deskhand.hand.ping import Pings

    with Connection.open(server.display) as conn:
        Pings(conn)  # has the events of the root window sent, as in a hand
        yield KeyboardTurn(conn)


@contextlib.contextmanager
def holder(server: XServer) -> Iterator[subprocess.Popen[bytes]]:
    """Another process, whose turn it is."""
    pipe = subprocess.PIPE
    env = {**server.env, "PYTHONPATH": SOURCES}
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=pipe, stdout=pipe, env=env) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"mine\n"
            yield process
        finally:
            process.kill()


def test_two_texts_with_borrowed_characters_at_once(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    texts = ["éÉ日本aB" * 10, "øØ語字cD" * 10, "ЖжΩω한국eF" * 10]
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "deskhand.hand", "--display", openbox_display.display]
    processes = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, env={**openbox_display.env, "PYTHONPATH": SOURCES})
        for _ in texts
    ]
    for process, text in zip(processes, texts):  # noqa: B905 - Python 3.9 has no strict
        assert process.stdin is not None
        process.stdin.write(json.dumps({"actions": [{"action": "type", "text": text}]}).encode())
        process.stdin.close()
    for process in processes:
        assert process.stdout is not None
        with process.stdout as output:
            answer = json.loads(output.read())
        assert (process.wait(), answer["ok"]) == (0, True), answer
        assert answer["results"][0]["confirmed"] is True
    orders = {"".join(order) for order in itertools.permutations(texts)}
    assert gtk.text in orders, "one of them stands inside another, or is not whole"


def test_a_turn_may_stand_inside_another(display: XServer) -> None:
    with turn_on(display) as turn, turn_on(display) as other:
        with turn.taken(0):
            with turn.taken(0):
                pass
            with pytest.raises(ActionFailed), other.taken(0):
                pass
        with other.taken(0):
            pass


def test_who_has_the_focus_is_looked_at_when_it_is_our_turn(openbox_display: XServer) -> None:
    server = openbox_display
    answers = []
    with (
        holder(server) as process,
        probe_window(server, "meant", "200x200+0+50") as meant,
        Hand(server.display) as hand,
        Connection.open(server.display) as conn,
    ):
        (window,) = [found["id"] for found in hand.windows() if found["title"] == "meant"]
        batch = {"actions": [{"action": "type", "text": "abc"}], "expect": {"window": window}}
        waiting = threading.Thread(target=lambda: answers.append(hand.act(batch)[0]))
        line = json.loads(core.get_property(conn, conn.root, conn.atom("_DESKHAND_KEYBOARD")).value)
        waiting.start()
        try:
            # It waits once it has asked for the end of the other's window.
            until(lambda: core.get_window_attributes(conn, line["owner"]).all_event_masks & core.STRUCTURE_NOTIFY)
            with probe_window(server, "another", "200x200+400+50") as another:
                assert process.stdin is not None
                process.stdin.close()
                waiting.join(60)
                assert another.all("key") == meant.all("key") == []
        finally:
            process.kill()
            waiting.join(60)
    (result,) = answers[0]["results"]
    assert "does not have the keyboard focus" in result["error"]
    assert answers[0]["sent"] == "none"


def test_one_that_does_not_end_is_named(display: XServer) -> None:
    with holder(display) as process, turn_on(display) as turn:
        with pytest.raises(ActionFailed, match=f"pid {process.pid}") as failed, turn.taken(0.2):
            pass
        assert failed.value.sent == "none"


@pytest.mark.parametrize("how", ["it ends its turn", "it is killed"])
def test_the_next_is_told_at_once(display: XServer, how: str) -> None:
    with holder(display) as process, turn_on(display) as turn:
        ends = threading.Event()

        def end() -> None:
            ends.set()
            if how == "it is killed":
                os.kill(process.pid, signal.SIGKILL)
            else:
                assert process.stdin is not None
                process.stdin.close()

        later = threading.Timer(0.2, end)
        later.start()
        try:
            with turn.taken(60):
                assert ends.is_set()
        finally:
            later.join()
            process.wait()
