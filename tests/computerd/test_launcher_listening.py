"""The launcher's socket file and its directory: made right or refused, and taken away again."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deskhand.computerd.launcher.__main__ import uid_of
from deskhand.desktop.account import Account
from deskhand.hand.errors import SetupError
from tests.commands import deskhand
from tests.computerd.launchers import (
    PYTHON,
    ROOT,
    RunningLauncher,
    as_account,
    computerd,  # noqa: F401
    needs_root,
    running_launcher,
)


@pytest.fixture
def stopped() -> Iterator[RunningLauncher]:
    """A launcher that is not started yet."""
    with running_launcher(start=False) as launcher:
        yield launcher


def refusal(launcher: RunningLauncher, *arguments: str) -> str:
    """The one line that it ends with at once."""
    done = subprocess.run(
        [PYTHON, "-m", "deskhand.computerd.launcher", *(arguments or ("--socket", launcher.path)), "--serve-uid",
         str(launcher.serve_uid)],
        env=launcher.environment, cwd="/", capture_output=True, text=True, timeout=20, **as_account(launcher.account),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("deskhand: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_the_modes_are_set_whatever_the_umask_and_the_file_goes(stopped: RunningLauncher) -> None:
    old = os.umask(0o077)
    try:
        stopped.start()
    finally:
        os.umask(old)
    assert mode(stopped.path) == 0o666
    assert os.lstat(stopped.path).st_uid == stopped.account.uid
    assert os.listdir(os.path.dirname(stopped.path)) == ["launcher.sock"]
    assert stopped.stop() == 0
    assert os.listdir(os.path.dirname(stopped.path)) == []


def test_a_directory_that_is_missing_is_made(stopped: RunningLauncher) -> None:
    stopped.path = str(stopped.directory / "home" / "made" / "launcher.sock")
    stopped.start()
    assert mode(os.path.dirname(stopped.path)) == 0o750
    assert stopped.ask(b"list")["ok"] is True


def test_the_socket_of_a_dead_launcher_is_replaced_and_of_a_living_one_not(stopped: RunningLauncher) -> None:
    stopped.start()
    assert f"another launcher listens at {stopped.path}" in refusal(stopped)
    assert stopped.ask(b"list")["ok"] is True
    stopped.stop(signal.SIGKILL)
    assert os.path.exists(stopped.path)
    stopped.start()
    assert stopped.ask(b"list")["ok"] is True


@pytest.mark.slow
def test_a_successor_keeps_its_socket_when_the_first_one_ends(stopped: RunningLauncher) -> None:
    stopped.start()
    os.unlink(stopped.path)
    first = stopped.process
    stopped.start()
    assert first is not None
    first.send_signal(signal.SIGTERM)
    assert first.wait(20) == 0
    assert stopped.ask(b"list")["ok"] is True


def test_what_is_no_socket_is_left_alone(stopped: RunningLauncher) -> None:
    Path(stopped.path).write_text("precious")
    assert "is there and is no socket" in refusal(stopped)
    assert Path(stopped.path).read_text() == "precious"


@pytest.mark.parametrize("wrong", [0o755, 0o770, 0o777, 0o751])
def test_a_directory_that_others_may_enter_is_refused(stopped: RunningLauncher, wrong: int) -> None:
    directory = os.path.dirname(stopped.path)
    os.chmod(directory, wrong)
    said = refusal(stopped)
    assert f"(mode {wrong:04o}): make it with: install -d -o " in said
    assert os.listdir(directory) == []
    assert mode(directory) == wrong


@needs_root
@pytest.mark.slow
def test_a_directory_of_another_is_refused(stopped: RunningLauncher) -> None:
    os.chown(os.path.dirname(stopped.path), 0, stopped.account.gid)
    os.chmod(os.path.dirname(stopped.path), 0o750)
    assert "is not a directory of desk's own" in refusal(stopped)
    assert "is not a directory of desk's own" in refusal(stopped, "--socket", "/tmp/launcher.sock")
    assert "can not be made" in refusal(stopped, "--socket", "/run/no/launcher.sock")


@needs_root
def test_a_directory_that_the_served_one_can_not_enter_is_refused(computerd: Account) -> None:  # noqa: F811
    with running_launcher(computerd, start=False) as launcher:
        os.chown(os.path.dirname(launcher.path), -1, launcher.account.gid)
        assert f"computerd can not enter {os.path.dirname(launcher.path)}" in refusal(launcher)


@pytest.mark.slow
def test_a_path_that_is_too_long(stopped: RunningLauncher) -> None:
    assert "can not listen at" in refusal(stopped, "--socket", f"{os.path.dirname(stopped.path)}/{'s' * 120}")


@pytest.mark.slow
def test_without_a_display_it_says_so(stopped: RunningLauncher) -> None:
    del stopped.environment["DISPLAY"]
    assert "no display is named" in refusal(stopped)


@pytest.mark.skipif(not ROOT, reason="only root can be refused for being root")
def test_root_is_refused() -> None:
    done = deskhand(None, "launcher", "--serve-uid", "0", "--display", ":1")
    assert done.status == 1
    assert "the launcher must not run as root" in done.error


def test_accounts_are_named_or_numbered() -> None:
    assert (uid_of("0"), uid_of("root"), uid_of("4294967294")) == (0, 0, 2**32 - 2)
    for wrong in ("", "-1", "nobody there", "4294967295", "\u0661", "a\0b", "1.5"):
        with pytest.raises(SetupError, match="there is no account"):
            uid_of(wrong)


def test_it_can_connect_as_soon_as_the_file_is_there(stopped: RunningLauncher) -> None:
    """Whoever waits for the file may connect at once: it never sees a socket that does not listen."""
    directory = os.path.dirname(stopped.path)
    failures = []
    process = subprocess.Popen(
        [PYTHON, "-m", "deskhand.computerd.launcher", "--socket", stopped.path, "--serve-uid", str(stopped.serve_uid)],
        env=stopped.environment, cwd="/", stderr=subprocess.DEVNULL, **as_account(stopped.account),
    )  # fmt: skip
    stopped.process = process
    while process.poll() is None:
        if not os.path.lexists(stopped.path):
            continue
        with socket.socket(socket.AF_UNIX) as peer:
            try:
                peer.connect(stopped.path)
            except OSError as error:
                failures.append(error)
        break
    assert failures == []
    assert os.listdir(directory) == ["launcher.sock"]
