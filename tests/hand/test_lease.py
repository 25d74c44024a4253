"""Leases on a real X server: refused with the holder's name, queued for in order, and never held by the dead."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.xservers import until

from deskhand.hand.errors import DesktopInUse, DisplayLost, NoDisplay
from deskhand.hand.lease import Lease, holder_of, open_lease
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer


@contextmanager
def lease(display: XServer, holder: str) -> Iterator[Lease]:
    found = open_lease(display.display, display.xauthority, holder)
    try:
        yield found
    finally:
        found.release()


def holder(display: XServer) -> str | None:
    with Connection.open(display.display, display.xauthority) as conn:
        return holder_of(conn)


def lines(display: XServer) -> list[dict[str, Any]]:
    with Connection.open(display.display, display.xauthority) as conn:
        value = core.get_property(conn, conn.root, conn.atom("_DESKHAND_LEASE")).value
    return [json.loads(line) for line in value.decode().splitlines()]


class Queued(threading.Thread):
    """A session that queues in a thread of its own; ``turn`` is set when it has the desktop."""

    def __init__(self, display: XServer, name: str, order: list[str], wait: float = 30.0) -> None:
        super().__init__(daemon=True)
        self.lease = open_lease(display.display, display.xauthority, name)
        self.error: Exception | None = None
        self._order, self._wait = order, wait
        self.start()

    def run(self) -> None:
        try:
            self.lease.take(60, wait=self._wait)
            self._order.append(self.lease.holder)
        except Exception as error:
            self.error = error


def test_the_second_is_refused_with_the_holders_name(display: XServer) -> None:
    with lease(display, "assistant") as one, lease(display, "evaluation") as two:
        assert holder(display) is None
        one.take(60)
        assert holder(display) == "assistant"
        with pytest.raises(DesktopInUse, match="in use by session 'assistant'") as caught:
            two.take(60)
        assert caught.value.facts["holder"] == "assistant"
        assert caught.value.sent == "none"
        one.take(60)  # renewed
        one.release()
        two.take(60)
        assert holder(display) == "evaluation"
    assert holder(display) is None
    assert lines(display) == []


def test_one_whose_time_is_over_loses_it_and_is_told(display: XServer) -> None:
    with lease(display, "slow") as slow, lease(display, "next") as other:
        slow.take(0.05)
        until(lambda: holder(display) is None)
        other.take(60)
        with pytest.raises(DesktopInUse, match="'next'"):
            slow.take(60)


def test_one_whose_time_is_over_and_that_nobody_followed_goes_on(display: XServer) -> None:
    with lease(display, "slow") as slow:
        slow.take(0.01)
        until(lambda: holder(display) is None)
        slow.take(60)
        assert holder(display) == "slow"


def test_a_queue_is_served_in_order(display: XServer) -> None:
    order: list[str] = []
    with lease(display, "first") as first:
        first.take(60)
        queued = []
        for name in ("second", "third"):
            queued.append(Queued(display, name, order))
            until(lambda: len(lines(display)) == len(queued) + 1)
        with lease(display, "pushing in") as rude, pytest.raises(DesktopInUse):
            rude.take(60)
        first.release()
        until(lambda: order == ["second"])
        with lease(display, "pushing in") as rude, pytest.raises(DesktopInUse, match="second"):
            rude.take(60)
        queued[0].lease.release()
        until(lambda: order == ["second", "third"])
        queued[1].lease.release()
    assert [one.error for one in queued] == [None, None]


def test_who_queues_is_before_who_comes_later(display: XServer) -> None:
    order: list[str] = []
    with lease(display, "first") as first, lease(display, "late") as late:
        first.take(60)
        waiting = Queued(display, "waiting", order)
        until(lambda: len(lines(display)) == 2)
        waiting.lease.cut()  # it is gone without a word, and so is its place
        waiting.join(10)
        assert isinstance(waiting.error, DisplayLost)
        first.release()
        late.take(60)
        assert holder(display) == "late"


def test_a_wait_ends_at_its_deadline(display: XServer) -> None:
    with lease(display, "first") as first, lease(display, "second") as second:
        first.take(60)
        with pytest.raises(DesktopInUse, match=r"still after 0.2 s"):
            second.take(60, wait=0.2)
        assert [line["holder"] for line in lines(display)] == ["first"]


def test_a_queue_moves_when_the_holders_time_is_over(display: XServer) -> None:
    order: list[str] = []
    with lease(display, "first") as first:
        first.take(0.3)
        waiting = Queued(display, "waiting", order)
        until(lambda: order == ["waiting"])
        waiting.lease.release()


def test_a_killed_holder_holds_nothing(display: XServer) -> None:
    code = (
        "import sys\nfrom deskhand.hand.lease import open_lease\n"
        "lease = open_lease(sys.argv[1], None, 'killed')\nlease.take(3600)\nprint('taken', flush=True)\n"
        "sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, display.display], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    order: list[str] = []
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        assert holder(display) == "killed"
        waiting = Queued(display, "waiting", order)
        until(lambda: len(lines(display)) == 2)
    finally:
        process.kill()
        process.communicate()
    until(lambda: order == ["waiting"])
    waiting.lease.release()


@pytest.mark.parametrize(
    "left",
    [
        b"\xff\x00 nonsense",
        b'{"held": true, "until": 1e300, "holder": "x"}',
        b'{"owner": %d, "nonce": "1", "held": true, "until": Infinity, "holder": "x"}',
        b'[1]\n{"owner": -1, "held": true}\nnull',
        b'{"owner": %d, "nonce": "", "held": 7, "until": "soon", "since": null}',
    ],
)
def test_what_others_write_there_keeps_nobody_out(display: XServer, left: bytes) -> None:
    with Connection.open(display.display, display.xauthority) as conn, lease(display, "ours") as ours:
        value = left.replace(b"%d", str(conn.root).encode())
        core.change_property(conn, conn.root, conn.atom("_DESKHAND_LEASE"), core.ATOM_STRING, 8, value)
        conn.sync()
        ours.take(60)
        assert holder(display) == "ours"


def test_a_name_is_one_short_line(display: XServer) -> None:
    with lease(display, "a\nb\x1b[31m" + "c" * 500) as one, lease(display, "two") as two:
        one.take(60)
        with pytest.raises(DesktopInUse) as caught:
            two.take(60)
        assert "\x1b" not in str(caught.value)
        assert len(str(caught.value)) < 250


def test_a_display_that_is_not_there() -> None:
    with pytest.raises(NoDisplay):
        open_lease(":987", None, "x")
