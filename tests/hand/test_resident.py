"""The hand that stays: requests over a unix socket."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.probes import RawWindow, keycode, pressed

import deskhand
from deskhand.hand.errors import SetupError
from deskhand.hand.resident import ask
from deskhand.testing import XServer, xvfb

SOURCES = str(Path(deskhand.__file__).parents[1])
HERE = {"actions": [{"action": "cursor_position"}]}
DOWN = {"actions": [{"action": "key_down", "keys": "shift"}], "settle": {"mode": "none"}}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "deskhand.hand", *arguments]


#: Nothing but what finds the package, and what measures coverage in child processes.
ENV = {"PYTHONPATH": SOURCES, **{name: value for name, value in os.environ.items() if name.startswith("COV")}}


#: A hand whose patience with its clients is not ten seconds.
IMPATIENT = (
    "import sys; from deskhand.hand import resident; resident.PATIENCE = 0.3;"
    " from deskhand.hand.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


@contextmanager
def resident(
    server: XServer, path: Path, *options: str, program: tuple[str, ...] = ("-m", "deskhand.hand")
) -> Iterator[subprocess.Popen[str]]:
    """A resident hand that has said where it is."""
    arguments = [sys.executable, *program, "--resident", str(path), "--display", server.display, *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, env=ENV) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said
            assert json.loads(said) == {"resident": str(path), "pid": process.pid}
            yield process
        finally:
            process.terminate()
            try:
                _out, err = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            assert "Traceback" not in err, err


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hand"


def kill(server: XServer) -> None:
    """``kill -9``, and wait for the end; the fixture still finds its process."""
    os.kill(server.pid, signal.SIGKILL)
    os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)


class Client:
    """One connection to a resident hand."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rb")

    def send(self, *requests: Any) -> None:
        self.socket.sendall(b"".join(json.dumps(request).encode() + b"\n" for request in requests))

    def answer(self) -> dict[str, Any]:
        line = self.lines.readline()
        assert line.endswith(b"\n"), line
        return dict(json.loads(line))

    def act(self, request: Any) -> dict[str, Any]:
        self.send(request)
        return self.answer()

    def close(self) -> None:
        self.lines.close()
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_several_requests_over_one_connection(display: XServer, path: Path) -> None:
    with resident(display, path), Client(path) as client:
        first = client.act({"request": "screenshot", "region": [0, 0, 9, 9]})
        assert (first["status"], first["picture"]["width"]) == (0, 9)
        assert client.act({"actions": [{"action": "move", "x": 5, "y": 6}]})["results"][0]["point"] == [5, 6]
        assert client.act({"request": "info"})["size"] == [1280, 800]
        second = client.act({"request": "screenshot", "region": [0, 0, 9, 9]})
        assert second["picture"]["sequence"] == first["picture"]["sequence"] + 1


def test_several_clients_one_after_the_other_over_one_x_connection(display: XServer, path: Path) -> None:
    def connections() -> int:
        return len(os.listdir(f"/proc/{display.pid}/fd"))

    with resident(display, path):
        with Client(path) as client:
            client.act(HERE)
        before = connections()
        for _ in range(5):
            with Client(path) as client:
                assert client.act(HERE)["ok"]
        assert connections() == before


@pytest.mark.slow
def test_requests_may_be_sent_before_the_answers_are_read(display: XServer, path: Path) -> None:
    with resident(display, path), Client(path) as client:
        client.send(*[{"actions": [{"action": "move", "x": n, "y": 0}]} for n in range(5)])
        assert [client.answer()["results"][0]["point"][0] for _ in range(5)] == [0, 1, 2, 3, 4]


def test_the_pictures_bytes_after_the_answer(display: XServer, path: Path) -> None:
    with resident(display, path), Client(path) as client:
        body = client.act({"request": "screenshot", "raw": True})
        picture = body["picture"]
        assert "base64" not in picture
        assert client.lines.read(picture["bytes"]).startswith(b"\x89PNG")
        assert "base64" in client.act({"request": "screenshot"})["picture"], "the next answer begins where it should"


