"""What processes say about what is to come, with real shells behind real pseudo-terminals."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.x_windows import x_window
from tests.xservers import until

from deskhand.hand import client_processes
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer, xvfb

#: What a terminal does, without a window: a shell in a session of its own, which gets what we write.
TERMINAL = "import pty; pty.spawn(['bash', '--norc', '--noprofile', '-i'])"
BEFORE, AFTERWARDS = 0.0, time.monotonic() + 3600


class Terminal:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def running(self) -> bool:
        return client_processes.command_running(self.pid, BEFORE)

    def runs(self, program: str) -> bool:
        """Whether that program is among its processes."""
        processes = client_processes._descendants(self.pid)
        return any(client_processes._program(process).decode() == program for process in processes)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    process = subprocess.Popen(
        [sys.executable, "-c", TERMINAL], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    opened = Terminal(process)
    try:
        until(lambda: client_processes.is_terminal(opened.pid))
        yield opened
    finally:
        for child in client_processes._descendants(process.pid):
            subprocess.run(["kill", "-9", str(child)], check=False, stderr=subprocess.DEVNULL)
        process.kill()
        process.communicate()


def test_a_command_that_started_since_runs_until_it_ends(terminal: Terminal, tmp_path: Path) -> None:
    assert not terminal.running()
    end = tmp_path / "end"
    terminal.type(f"sh -c 'until [ -e {end} ]; do sleep 0.05; done'")
    until(terminal.running)
    assert not client_processes.command_running(terminal.pid, AFTERWARDS)  # it may run for ever
    end.touch()
    until(lambda: not terminal.running())
    assert client_processes.is_terminal(terminal.pid)


def test_a_shell_that_does_something_itself_has_work(terminal: Terminal, tmp_path: Path) -> None:
    until(lambda: not client_processes.has_work(terminal.pid))  # it has started
    end = tmp_path / "end"
    terminal.type(f"until [ -e {end} ]; do :; done")
    until(lambda: client_processes.has_work(terminal.pid))
    assert not terminal.running()  # it is the shell, no command of it
    end.touch()
    until(lambda: not client_processes.has_work(terminal.pid))


@pytest.mark.parametrize("program", ["less", "vi", "top"])
def test_what_takes_single_keys_waits_for_us(terminal: Terminal, program: str) -> None:
    if subprocess.run(["which", program], capture_output=True, check=False).returncode:
        pytest.skip(f"{program} is not installed")
    terminal.type(program + (" /etc/services" if program != "top" else ""))
    until(lambda: terminal.runs(program))
    until(lambda: not terminal.running())
    assert terminal.runs(program)


@pytest.mark.parametrize("command", ["cat", "sh -c 'read answer; sleep 60'"])
def test_what_reads_a_line_waits_for_us(terminal: Terminal, command: str) -> None:
    terminal.type(command)
    until(lambda: terminal.runs(command.split()[0]))
    until(lambda: not terminal.running())
    assert terminal.runs(command.split()[0])
    if command != "cat":
        terminal.type("yes")
        until(terminal.running)


def test_what_reads_a_pipe_does_not_wait_for_us(terminal: Terminal) -> None:
    terminal.type("sleep 60 | cat")
    until(lambda: terminal.runs("cat") and terminal.runs("sleep"))
    until(terminal.running)
    assert terminal.running()


def test_other_processes_are_no_terminals() -> None:
    process = subprocess.Popen(["sh", "-c", "sleep 60; true"], start_new_session=True)
    try:
        # Between fork and exec a child is one more process of the same program.
        until(lambda: [client_processes._program(one) for one in client_processes._children(process.pid)] == [b"sleep"])
        assert not client_processes.is_terminal(process.pid)
        assert not client_processes.command_running(process.pid, BEFORE)
        assert not client_processes.has_content_processes(process.pid)
    finally:
        for child in client_processes._children(process.pid):
            subprocess.run(["kill", str(child)], check=False)
        process.kill()
        process.wait()
    for pid in (process.pid, 0):  # gone
        assert not client_processes.is_terminal(pid)
        assert not client_processes.command_running(pid, BEFORE)
        assert not client_processes.has_content_processes(pid)


def test_children_of_any_thread_are_content_processes() -> None:
    """Firefox starts its own from a thread that is not the first."""
    start = "import subprocess, sys, threading\ndef run(): subprocess.run([sys.executable, '-c', 'input()'])\n"
    code = start + "thread = threading.Thread(target=run)\nthread.start()\nthread.join()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        assert until(lambda: client_processes.has_content_processes(process.pid))
    finally:
        process.communicate()


@pytest.fixture
def server() -> Iterator[XServer]:
    with xvfb() as opened:
        yield opened


def test_the_pid_behind_a_window(server: XServer) -> None:
    with Connection.open(server.display) as conn, x_window(conn, server, "with", "--pid") as window:
        pid = client_processes.pid_of(conn, window)
        assert client_processes._program(pid).decode() == sys.executable
        liar = conn.atom("_NET_WM_PID")
        from deskhand.hand.x11 import core

        core.change_property(conn, window, liar, core.ATOM_CARDINAL, 32, (pid + 1).to_bytes(4, sys.byteorder))
        conn.sync()
        assert client_processes.pid_of(conn, window) == 0
        assert client_processes.pid_of(conn, 0x7FFFFF) == 0


def started(server: XServer, *command: str, **variables: str) -> subprocess.Popen[bytes]:
    """By a shell, as icons and menus start a program: not by us."""
    env = {**server.env, **variables}
    return subprocess.Popen(["sh", "-c", '"$@" & wait', "sh", *command], env=env, start_new_session=True)


def ended(process: subprocess.Popen[bytes]) -> None:
    for child in client_processes._descendants(process.pid):
        subprocess.run(["kill", "-9", str(child)], check=False, stderr=subprocess.DEVNULL)
    process.kill()
    process.wait()


def test_a_program_is_starting_until_it_is_old(server: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with Connection.open(server.display) as conn:
        newcomers = client_processes.Newcomers(conn)
        assert not newcomers.starting()
        monkeypatch.setattr(client_processes, "CONNECTING", 3600.0)
        process = started(server, "sleep", "60")
        try:
            until(newcomers.starting)
            monkeypatch.setattr(client_processes, "CONNECTING", 0.0)
            until(lambda: not newcomers.starting())  # it never came to the display
            monkeypatch.setattr(client_processes, "CONNECTING", 3600.0)
            assert not client_processes.Newcomers(conn).starting()  # it was there before
        finally:
            ended(process)
        until(lambda: not newcomers.starting())


def test_a_client_without_a_window_is_starting_however_old(server: XServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_processes, "CONNECTING", 0.0)
    with Connection.open(server.display) as conn:
        newcomers = client_processes.Newcomers(conn)
        process = started(server, "xdotool", "search", "--sync", "--name", "a window that never comes")
        try:
            assert until(newcomers.starting)
        finally:
            ended(process)


@pytest.mark.parametrize("display", [":99999", "", "nonsense"])
def test_what_starts_on_another_display_is_not_ours(
    server: XServer, monkeypatch: pytest.MonkeyPatch, display: str
) -> None:
    monkeypatch.setattr(client_processes, "CONNECTING", 3600.0)
    with Connection.open(server.display) as conn:
        newcomers = client_processes.Newcomers(conn)
        process = started(server, "sleep", "60", DISPLAY=display)
        try:
            until(lambda: any(client_processes._program(pid) == b"sleep" for pid in _of(process)))
            assert not newcomers.starting()
        finally:
            ended(process)


def _of(process: subprocess.Popen[bytes]) -> list[int]:
    return client_processes._descendants(process.pid)


def test_what_runs_in_a_terminal_is_the_terminals(
    server: XServer, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_processes, "CONNECTING", 3600.0)
    with Connection.open(server.display) as conn:
        newcomers = client_processes.Newcomers(conn)
        terminal.type(f"DISPLAY={server.display} sleep 60")
        until(lambda: terminal.runs("sleep"))
        assert not newcomers.starting()
