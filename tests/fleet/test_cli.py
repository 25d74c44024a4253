"""``deskhand fleet``, and the service it starts."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from deskhand.errors import NoDisplay
from deskhand.fleet import LeaseLost, SocketPool
from deskhand.fleet.socket import socket_of
from deskhand.hand.state import process_start_time
from deskhand.testing.batches import quick, run, until
from tests.commands import PROGRAM, deskhand, environment
from tests.fleet.kills import desktops_of, nothing_left
from tests.test_extras import BLOCK, python

CLICK = quick({"action": "click", "x": 3, "y": 3})


@pytest.fixture
def name() -> Iterator[str]:
    """A fleet's name; nothing of that fleet may be left."""
    name = f"cli-{uuid.uuid4().hex[:8]}"
    yield name
    if os.path.exists(socket_of(name)):
        deskhand(None, "fleet", "down", "--name", name)
    nothing_left(name, set())


@pytest.mark.slow
def test_up_status_and_down(name: str) -> None:
    up = deskhand(None, "fleet", "up", "--name", name, "--size", "1", "--spares", "1", "--json")
    assert up.status == 0, up.error
    assert up.json["name"] == name
    assert stat.S_IMODE(os.stat(up.json["socket"]).st_mode) == 0o600

    again = deskhand(None, "fleet", "up", "--name", name)
    assert (again.status, again.output) == (1, b"")
    assert f"there is a fleet '{name}' already" in again.error

    async def work() -> None:
        async with SocketPool(name) as pool, pool.lease(holder="the test") as desktop:
            assert (await desktop.act(CLICK)).ok
            status = await asyncio.to_thread(deskhand, None, "fleet", "status", "--name", name)
            assert status.text.splitlines()[0] == f"{name}: well, 1 of 1 leased, 0 free, 0 waiting"
            assert "the test" in status.text
            assert desktop.current is not None
            assert desktop.current.token not in status.text
            told = await asyncio.to_thread(deskhand, None, "fleet", "status", "--name", name, "--json")
            assert (told.json["leased"], told.json["ok"]) == (1, True)
            assert desktop.current.token.encode() not in told.output
            down = await asyncio.to_thread(deskhand, None, "fleet", "down", "--name", name, "--json")
            assert down.json == {"name": name, "stopped": True}
            with pytest.raises((LeaseLost, NoDisplay)) as caught:
                await desktop.act(CLICK)
            assert caught.value.sent == "none"

    run(work())
    assert desktops_of(name) == []
    for command in ("status", "down"):
        gone = deskhand(None, "fleet", command, "--name", name)
        assert gone.status == 5
        assert "start one with: deskhand fleet up" in gone.error


@pytest.mark.slow
def test_interrupted_it_leaves_nothing(name: str) -> None:
    words = [PROGRAM, "fleet", "up", "--name", name, "--size", "2"]
    process = subprocess.Popen(words, env=environment(None), stderr=subprocess.PIPE, text=True)
    until(lambda: desktops_of(name), "a desktop is starting")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert not os.path.exists(socket_of(name))


@pytest.mark.slow
def test_a_service_that_was_killed_can_be_started_again(name: str) -> None:
    up = deskhand(None, "fleet", "up", "--name", name, "--size", "1", "--spares", "0", "--json")
    pid, start_time = up.json["pid"], process_start_time(up.json["pid"])
    os.kill(pid, signal.SIGKILL)
    until(lambda: process_start_time(pid) != start_time, "it has ended")
    again = deskhand(None, "fleet", "up", "--name", name, "--size", "1", "--spares", "0", "--json")
    assert again.status == 0, again.error
    status = deskhand(None, "fleet", "status", "--name", name, "--json")
    assert status.json["free"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ["up", "--size", "0"],
        ["up", "--size", "65"],
        ["up", "--session", "cde"],
        ["up", "--screen", "big"],
        ["up", "--name", "../x"],
        ["status", "--name", ""],
        ["down", "--nosuch"],
    ],
)
def test_usage(words: list[str]) -> None:
    answer = deskhand(None, "fleet", *words)
    assert (answer.status, answer.output) == (2, b"")
    assert answer.error


def test_without_ray_the_extra_is_named() -> None:
    code = BLOCK.format(missing=["ray"]) + (
        "from deskhand.cli import main; sys.argv = ['deskhand', 'fleet', 'status', '--ray', 'auto']; main()"
    )
    done = python(code)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == "deskhand: The fleet on Ray is not available. Install it with: pip install 'deskhand[fleet]'\n"
    )


def test_a_cluster_that_is_not_there() -> None:
    pytest.importorskip("ray")
    answer = deskhand(None, "fleet", "status", "--ray", "127.0.0.1:1", verbose=True)
    assert answer.status == 5
    assert "no Ray cluster can be reached at 127.0.0.1:1" in answer.error
