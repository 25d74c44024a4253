"""``deskhand fleet``, and the service it starts."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import socket
import stat
import struct
import subprocess
import termios
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from deskhand.errors import NoDisplay
from deskhand.fleet import LeaseLost, SocketPool
from deskhand.fleet.page.token import Token
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
    other = Token(f"{name}-2")
    up = deskhand(None, "fleet", "up", "--name", name, "--size", "1", "--spares", "1", "--json")
    assert up.status == 0, up.error
    assert up.json["name"] == name
    assert stat.S_IMODE(os.stat(up.json["socket"]).st_mode) == 0o600

    log = Path(up.json["socket"]).with_suffix(".log")
    log.write_text("what the fleet has logged\n")
    again = deskhand(None, "fleet", "up", "--name", name)
    assert (again.status, again.output) == (1, b"")
    assert f"there is a fleet '{name}' already" in again.error
    assert log.read_text() == "what the fleet has logged\n", "the log is that of the fleet that is up"

    async def work() -> None:
        async with SocketPool(name) as pool, pool.lease(holder="the test") as desktop:
            assert (await desktop.act(CLICK)).ok
            status = await asyncio.to_thread(deskhand, None, "fleet", "status", "--name", name)
            assert status.text.splitlines()[0] == f"{name}: well, 1 of 1 leased, 0 free, 0 waiting"
            assert "the test" in status.text
            assert desktop.current is not None
            assert desktop.current.token not in status.text
            assert f"page: {up.json['page']['url']}?ticket=" in status.text
            told = await asyncio.to_thread(deskhand, None, "fleet", "status", "--name", name, "--json")
            assert (told.json["leased"], told.json["ok"]) == (1, True)
            assert desktop.current.token.encode() not in told.output
            assert told.json["page"]["metrics"] == up.json["page"]["metrics"]
            assert (await _get(up.json["page"]["metrics"], up.json["page"]["token_file"])).status_code == 200
            down = await asyncio.to_thread(deskhand, None, "fleet", "down", "--name", name, "--json")
            assert down.json == {"name": name, "stopped": True}
            with pytest.raises(httpx2.ConnectError):
                await _get(up.json["page"]["metrics"], other.path)
            assert not os.path.exists(up.json["page"]["token_file"])
            assert os.path.exists(other.path), "that of another fleet"
            with pytest.raises((LeaseLost, NoDisplay)) as caught:
                await desktop.act(CLICK)
            assert caught.value.sent == "none"

    run(work())
    other.remove()
    assert desktops_of(name) == []
    for command in ("status", "down"):
        gone = deskhand(None, "fleet", command, "--name", name)
        assert gone.status == 5
        assert gone.error.endswith(f"start one with: deskhand fleet up --name {name}")


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
    listen = up.json["page"]["url"].split("/")[2]
    os.kill(pid, signal.SIGKILL)
    until(lambda: process_start_time(pid) != start_time, "it has ended")
    until(lambda: _nobody_listens(listen), "its page has ended too")
    again = deskhand(None, "fleet", "up", "--name", name, "--size", "1", "--spares", "0", "--page", listen, "--json")
    assert again.status == 0, again.error
    assert again.json["page"]["url"] == up.json["page"]["url"]
    status = deskhand(None, "fleet", "status", "--name", name, "--json")
    assert status.json["free"] == 1
    taken = deskhand(None, "fleet", "up", "--name", f"{name}-2", "--page", listen)
    assert taken.status == 1
    assert f"{listen} can not be listened on" in taken.error


@pytest.mark.slow
def test_without_a_page(name: str) -> None:
    up = deskhand(None, "fleet", "up", "--name", name, "--size", "1", "--spares", "0", "--no-page", "--json")
    assert up.json["page"] is None
    status = deskhand(None, "fleet", "status", "--name", name)
    assert "page:" not in status.text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--no-page", "--page", "127.0.0.1:8770"], "--no-page that there is none"),
        (["--no-page", "--allow-host", "desk.example"], "--no-page that there is none"),
        (["--see", "/usr"], "give --isolation bwrap too"),
    ],
)
def test_an_option_without_effect_is_refused(name: str, options: list[str], says: str) -> None:
    up = deskhand(None, "fleet", "up", "--name", name, *options)
    assert (up.status, up.output) == (2, b"")
    assert says in up.error
    assert "\n" not in up.error


@pytest.mark.slow
def test_at_a_terminal_it_says_where_to_go(name: str) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = [PROGRAM, "fleet", "up", "--name", name, "--size", "2", "--spares", "1"]
    env = environment(None, TERM="xterm", COLUMNS="80")
    process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # the other end of the terminal is closed
    output, _ = process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode, output) == (0, f"{name}\n")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert f"{name}: openbox desktops of 1280x800" in text
    assert f"{name} is up: 2 desktops and 1 spare, openbox 1280x800, in " in text
    assert re.search(r"look +http://127\.0\.0\.1:\d+/fleet\?ticket=\S+", text)
    assert f"deskhand fleet down --name {name}" in text


async def _get(url: str, token_file: str) -> Any:
    headers = {"Authorization": f"Bearer {Path(token_file).read_text().strip()}"}
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as http:
        answer = await http.get(url, headers=headers)
        while answer.status_code == 503:  # nothing has been heard of the fleet yet
            answer = await http.get(url, headers=headers)
        return answer


def _nobody_listens(listen: str) -> bool:
    host, _, port = listen.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except ConnectionRefusedError:
        return True
    return False


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