@pytest.mark.parametrize("line", [b"{", b"", b"[]", b"\xff", b'{"a": 1, "a": 1}', b"[" * 100_000])
def test_bad_requests_end_nothing(display: XServer, path: Path, line: bytes) -> None:
    with resident(display, path), Client(path) as client:
        client.socket.sendall(line + b"\n")
        body = client.answer()
        assert (body["status"], body["ok"], body["sent"]) == (2, False, "none")
        assert client.act(HERE)["ok"]


@pytest.mark.parametrize("part", [b"", b'{"actions": ['])
def test_a_silent_client_does_not_keep_others_out(display: XServer, path: Path, part: bytes) -> None:
    with resident(display, path, program=("-c", IMPATIENT)), Client(path) as silent:
        assert silent.act(HERE)["ok"]
        silent.socket.sendall(part)
        with Client(path) as other:
            assert other.act(HERE)["ok"]
        assert silent.lines.read() == b"", "it is told: the connection is closed"


@pytest.mark.slow
def test_a_silent_client_may_stay_while_nobody_else_waits(display: XServer, path: Path) -> None:
    with resident(display, path, program=("-c", IMPATIENT)), Client(path) as client:
        for _ in range(3):
            assert client.act(HERE)["ok"]
            time.sleep(0.5)  # longer than its patience


def test_a_request_that_is_too_long(display: XServer, path: Path) -> None:
    with resident(display, path):
        with Client(path) as client:
            try:
                client.socket.sendall(b" " * (12 << 20))
            except OSError:
                pass  # it does not read the rest
            body = client.answer()
            assert body["status"] == 2
            assert "longer than 8 MiB" in body["error"]
        with Client(path) as client:
            assert client.act(HERE)["ok"]


def test_a_last_request_without_a_newline_from_a_client_that_sends_no_more(display: XServer, path: Path) -> None:
    """What ``nc -N`` and ``socat`` do with a file."""
    with resident(display, path), Client(path) as client:
        client.socket.sendall(json.dumps({"actions": [{"action": "move", "x": 3, "y": 4}]}).encode())
        client.socket.shutdown(socket.SHUT_WR)
        body = client.answer()
        assert body["ok"]
        assert body["results"][0]["point"] == [3, 4]


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_client_that_vanishes_in_the_middle_of_its_batch(display: XServer, path: Path, pipelined: bool) -> None:
    with RawWindow(display) as window, resident(display, path, "--session", "s"):
        client = Client(path)
        actions = [
            {"action": "key_down", "keys": "shift"},
            {"action": "wait", "seconds": 60},
            {"action": "click", "x": 5, "y": 5},
        ]
        client.send({"actions": actions}, *([HERE] if pipelined else []))
        assert window.conn.wait(lambda: window.received, 20)
        client.close()
        assert window.conn.wait(lambda: [event.kind for event in window.received] == ["key", "up"], 20)
        with Client(path) as client:
            assert client.act(HERE)["ok"]
        assert window.all("press") == []
        assert pressed(display) == []


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer(display: XServer, path: Path) -> None:
    with RawWindow(display) as window, resident(display, path):
        client = Client(path)
        client.send(DOWN, *[{"request": "screenshot"}] * 200)
        assert window.conn.wait(lambda: window.received, 20)
        # Nothing is read; when its patience is over the hand lets go and serves the next.
        with Client(path) as other:
            other.socket.settimeout(60)
            assert other.act(HERE)["ok"]
        client.close()
        assert pressed(display) == []


class TestHolds:
    def test_a_client_without_a_session_leaves_nothing(self, display: XServer, path: Path) -> None:
        with RawWindow(display) as window, resident(display, path):
            with Client(path) as client:
                assert client.act(DOWN)["ok"]
                assert client.act(HERE)["ok"]
                assert len(pressed(display)) == 1
            assert window.conn.wait(lambda: window.all("up"), 20)

    def test_a_session_keeps_its_own_from_client_to_client(self, display: XServer, path: Path) -> None:
        shift = f"key {keycode(display, 0xFFE1)}"
        with RawWindow(display), resident(display, path, "--session", "s"):
            for request in (DOWN, HERE):
                with Client(path) as client:
                    assert client.act(request)["ok"]
            assert pressed(display) == [shift]
            with Client(path) as client:
                assert client.act({"actions": [{"action": "key_up", "keys": "shift"}]})["ok"]
            assert pressed(display) == []

    def test_the_end_of_the_hand_without_a_session_releases(self, display: XServer, path: Path) -> None:
        with RawWindow(display):
            with resident(display, path) as process, Client(path) as client:
                client.act(DOWN)
                process.terminate()
                process.wait(20)
            assert pressed(display) == []

    def test_kill_9_and_the_next_start(self, display: XServer, path: Path) -> None:
        with RawWindow(display):
            with resident(display, path, "--session", "s") as process, Client(path) as client:
                client.act(DOWN)
                process.kill()
                process.wait()
            assert len(pressed(display)) == 1
            with resident(display, path, "--session", "s"), Client(path) as client:
                assert len(client.act(HERE)["released"]) == 1
                assert pressed(display) == []


