"""A desktop that is served: the launcher and computerd beside it, kept apart, started again, and gone with it."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import deskhand
from deskhand.desktop import DesktopState, list_desktops, processes, stop_desktop
from deskhand.desktop.account import Account
from deskhand.desktop.parts import PartFailed
from deskhand.desktop.services import Services, Serving
from deskhand.errors import SetupError

from .conftest import Start, nothing_left_of, wait_for

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

PACKAGE = Path(deskhand.__file__).parent
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="accounts of their own take root")


def ask(desktop: DesktopState, path: str, content: Any = None, token: str | None = None) -> tuple[int, Any]:
    """One request: status and JSON."""
    headers = {"Authorization": f"Bearer {token or Path(desktop.token_file).read_text()}", "Accept": "application/json"}
    data = None if content is None else json.dumps(content).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    try:
        with urllib.request.urlopen(urllib.request.Request(desktop.url + path, data, headers), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
    except OSError:
        return 0, None


def part(desktop: DesktopState, name: str) -> int:
    """The pid of a part as the state file has it now; 0 while it is not running."""
    facts = next(facts for facts in list_desktops() if facts["id"] == desktop.id)
    found = facts["parts"][name]
    return int(found["pid"]) if found["alive"] else 0


def is_another(desktop: DesktopState, name: str, before: int) -> bool:
    return part(desktop, name) not in (0, before)


def owner(pid: int) -> str:
    return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name


@as_root
@pytest.mark.slow
def test_a_desktop_is_served_by_two_accounts_and_down_leaves_nothing(start: Start) -> None:
    desktop = start("openbox", serve="127.0.0.1:0")
    assert ask(desktop, "/health")[0] == 200
    assert ask(desktop, "/info")[1]["launcher"] is True
    assert ask(desktop, "/info", token="x" * 20)[0] == 401
    facts = os.stat(desktop.token_file)
    assert (pwd.getpwuid(facts.st_uid).pw_name, facts.st_mode & 0o777) == ("computerd", 0o600)
    assert os.stat(os.path.dirname(desktop.token_file)).st_mode & 0o777 == 0o700
    assert owner(desktop.processes["launcher"][0]) == desktop.user
    assert owner(desktop.processes["computerd"][0]) == "computerd"
    assert "url" in desktop.as_dict()
    assert "token_file" in desktop.as_dict()
    token = Path(desktop.token_file).read_text()
    for pid in processes.processes_of(desktop.id):
        assert token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert token.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    served = [desktop.processes[name][0] for name in ("launcher", "computerd")]
    stop_desktop(desktop.display)
    nothing_left_of(desktop)
    assert not [pid for pid in served if os.path.exists(f"/proc/{pid}")]


@as_root
@pytest.mark.slow
def test_both_are_started_again_with_the_same_address_and_token(start: Start) -> None:
    desktop = start("openbox", serve="127.0.0.1:0")
    token = Path(desktop.token_file).read_text()
    for name in ("launcher", "computerd", "computerd", "launcher"):
        before = wait_for(partial(part, desktop, name))
        os.kill(before, signal.SIGKILL)
        wait_for(partial(is_another, desktop, name, before))
        wait_for(lambda: ask(desktop, "/health", token=token)[0] == 200)
    assert ask(desktop, "/screenshot", token="x" * 20)[0] == 401
    assert part(desktop, "X server") == desktop.processes["X server"][0]


@as_root
@pytest.mark.slow
def test_down_ends_both_after_the_supervisor_was_killed(start: Start) -> None:
    desktop = start("openbox", serve="127.0.0.1:0")
    os.kill(desktop.processes["supervisor"][0], signal.SIGKILL)
    stop_desktop(desktop.display)
    nothing_left_of(desktop)


@as_root
@pytest.mark.slow
def test_an_ordinary_user_is_told_what_one_account_gives_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    user = pwd.getpwnam("nobody")
    libraries = [str(Path(__file__).parents[2] / "src"), sysconfig.get_path("purelib")]
    python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-P", "-m", "deskhand", "desktop", *words],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(libraries), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd="/",
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=120,
        )

    if not os.path.exists(python) or run("status").returncode != 0:
        pytest.skip("another account can not run this tree")
    refused = run("up", "--session", "openbox", "--serve")
    assert refused.returncode == 2
    assert "--serve-same-account" in refused.stderr
    up = run("up", "--session", "openbox", "--serve-same-account", "--json")
    assert up.returncode == 0, up.stderr
    facts = json.loads(up.stdout)
    try:
        assert "can read computerd's token" in up.stderr
        desktop = DesktopState.of(facts)
        assert ask(desktop, "/health")[0] == 200
        assert os.stat(desktop.token_file).st_uid == user.pw_uid
        assert owner(desktop.processes["computerd"][0]) == "nobody"
    finally:
        assert run("down", facts["display"]).returncode == 0
    nothing_left_of(desktop)


@as_root
def test_where_the_accounts_can_not_read_us_the_desktop_comes_alone_unless_it_was_to_be_served(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    shutil.copytree(PACKAGE, hidden / "deskhand")
    hidden.chmod(0o700)

    def up(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "deskhand", "desktop", "up", "--session", "openbox", "--json", *options]
        env = {**os.environ, "PYTHONPATH": str(hidden)}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    refused = up("--serve")
    assert refused.returncode == 1
    assert "can not run" in refused.stderr
    assert not refused.stdout
    alone = up()
    assert alone.returncode == 0, alone.stderr
    facts = json.loads(alone.stdout)
    stop_desktop(facts["display"])
    assert facts["url"] == ""
    assert "the desktop is not served" in alone.stderr
    assert "\n" not in alone.stderr.strip()


def test_addresses_that_are_none(start: Start) -> None:
    before = set(os.listdir("/var/lib/deskhand")) if os.path.isdir("/var/lib/deskhand") else set()
    for listen in ("8765", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x"):
        with pytest.raises(SetupError, match="no address to listen at"):
            start("openbox", serve=listen)
    if before:
        assert set(os.listdir("/var/lib/deskhand")) <= before


# ---- without a desktop


@pytest.fixture
def services(tmp_path: Path) -> Services:
    entry = pwd.getpwuid(os.geteuid())
    account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid, "/bin/sh", switch=False)
    token = tmp_path / "given"
    token.write_text("a-token-that-was-given\n")
    serving = Serving("127.0.0.1:0", account, str(tmp_path / "l"), str(tmp_path / "c"), str(token))
    pids = iter(range(4_000_000, 5_000_000))
    return Services(serving, account, lambda *_: next(pids))


@pytest.mark.parametrize("content", ["short", "two words in one file", "", "ümlaut-ümlaut-ümlaut"])
def test_a_file_that_holds_no_token_is_named(services: Services, tmp_path: Path, content: str) -> None:
    (tmp_path / "given").write_text(content)
    (tmp_path / "Xauthority").touch()
    with pytest.raises(PartFailed, match="does not hold a token"):
        services.prepare(":1", str(tmp_path / "Xauthority"), {})


def test_what_is_given_is_copied_for_computerd_alone(services: Services, tmp_path: Path) -> None:
    (tmp_path / "Xauthority").write_bytes(b"cookie")
    services.prepare(":1", str(tmp_path / "Xauthority"), {})
    assert (tmp_path / "c" / "token").read_text() == "a-token-that-was-given"
    for name, content in (("token", b"a-token-that-was-given"), ("Xauthority", b"cookie")):
        path = tmp_path / "c" / name
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (content, 0o600)


def test_one_that_keeps_ending_is_started_ever_later(services: Services, tmp_path: Path) -> None:
    (tmp_path / "Xauthority").touch()
    services.prepare(":1", str(tmp_path / "Xauthority"), {})
    services.start("launcher")
    waits = []
    for _ in range(8):
        pid = services.processes["launcher"][0]
        assert pid is not None
        assert len(services.ended({pid: 0, 1: 0})) == 1
        waits.append(services.until_due(60.0))
        services.start("launcher")
    assert waits[0] <= 0.001
    assert [round(seconds, 1) for seconds in waits] == [0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0]
    assert services.until_due(60.0) == 60.0


def _listen(sock: socket.socket, host: str, port: int) -> None:
    sock.bind((host, port))
    sock.listen()


def test_nobody_can_take_the_address_while_computerd_is_started_again(services: Services, tmp_path: Path) -> None:
    (tmp_path / "Xauthority").touch()
    services.prepare(":1", str(tmp_path / "Xauthority"), {})
    assert services._listening is not None
    address = services._listening.getsockname()
    services.start("computerd")
    pid = services.processes["computerd"][0]
    assert pid is not None
    services.ended({pid: 9})
    for host in (address[0], "0.0.0.0"):
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="in use"):
                _listen(thief, host, address[1])


def test_one_that_can_not_be_started_now_is_due_again(services: Services, tmp_path: Path) -> None:
    (tmp_path / "Xauthority").touch()
    services.prepare(":1", str(tmp_path / "Xauthority"), {})
    services.start("launcher")
    pid = services.processes["launcher"][0]
    assert pid is not None
    started = services._start

    def too_many(*_: Any) -> int:
        raise PartFailed("launcher", "it has as many processes as it may")

    services._start = too_many
    services.ended({pid: 9})
    (line,) = services.start_the_due()
    assert "as many processes as it may" in line
    assert 0 < services.until_due(60.0) < 60.0
    services._start = started
    wait_for(services.start_the_due)
    assert services.runs("launcher")
