"""The hand that stays: how it starts, and how it ends."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from tests.probes import RawWindow, pressed
from tests.residents import DOWN, ENV, HERE, Client, command, resident

from deskhand.testing import XServer, xvfb


class TestStarting:
    def start(self, path: Path, server: XServer) -> subprocess.CompletedProcess[str]:
        arguments = command("--resident", str(path), "--display", server.display)
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, env=ENV)
        assert "Traceback" not in done.stderr
        assert done.stderr.count("\n") == 1
        assert (done.returncode, done.stdout) == (1, "")
        return done

    def test_what_a_killed_one_left_is_replaced(self, display: XServer, path: Path) -> None:
        with resident(display, path) as process:
            process.kill()
            process.wait()
        assert path.exists()
        with resident(display, path), Client(path) as client:
            assert client.act(HERE)["ok"]

    def test_a_second_one_is_refused(self, display: XServer, path: Path) -> None:
        with resident(display, path), Client(path) as client:
            assert "a hand already answers at" in self.start(path, display).stderr
            assert client.act(HERE)["ok"], "the first one does not notice"
        assert not path.exists()

    @pytest.mark.parametrize("kind", ["file", "directory", "fifo", "link"])
    def test_anything_else_is_left_alone(self, display: XServer, path: Path, tmp_path: Path, kind: str) -> None:
        if kind == "file":
            path.write_text("precious")
        elif kind == "directory":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            (tmp_path / "precious").write_text("precious")
            path.symlink_to(tmp_path / "precious")
        before = os.lstat(path)
        assert "is there and is no socket: name another" in self.start(path, display).stderr
        assert os.lstat(path).st_ino == before.st_ino
        if kind in ("file", "link"):
            assert path.read_text() == "precious"

    def test_a_path_too_long_for_a_socket(self, display: XServer, tmp_path: Path) -> None:
        assert "AF_UNIX path too long" in self.start(tmp_path / ("x" * 120), display).stderr

    def test_a_directory_that_is_not_there(self, display: XServer, tmp_path: Path) -> None:
        assert "No such file or directory" in self.start(tmp_path / "no" / "hand", display).stderr

    def test_it_starts_without_a_display_and_says_so_when_asked(self, display: XServer, path: Path) -> None:
        with resident(display, path, "--display", ":4711"), Client(path) as client:
            assert client.act(HERE)["kind"] == "no_display"


def kill(server: XServer) -> None:
    """``kill -9``, and wait for the end; the fixture still finds its process."""
    os.kill(server.pid, signal.SIGKILL)
    os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)


class TestEnding:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_signal_removes_the_socket(self, display: XServer, path: Path, number: int) -> None:
        with resident(display, path) as process:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            process.send_signal(number)
            assert process.wait(20) == 0
            assert not path.exists()

    def test_one_that_is_to_outlive_its_terminal_does(self, display: XServer, path: Path) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # inherited, as with nohup(1)
        try:
            with resident(display, path) as process, Client(path) as client:
                process.send_signal(signal.SIGHUP)
                assert client.act(HERE)["ok"]
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_a_signal_while_a_client_is_connected(self, display: XServer, path: Path) -> None:
        with resident(display, path) as process, Client(path) as client:
            client.act(HERE)
            process.terminate()
            assert process.wait(20) == 0
            assert client.lines.readline() == b""

    def test_a_signal_in_the_middle_of_a_batch(self, display: XServer, path: Path) -> None:
        with RawWindow(display) as window:
            with resident(display, path) as process, Client(path) as client:
                client.send({"actions": [*DOWN["actions"], {"action": "wait", "seconds": 60}, *HERE["actions"]]})
                assert window.conn.wait(lambda: window.received, 20)
                process.terminate()
                statuses = [result["status"] for result in client.answer()["results"]]
                assert statuses in (["ok", "failed", "skipped"], ["ok", "ok", "failed"])
                assert process.wait(20) == 0
            assert pressed(display) == []

    def test_somebody_elses_socket_is_left_alone(self, display: XServer, path: Path) -> None:
        with resident(display, path) as process:
            path.unlink()
            path.write_text("not yours")
            process.terminate()
            assert process.wait(20) == 0
        assert path.read_text() == "not yours"

    def test_a_socket_that_is_gone_already(self, display: XServer, path: Path) -> None:
        with resident(display, path) as process:
            path.unlink()
            process.terminate()
            assert process.wait(20) == 0

    def test_the_display_goes_and_comes(self, path: Path) -> None:
        with xvfb() as server, RawWindow(server), resident(server, path), Client(path) as client:
            assert client.act(DOWN)["ok"]
            kill(server)
            body = client.act(HERE)
            assert (body["status"], body["sent"]) == (5, "none")
            body = client.act(HERE)
            assert (body["status"], body["kind"]) == (5, "no_display")

    def test_the_display_goes_while_a_key_is_held_and_nobody_looks(self, path: Path) -> None:
        with xvfb() as server, RawWindow(server), resident(server, path) as process:
            with Client(path) as client:
                client.act(DOWN)
                kill(server)
            with Client(path) as client:
                assert client.act(HERE)["status"] == 5
            process.terminate()
            assert process.wait(20) == 0