class TestEnding:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_removes_the_socket(self, display: XServer, path: Path, number: int) -> None:
        with resident(display, path) as process:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            process.send_signal(number)
            assert process.wait(20) == 0
            assert not path.exists()

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


class TestOtherUsers:
    CODE = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try: s.connect(sys.argv[1])\n"
        "except OSError as e: print(e.strerror); sys.exit()\n"
        "try:\n"
        '    s.sendall(b\'{"request": "info"}\\n\')\n'
        "    print(s.recv(100) or 'nothing')\n"
        "except OSError as e: print('nothing')\n"
    )

    def as_nobody(self, path: Path) -> str:
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            pytest.skip("only root can become another user")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = subprocess.run(
            [*nobody, "/usr/bin/python3", "-c", self.CODE, str(path)],
            capture_output=True, text=True, timeout=60, check=True, cwd="/", env={},
        )  # fmt: skip
        return done.stdout.strip()

    def test_are_refused_by_the_sockets_mode_and_again_by_who_they_are(self, display: XServer) -> None:
        # pytest's own directories let nobody else in, at a depth that depends on how it is run.
        with tempfile.TemporaryDirectory(prefix="deskhand-test-") as directory:
            os.chmod(directory, 0o755)
            self.check(display, Path(directory) / "hand.sock")

    def check(self, display: XServer, path: Path) -> None:
        with resident(display, path):
            assert self.as_nobody(path) == "Permission denied"
            path.chmod(0o666)
            assert self.as_nobody(path) == "nothing"
            with Client(path) as client:
                assert client.act(HERE)["ok"]


class TestAsk:
    def ask(self, path: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(command("--ask", str(path)), input=stdin, capture_output=True, timeout=60, env=ENV)
        assert done.stderr == b""
        return done

    @pytest.mark.parametrize(
        ("stdin", "status"),
        [
            (json.dumps(HERE).encode(), 0),
            (json.dumps(HERE, indent=2).encode() + b"\n", 0),
            (b'{"actions": []}', 2),
            (b"", 2),
            (b"no json", 2),
            (b'{"actions": [{"action": "wait_window", "title": "no", "timeout": 0}]}', 3),
        ],
    )
    def test_the_answer_and_its_status(self, display: XServer, path: Path, stdin: bytes, status: int) -> None:
        with resident(display, path):
            done = self.ask(path, stdin)
        body = json.loads(done.stdout)
        assert (done.returncode, body["status"], body["ok"]) == (status, status, status == 0)

    def test_too_much(self, display: XServer, path: Path) -> None:
        with resident(display, path):
            done = self.ask(path, b" " * (9 << 20))
        assert done.returncode == 2
        assert "longer than 8 MiB" in json.loads(done.stdout)["error"]

    def test_no_hand_there(self, path: Path) -> None:
        done = self.ask(path, b"{}")
        body = json.loads(done.stdout)
        assert (done.returncode, body["sent"], body["kind"]) == (5, "none", "no_hand")
        assert "start one with --resident" in body["error"]

    def test_one_that_ends_before_it_answers(self, path: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            listener.listen()

            def once() -> None:
                client, _ = listener.accept()
                client.recv(5)
                client.close()

            thread = threading.Thread(target=once)
            thread.start()
            with pytest.raises(SetupError, match="closed the connection without an answer"):
                ask(str(path), b"{}" * 1000)
            thread.join()
