"""What holds one desktop of a fleet apart from another: each promise is tried from the desktops themselves."""

from __future__ import annotations

import asyncio
import glob
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.desktop import sandbox
from deskhand.desktop.processes import processes_of
from deskhand.desktop.sandbox import Isolation
from deskhand.errors import SetupError
from deskhand.fleet import LeasedDesktop, LocalPool, Options, SocketPool
from deskhand.fleet.commands import CommandTimeout
from deskhand.fleet.making import HOST_MARK
from deskhand.hand.state import read_desktops
from deskhand.testing.batches import run, until
from tests.fleet.apart import facts_of, said

needs_bubblewrap = pytest.mark.skipif(
    not all(shutil.which(program) for program in ("bwrap", "nsenter", "unshare", "setpriv")),
    reason="it needs bubblewrap and util-linux",
)
ROOT = Path(__file__).resolve().parents[2]
APART: dict[str, Any] = {"size": 2, "spares": 0, "isolation": "bwrap", "home_size": 64}
#: An account that is not root's, and has an entry: what an ordinary user is here.
ORDINARY = "nobody"


def looked(as_whom: str) -> dict[str, Any]:
    """What ``tests.fleet.apart`` finds, run as this user or as another."""
    python, become = sys.executable, []
    if as_whom != "ours":
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        entry = pwd.getpwnam(ORDINARY)
        become = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        python = f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
        readable = subprocess.run([*become, "test", "-r", str(ROOT / "src" / "deskhand" / "__init__.py")], check=False)
        if readable.returncode != 0 or not os.access(python, os.X_OK):
            pytest.skip("another user can not read this checkout here, or has no Python of this version")
    done = subprocess.run(
        [*become, python, "-m", "tests.fleet.apart", json.dumps(APART)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("as_whom", ["ours", "an ordinary user"])
def test_a_desktop_reaches_nothing_of_another(as_whom: str) -> None:
    found = looked(as_whom)
    server, abstract, bus = found["own"]
    assert (server, bus) == ("reached", "reached"), "its own it reaches"
    assert abstract != "reached", "the abstract socket is the machine's"
    assert "reached" not in found["other"], "X server, its abstract socket, session bus"
    assert not found["other_cookie"]
    assert found["own_home"] == "secret"
    assert "No such file" in found["other_home"]
    assert (found["tmp"], "No such file" in found["other_tmp"]) == ("x", True)
    assert "reached" not in found["network"], "neither by loopback nor by this machine's address"
    assert found["loopback"] == "reached"
    assert not found["other_environ"]
    assert not found["other_root"], "nor by the other's root directory in /proc"
    assert found["confined"].split() == ["NoNewPrivs:", "1"]
    assert "No space left" in found["too_much"]
    assert found["launched"]
    assert found["window"] == ["XTerm"], "and applications start in there"
    if found["uid"] == 0:
        assert len(set(found["uids"])) == 2
        assert 0 not in found["uids"]
        assert not found["other_killed"]
        assert not found["other_seen"]


def mounts_below(directory: str) -> list[str]:
    """Lines of any process's mounts that are of a desktop's directory (proc(5), /proc/pid/mountinfo)."""
    found = []
    for path in glob.glob("/proc/[0-9]*/mountinfo"):
        try:
            found += [line for line in Path(path).read_text().splitlines() if directory in line]
        except OSError:
            continue
    return found


@needs_bubblewrap
@pytest.mark.slow
def test_home_is_new_after_a_reset_and_nothing_stays_mounted() -> None:
    async def work() -> None:
        before = Path("/proc/self/mountinfo").read_text()
        async with LocalPool(Options(**APART)) as pool, pool.lease() as desktop:
            facts = facts_of(desktop)
            assert (await desktop.run("echo x > $HOME/left && echo x > /tmp/left && echo x > /left")).code == 0
            assert mounts_below(facts["directory"]), "in the desktop's own mounts"
            assert Path("/proc/self/mountinfo").read_text() == before, "and not in this machine's"
            await desktop.reset()
            assert facts_of(desktop)["id"] != facts["id"]
            assert await said(desktop, "sh", "-c", "ls $HOME /tmp / | grep -c left || true") == "0"
            await asyncio.to_thread(until, lambda: not mounts_below(facts["directory"]), "its mounts have gone")
            await asyncio.to_thread(until, lambda: not os.path.exists(facts["directory"]), "its files have too")
            last = facts_of(desktop)
        assert not mounts_below(last["directory"])
        assert not os.path.exists(last["directory"])

    run(work())


@pytest.fixture
def service() -> Iterator[dict[str, Any]]:
    from deskhand.fleet.starting import end_service, start_service

    name = f"apart-{os.getpid()}"
    yield start_service(name, Options(size=1, spares=1, isolation="bwrap"))
    try:
        asyncio.run(end_service(name))
    except SetupError:
        pass  # it was killed


@needs_bubblewrap
@pytest.mark.slow
def test_nothing_stays_mounted_when_the_host_is_killed(service: dict[str, Any]) -> None:
    async def used() -> None:
        async with SocketPool(service["name"]) as pool, pool.lease() as desktop:
            await desktop.run("echo x > $HOME/left")
            os.kill(service["pid"], signal.SIGKILL)

    mine = [facts for facts in read_desktops() if f":{service['pid']}:" in facts["env"].get(HOST_MARK, "")]
    assert len(mine) == 2
    asyncio.run(used())
    for facts in mine:
        until(lambda facts=facts: not mounts_below(facts["directory"]), "its mounts have gone", 20)  # type: ignore[misc]
        until(lambda facts=facts: not os.path.exists(facts["directory"]), "its files have too", 20)  # type: ignore[misc]


@needs_bubblewrap
@pytest.mark.slow
def test_a_home_over_a_template(tmp_path: Path) -> None:
    template = tmp_path / "template"
    (template / ".config").mkdir(parents=True)
    (template / "note.txt").write_text("as the operator wants it\n")
    (template / ".config" / "own").write_text("1\n")
    (template / ".gtkrc-2.0").write_text("# the template's\n")
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(path.stat().st_mode | 0o055)

    async def work() -> None:
        options = Options(**{**APART, "size": 1, "template_home": str(template)})
        async with LocalPool(options) as pool, pool.lease() as desktop:
            assert await said(desktop, "cat", "note.txt") == "as the operator wants it"
            assert await said(desktop, "cat", ".gtkrc-2.0") == "# the template's", "its files win over ours"
            assert await said(desktop, "ls", ".config/own", ".config/gtk-3.0") != ""
            assert await said(desktop, "sh", "-c", "echo changed > note.txt && cat note.txt") == "changed"
            assert await said(desktop, "stat", "-c", "%u", ".", "note.txt", ".config") == "\n".join(
                3 * [str(facts_of(desktop)["uid"])]
            )
            await desktop.reset()
            assert await said(desktop, "cat", "note.txt") == "as the operator wants it"
        assert (template / "note.txt").read_text() == "as the operator wants it\n"

    run(work())


@needs_bubblewrap
@pytest.mark.slow
def test_a_home_in_memory_with_the_machines_network() -> None:
    async def work() -> None:
        async with LocalPool(Options(size=1, spares=0, home="tmpfs", home_size=32)) as pool, pool.lease() as desktop:
            here = os.readlink("/proc/self/ns/net")
            assert await said(desktop, "readlink", "/proc/self/ns/net") == here
            assert await said(desktop, "readlink", "/proc/self/ns/mnt") != os.readlink("/proc/self/ns/mnt")
            ran = await desktop.run("head -c 40M /dev/zero > $HOME/full")
            assert b"No space left" in ran.stderr
            assert (await desktop.run("stat -f -c %T $HOME")).stdout.strip() == b"tmpfs"

    run(work())


def launcher_of(desktop: str) -> int:
    def words(pid: int) -> bytes:
        return Path(f"/proc/{pid}/cmdline").read_bytes()

    return next(pid for pid in processes_of(desktop) if b"deskhand.computerd.launcher" in words(pid))


@needs_bubblewrap
@pytest.mark.slow
def test_a_link_in_the_place_of_a_launcher_is_not_followed() -> None:
    async def work() -> None:
        async with LocalPool(Options(**APART)) as pool, pool.lease() as one, pool.lease() as other:
            theirs = facts_of(other)["launcher"]
            socket = facts_of(one)["launcher"].partition("root")[2]
            assert (await one.run(f"rm {socket} && ln -s {theirs} {socket}")).code == 0
            with pytest.raises(SetupError, match="what stands there is no socket of its account"):
                await one.apps()
            assert await other.windows() == []

    run(work())


async def launches(desktop: LeasedDesktop) -> bool:
    try:
        return (await desktop.act({"actions": [{"action": "launch", "app": "XTerm"}]})).ok
    except SetupError:
        return False  # it does not listen again yet


@needs_bubblewrap
@pytest.mark.slow
def test_a_launcher_that_is_ended_is_there_again() -> None:
    async def work() -> None:
        async with LocalPool(Options(**{**APART, "size": 1})) as pool, pool.lease() as desktop:
            await asyncio.sleep(1.1)  # one that ends as soon as it has begun is a fault
            os.kill(launcher_of(facts_of(desktop)["id"]), signal.SIGTERM)
            async with asyncio.timeout(20):
                while not await launches(desktop):
                    await asyncio.sleep(0.1)

    run(work())


@needs_bubblewrap
@pytest.mark.slow
def test_commands_on_a_desktop() -> None:
    async def work() -> None:
        async with LocalPool(Options(**{**APART, "size": 1})) as pool, pool.lease(ttl=5) as desktop:
            ran = await desktop.run('cat; echo "$DISPLAY $ONE" >&2; exit 3', b"in", {"ONE": "1"}, "/tmp")
            display = facts_of(desktop)["display"]
            assert (ran.code, ran.stdout, ran.stderr) == (3, b"in", f"{display} 1\n".encode())
            assert (await desktop.run("pwd", cwd="/tmp")).stdout == b"/tmp\n"
            with pytest.raises(CommandTimeout, match=r"had not ended after 0\.3 s"):
                await desktop.run("sleep 4242 & sleep 4242", timeout=0.3)
            left = [process.name for process in processes_of(facts_of(desktop)["id"]).values()]
            assert left.count("sleep") == 1, "what holds the sandbox"
            with pytest.raises(SetupError, match="writes more than 16 MiB"):
                await desktop.run("head -c 20M /dev/zero")
            ran = await desktop.run("echo $LD_PRELOAD; command -v ls", env={"LD_PRELOAD": "/nowhere.so"})
            assert ran.stdout == b"/nowhere.so\n/usr/bin/ls\n"
            assert ran.stderr.count(b"/nowhere.so") == 2, "it is not for what leads in there: by sh and sh alone"
            with pytest.raises(SetupError, match="is no name of an environment variable"):
                await desktop.run("true", env={"-u": "1"})
            with pytest.raises(SetupError, match="can not be started"):
                await desktop.run("echo \0")

    run(work())


def test_what_a_machine_can_not_do_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for wrong, sentence in (
        (Isolation(home="disk"), "is no kind of HOME"),
        (Isolation(size=1), "is no size for a HOME"),
        (Isolation(home="overlay"), "needs a template"),
        (Isolation(template=str(tmp_path)), "needs a template"),
        (Isolation(home="overlay", template="relative"), "is no directory"),
        (Isolation(home="overlay", template=str(tmp_path / "none")), "is no directory"),
        (Isolation(see=("/usr:ro",)), "is no directory"),
    ):
        with pytest.raises(SetupError, match=sentence):
            wrong.check()
    monkeypatch.setattr(sandbox, "_PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"bwrap .* is not there\. Install with: apt-get install bubblewrap"):
        Options(isolation="bwrap").check()
    Options().check()
    with pytest.raises(ValueError, match="isolation is auto, user, bwrap, not 'none'"):
        Options(isolation="none")


def test_an_account_for_each_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    Options(isolation="user")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SetupError, match="which only root can make: start the fleet as root, or use isolation 'bwrap'"):
        Options(isolation="user").check()


@needs_bubblewrap
@pytest.mark.slow
def test_a_sandbox_that_can_not_be_made_says_why(tmp_path: Path) -> None:
    template = tmp_path / "gone"
    template.mkdir()

    async def work() -> None:
        options = Options(size=1, spares=0, isolation="bwrap", template_home=str(template))
        pool = LocalPool(options)
        object.__setattr__(options, "check", lambda: None)
        template.rmdir()
        with pytest.raises(SetupError, match=r"no desktop of the fleet came up: .*(no directory|part sandbox)"):
            await pool.__aenter__()

    run(work())
