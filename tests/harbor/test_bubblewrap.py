"""A sandbox of bubblewrap: what it shares with this machine, and what it does not."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from deskhand.errors import SetupError
from deskhand.harbor.bubblewrap import BubblewrapSandbox, CommandTimeout

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(shutil.which(program) for program in ("bwrap", "nsenter", "setpriv")), reason="it needs bubblewrap"
    ),
]


def in_one(body: Callable[[BubblewrapSandbox], Awaitable[None]]) -> None:
    """Run ``body`` with a sandbox; nothing of it is left afterwards."""

    async def whole() -> Path:
        sandbox = BubblewrapSandbox()
        await sandbox.start()
        place = sandbox.root.parent
        try:
            await body(sandbox)
        finally:
            await sandbox.stop()
        return place

    assert not asyncio.run(asyncio.wait_for(whole(), 60)).exists()


async def said(sandbox: BubblewrapSandbox, command: str) -> str:
    ended = await sandbox.run(["bash", "-c", command])
    return ended.stdout.decode().strip()


def test_namespaces_are_its_own() -> None:
    async def body(sandbox: BubblewrapSandbox) -> None:
        for kind in ("user", "mnt", "pid", "net", "ipc", "uts"):
            assert await said(sandbox, f"readlink /proc/self/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}"), kind
        assert await said(sandbox, "hostname") == "trial"
        assert await said(sandbox, "id -u") == "0"
        assert await said(sandbox, "pwd") == "/"

    in_one(body)


def test_commands_see_each_others_files_and_processes() -> None:
    async def body(sandbox: BubblewrapSandbox) -> None:
        await said(sandbox, "echo kept > /root/file; setsid sleep 30 > /dev/null 2>&1 &")
        assert await said(sandbox, "cat /root/file") == "kept"
        assert await said(sandbox, "pgrep -c sleep") == "2", "its first command, and ours"

    in_one(body)


def test_this_machine_is_neither_seen_nor_written() -> None:
    async def body(sandbox: BubblewrapSandbox) -> None:
        # The second is as root of a sandbox would try it.
        for command in ("touch /usr/x", "mount -o remount,rw,bind /usr && touch /usr/x", "touch /opt/x"):
            assert (await sandbox.run(["bash", "-c", command])).code != 0, command
        assert not Path("/usr/x").exists()
        assert await said(sandbox, "cat /etc/shadow") == ""
        assert await said(sandbox, f"ls {Path(__file__).parent}") == ""
        assert await said(sandbox, "echo 1 > /proc/sys/vm/drop_caches && echo written") == ""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            assert await said(sandbox, f"(echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached") == ""

    in_one(body)


def test_secrets_of_this_process_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret")

    async def body(sandbox: BubblewrapSandbox) -> None:
        assert "a-secret" not in await said(sandbox, "env; cat /proc/1/environ /proc/2/environ")

    in_one(body)


def test_a_command_that_takes_too_long_is_killed() -> None:
    async def body(sandbox: BubblewrapSandbox) -> None:
        with pytest.raises(CommandTimeout):
            await sandbox.run(["sleep", "54321"], timeout=0.5)
        assert await said(sandbox, "pgrep -f 'sleep 5432[1]' | wc -l") == "0"

    in_one(body)


def test_a_working_directory_that_is_a_link_leads_nowhere_outside() -> None:
    async def body(sandbox: BubblewrapSandbox) -> None:
        await said(sandbox, "mkdir /etc/own; ln -s /etc/own /root/link")
        ended = await sandbox.run(["pwd", "-P"], cwd="/root/link")
        assert ended.stdout.decode().strip() == "/etc/own"

    in_one(body)


def test_after_its_end_nothing_runs() -> None:
    async def whole() -> None:
        sandbox = BubblewrapSandbox()
        await sandbox.start()
        await sandbox.stop()
        await sandbox.stop()
        with pytest.raises(SetupError, match="has ended"):
            await sandbox.run(["true"])

    asyncio.run(whole())


@pytest.mark.skipif(os.geteuid() != 0, reason="other users than root are there when root makes the sandbox")
def test_other_users() -> None:
    async def body(sandbox: BubblewrapSandbox) -> None:
        ended = await sandbox.run(["id", "-un"], user="nobody")
        assert ended.stdout.decode().strip() == "nobody"

    in_one(body)
