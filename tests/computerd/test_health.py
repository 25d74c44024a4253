"""``GET /health``, and what happens when the X server, the launcher or the daemon itself goes away."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from deskhand.hand.x11 import Connection
from deskhand.testing import XServer, window_manager, xvfb
from deskhand.testing.received import Received, fixture_window, pressed
from tests.computerd.daemons import RunningDaemon, daemon, until, write_token
from tests.xservers import own_number, put_pixels


def health(running: RunningDaemon) -> httpx2.Response:
    return httpx2.get(f"{running.url}/health", timeout=10, trust_env=False)


def test_it_needs_no_token_and_tells_no_secret(running: RunningDaemon) -> None:
    answer = health(running)
    assert answer.json() == {"ok": True, "display": "ok", "screen_saver": "off"}
    brief = httpx2.head(f"{running.url}/health", timeout=10, trust_env=False)
    assert (brief.status_code, brief.content) == (200, b"")


def test_the_x_server_goes_away_and_comes_back_at_another_size(tmp_path: Path) -> None:
    number = own_number()
    with xvfb(number=number) as first, daemon(first, tmp_path) as running, running.client() as client:
        assert running.act({"action": "move", "x": 900, "y": 700}).json()["ok"]
        os.kill(first.pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{first.pid}/task").exists() or _is_zombie(first.pid))
        down = health(running)  # the first one tells it, however soon it comes
        assert (down.status_code, down.json()["ok"]) == (503, False)
        assert f":{number}" in down.json()["display"]
        for path in ("/info", "/windows", "/screenshot"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["kind"]) == (503, "no_display"), path
            assert answer.json()["detail"]
        lost = running.act({"action": "move", "x": 1, "y": 1})
        assert (lost.status_code, lost.json()["kind"], lost.json()["sent"]) == (503, "no_display", "none")
        _remove_left_over(number)
        with xvfb(640, 480, number=number) as second, window_manager(second), fixture_window(second) as window:
            until(lambda: health(running).status_code == 200)
            assert client.get("/info").json()["size"] == [640, 480]
            assert running.act({"action": "click", "x": 900, "y": 400}).status_code == 409
            window.forget()
            answer = running.act(
                {"action": "click", "x": 500, "y": 400}, {"action": "type", "text": "Grüße"}, picture=True
            )
            assert answer.json()["ok"], answer.text
            assert answer.json()["picture"]["screen"] == [640, 480]
            assert window.text() == "Grüße"
            assert [event["at"] for event in window.all("press")] == [[500, 400]]


def _is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _remove_left_over(number: int) -> None:
    for path in (f"/tmp/.X{number}-lock", f"/tmp/.X11-unix/X{number}"):
        Path(path).unlink(missing_ok=True)


def test_it_starts_before_the_x_server(tmp_path: Path) -> None:
    number = own_number()
    nobody = XServer(f":{number}", None, 0, dict(os.environ))
    with daemon(nobody, tmp_path) as running:
        assert health(running).status_code == 503
        with xvfb(800, 600, number=number):
            until(lambda: health(running).status_code == 200)
            assert running.act({"action": "move", "x": 1, "y": 1}).json()["ok"]


def test_an_x_server_that_hangs_is_no_healthy_one(running: RunningDaemon, server: XServer) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        answer = health(running)
        assert answer.status_code == 503
        assert answer.json()["display"]
    finally:
        os.kill(server.pid, signal.SIGCONT)
    until(lambda: health(running).status_code == 200)


def test_the_launcher_is_a_part(server: XServer, tmp_path: Path) -> None:
    path = tmp_path / "launcher.sock"
    with daemon(server, tmp_path, launcher=path) as running:
        down = health(running).json()
        assert (down["ok"], down["display"]) == (False, "ok")
        assert "launcher" in down["launcher"]
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen(8)
            assert health(running).json()["launcher"] == "ok"
        assert health(running).status_code == 503
        with running.client() as client:
            apps = client.get("/apps")
            assert (apps.status_code, apps.json()["kind"]) == (503, "setup")


def test_it_waits_once_for_a_desktop_that_is_painted(tmp_path: Path) -> None:
    with xvfb() as server, daemon(server, tmp_path, "--wait-for-desktop") as running:
        assert "one colour" in health(running).json()["display"]
        with running.client() as client:
            assert client.get("/info").status_code == 200
        with Connection.open(server.display, server.xauthority) as connection:
            put_pixels(connection, connection.root, 0, 0, 50, 50, 0xFFFFFF)
            until(lambda: health(running).status_code == 200)
            put_pixels(connection, connection.root, 0, 0, 50, 50, 0)
            assert health(running).status_code == 200


def test_many_probes_at_once(running: RunningDaemon) -> None:
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(health(running).status_code)) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 32


@pytest.fixture
def window(server: XServer) -> Iterator[Received]:
    """What gets the input."""
    with fixture_window(server) as received:
        yield received


HELD = ({"action": "key_down", "keys": "ctrl"}, {"action": "mouse_down", "x": 5, "y": 5})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("window")
def test_a_graceful_end_releases(server: XServer, tmp_path: Path, number: int) -> None:
    with daemon(server, tmp_path) as running:
        answer = running.act(*HELD)
        assert answer.json()["ok"], answer.text
        assert len(pressed(server)) == 2
        assert running.stop(number) == 0
        assert pressed(server) == []


@pytest.mark.usefixtures("window")
def test_an_end_in_the_middle_of_a_batch(server: XServer, tmp_path: Path) -> None:
    with daemon(server, tmp_path) as running:
        answers: list[Any] = []
        batch = (*HELD, {"action": "wait", "seconds": 50}, {"action": "click", "x": 9, "y": 9})
        asking = threading.Thread(target=lambda: answers.append(running.act(*batch)))
        asking.start()
        until(lambda: len(pressed(server)) == 2)
        assert running.stop() == 0
        asking.join()
        assert pressed(server) == []
        assert answers[0].json()["sent"] in ("part", "unknown"), answers[0].text


@pytest.mark.usefixtures("window")
def test_killed_and_started_again_it_releases(server: XServer, tmp_path: Path) -> None:
    token = write_token(tmp_path)
    with daemon(server, tmp_path, token_file=token) as running:
        assert running.act(*HELD).json()["ok"]
        running.stop(signal.SIGKILL)
    assert len(pressed(server)) == 2
    with daemon(server, tmp_path, token_file=token):  # nobody has to ask for anything
        until(lambda: pressed(server) == [])


def test_the_service_manager_is_told(server: XServer, tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(30)
        env = {**os.environ, "NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "500000"}
        with daemon(server, tmp_path, env=env) as running:
            assert manager.recv(4096).startswith(b"READY=1\nSTATUS=listening on 127.0.0.1:")
            assert manager.recv(4096) == b"WATCHDOG=1"
            assert manager.recv(4096) == b"WATCHDOG=1"
            assert b"NOTIFY_SOCKET" in Path(f"/proc/{running.pid}/environ").read_bytes()  # as it was started
            running.stop()
            told = manager.recv(4096)
            while told == b"WATCHDOG=1":
                told = manager.recv(4096)
            assert told == b"STOPPING=1"
