"""A file's way into a sandbox whose upload does not work."""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harbor.fakes import FakeSandbox, _result
from tests.harbor.trials import needs_sandbox

Make = Callable[..., Any]
OURS = "deskhand.harbor:ExistingDesktop"


class Here:
    """A sandbox that is this machine, and has no upload."""

    def __init__(self) -> None:
        self.environment = self
        self.uploads = True
        self.why: list[str] = []
        self.commands: list[str] = []

    async def upload_file(self, source_path: str, target_path: str) -> None:
        raise NotImplementedError("this provider has no files")

    def no_uploads(self, why: str) -> None:
        self.uploads = False
        self.why.append(why)

    async def command(self, command: str, *, timeout_sec: int, label: str) -> Any:
        self.commands.append(command)
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, errors = await process.communicate()
        return _result(process.returncode or 0, out.decode(), errors.decode())


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_pieces_arrive_whole(tmp_path: Path, size: int) -> None:
    from deskhand.harbor.sending import send_file

    content = random.Random(size).randbytes(size)  # which does not compress: several pieces
    sandbox, target = Here(), tmp_path / "a name with 'quotes'"

    async def twice() -> None:
        await send_file(sandbox, b"older", str(target))  # type: ignore[arg-type]
        await send_file(sandbox, content, str(target))  # type: ignore[arg-type]

    asyncio.run(twice())
    assert target.read_bytes() == content
    assert os.listdir(tmp_path) == [target.name], "nothing else is left"
    assert sandbox.why == ["NotImplementedError: this provider has no files"], "it is tried once"
    assert len(sandbox.commands) == 2 + 1 + max(1, -(-size // (72 << 10)))
    assert max(map(len, sandbox.commands)) < 128 << 10


def test_what_can_not_be_written_is_told(tmp_path: Path) -> None:
    from harbor.agents.computer_1.runtime import RuntimeRequestError

    from deskhand.harbor.sending import send_file

    with pytest.raises(RuntimeRequestError, match=r"can not be written there: .*No such file or directory"):
        asyncio.run(send_file(Here(), b"x", str(tmp_path / "missing" / "file")))  # type: ignore[arg-type]


def broken(sandbox: Any) -> Any:
    async def upload_file(source_path: Path | str, target_path: str) -> None:
        raise RuntimeError("the transfer service answers 503")

    sandbox.upload_file = upload_file
    return sandbox


def test_a_lost_sandbox_is_told_apart(agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    from deskhand.harbor import session
    from deskhand.harbor.errors import SandboxLost

    monkeypatch.setattr(session, "_BETWEEN", 0.0)
    broken(sandbox).instead.append(("printf %s|^echo", ConnectionError("no such sandbox")))
    with pytest.raises(SandboxLost):
        asyncio.run(agent(OURS, driver="hand").setup(sandbox))


def test_no_space_is_a_clear_error(agent: Make, sandbox: FakeSandbox) -> None:
    from deskhand.harbor.errors import NotReady

    broken(sandbox).instead.append(("printf %s", (1, "", "bash: line 1: printf: write error: No space left on device")))
    with pytest.raises(NotReady, match=r"the hand can not be sent into the sandbox: .*No space left on device"):
        asyncio.run(agent(OURS, driver="hand").setup(sandbox))


def says_nothing(sandbox: Any) -> Any:
    """Its uploads do not arrive, and nobody is told."""

    async def upload_file(source_path: Path | str, target_path: str) -> None:
        pass

    sandbox.upload_file = upload_file
    return sandbox


def cuts(sandbox: Any) -> Any:
    """Its uploads arrive in part."""
    upload = sandbox.upload_file

    async def upload_file(source_path: Path | str, target_path: str) -> None:
        with tempfile.NamedTemporaryFile() as part:
            part.write(Path(source_path).read_bytes()[:1000])
            part.flush()
            await upload(part.name, target_path)

    sandbox.upload_file = upload_file
    return sandbox


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (broken, "RuntimeError: the transfer service answers 503"),
        (says_nothing, "the hand did not arrive whole"),
        (cuts, "the hand did not arrive whole"),
    ],
)
def test_a_whole_run_without_upload(
    tmp_path: Path, agent: Make, caplog: pytest.LogCaptureFixture, fault: Make, why: str
) -> None:
    """The hand through exec, and a text, in a real sandbox."""
    from tests.harbor.agents import action
    from tests.harbor.real import Counted, on_real, real_sandbox

    text = "".join(random.Random(1).choices("abcdefghij", k=2000))

    async def body() -> None:
        async with real_sandbox(tmp_path) as environment:
            counted = Counted(fault(environment))
            made = agent(OURS, driver="hand")
            await made.setup(environment)
            sent = sum("printf %s" in command for command in counted.commands)
            assert sent == 3, "pieces of the hand"
            await made._session.execute(action(type="click", x=400, y=300))
            await made._session.execute(action(type="type", text=text))
            await made._session.execute(action(type="keypress", keys=["Return"]))
            await made._session.execute(action(type="keypress", keys=["ctrl", "d"]))
            typed = await environment.exec("cat /root/typed.txt; ls /tmp")
            assert text in typed.stdout
            assert ".pieces" not in typed.stdout

    on_real(body)
    assert f"upload_file does not work in this sandbox ({why})" in caplog.text
