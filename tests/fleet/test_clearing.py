"""What an account of a fleet has left is ended; what only has the same number, in a container, is not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from deskhand.fleet.clearing import clear_account
from deskhand.hand.state import is_alive, process_start_time
from deskhand.testing.batches import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each desktop an account of its own"),
    pytest.mark.skipif(not all(map(shutil.which, ("unshare", "setpriv", "bwrap"))), reason="it needs bubblewrap"),
]
#: A number that no account of this machine has, and no other test.
UID = 61873
BECOME = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--"]
#: As a container begins, and as a browser, a sandbox or a user does.
CONTAINER = ["unshare", "--pid", "--fork"]
OWN = {
    "by unshare": ["unshare", "--user", "--map-current-user", "--pid", "--fork"],
    "by bubblewrap": ["bwrap", "--unshare-all", "--dev-bind", "/", "/"],
}
Process = tuple[int, int]


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Start what ends in a long sleep, and give that: its pid and start time."""
    begun: list[subprocess.Popen[bytes]] = []
    sleeps: list[Process] = []

    def whole(*words: str, mapped: bool = False) -> Process:
        env, pipe = {"PATH": "/usr/sbin:/usr/bin:/bin"}, subprocess.PIPE
        begun.append(subprocess.Popen([*words, "sleep", "1000"], cwd="/", env=env, stdin=pipe))
        pid = begun[-1].pid
        if mapped:
            _map_all(begun[-1])
        until(lambda: _sleep_of(pid) or begun[-1].poll() is not None, "it sleeps")
        found = _sleep_of(pid)
        if found is None:
            pytest.skip(f"{words} can not be had here")
        start_time = process_start_time(found)
        assert start_time is not None
        sleeps.append((found, start_time))
        return sleeps[-1]

    yield whole
    for process in sleeps:
        if is_alive(*process):
            with suppress(ProcessLookupError):
                os.kill(process[0], signal.SIGKILL)
    for one in begun:
        one.kill()
        one.communicate()


def _sleep_of(pid: int) -> int | None:
    """The process that sleeps, which is ``pid`` or below it."""
    with suppress(OSError):
        if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000\x00":
            return pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if (found := _sleep_of(int(child))) is not None:
                return found
    return None


def _map_all(process: subprocess.Popen[bytes]) -> None:
    """Give its new user namespace the numbers that they are outside (user_namespaces(7)), and let it go on."""
    ours = os.readlink("/proc/self/ns/user")
    until(lambda: os.readlink(f"/proc/{process.pid}/ns/user") != ours, "it has a user namespace")
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{process.pid}/{name}").write_text("0 0 100000")
    assert process.stdin is not None
    process.stdin.write(b"go on\n")
    process.stdin.flush()


def test_what_the_account_runs_ends(start: Callable[..., Process]) -> None:
    plain = start(*BECOME)
    of_another = start("setpriv", f"--reuid={UID + 1}", "--")
    clear_account("desk-test", UID)
    assert not is_alive(*plain)
    assert is_alive(*of_another)


@pytest.mark.parametrize("how", OWN)
def test_it_ends_in_a_namespace_of_its_own_too(start: Callable[..., Process], how: str) -> None:
    inside = start(*BECOME, *OWN[how])
    twice = start(*BECOME, *OWN[how], *OWN["by unshare"])
    for process in (inside, twice):
        assert _levels(process[0]) > 1, "it is in a PID namespace below ours"
    clear_account("desk-test", UID)
    assert not is_alive(*inside)
    assert not is_alive(*twice)


def test_a_container_with_the_same_number_lives(start: Callable[..., Process]) -> None:
    container = start(*CONTAINER, *BECOME)
    wait = ["sh", "-c", 'read line; exec "$@"', "sh"]
    of_roots = start("unshare", "--user", "--pid", "--fork", *wait, *BECOME, mapped=True)
    assert os.stat(f"/proc/{of_roots[0]}").st_uid == UID
    inside_it = start(*CONTAINER, *BECOME, *OWN["by unshare"])
    clear_account("desk-test", UID)
    for process in (container, of_roots, inside_it):
        assert is_alive(*process)


def test_only_accounts_of_fleets_are_cleared(start: Callable[..., Process]) -> None:
    plain = start(*BECOME)
    clear_account("desk", UID)
    assert is_alive(*plain)


def _levels(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(len(line.split()) - 1 for line in lines if line.startswith("NSpid:"))
