"""Commands on a leased desktop: what a trial needs besides the screen, run as the desktop's account and beside its
applications, so with its HOME and in its sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deskhand.errors import SetupError
from deskhand.fleet.making import Made

#: Bytes of input, of output and of errors of one command at most: an answer is held in memory several times.
MOST = 16 << 20
#: Seconds that a command gets when nothing else is said.
PATIENCE = 60.0
_PIECE = 1 << 16
#: Seconds for what a killed command has written to be read.
_LAST = 5.0


class Ran(NamedTuple):
    """How a command ended: its exit status (negative: the signal that ended it), and what it has written."""

    code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Command:
    """A command of sh(1), see ``RunsCommands.run``."""

    text: str
    stdin: bytes
    env: Mapping[str, str]
    cwd: str | None
    timeout: float


class RunsCommands(ABC):
    """A desktop on which commands can be run."""

    async def run(
        self,
        command: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = PATIENCE,
    ) -> Ran:
        """Run a command of sh(1), with the desktop's environment and ``env``, in ``cwd`` (None: HOME).

        Raises:
            CommandTimeout: It had not ended after ``timeout`` seconds, and was killed.
            LeaseLost: The lease is over; when it ends while the command runs, that ends with the desktop.
            SetupError: Its input or its output is too long, or it can not be started.
            Unsupported: The pool can run nothing on its desktops.
        """
        return await self.run_command(Command(command, stdin, env or {}, cwd, timeout))

    @abstractmethod
    async def run_command(self, command: Command) -> Ran:
        """See ``run``."""


class CommandTimeout(SetupError):
    """A command had not ended in time, and was killed."""


def _check(env: Mapping[str, str]) -> None:
    wrong = next((name for name in env if not name or "=" in name or name.startswith("-")), None)
    if wrong is not None:
        raise SetupError(f"{wrong[:60]!r} is no name of an environment variable")


async def run_on(made: Made, command: Command) -> Ran:
    """Run a command on a desktop of this machine; see ``RunsCommands``."""
    env = command.env
    _check(env)
    account = made.account if made.account is not None and made.account.switch and not made.enter else None
    begin = ["sh", "-c", 'cd -- "$0" && exec sh -c "$1"', command.cwd or made.env["HOME"], command.text]
    if made.enter:
        # What leads into the sandbox may be run by root, and must not get what a client gives.
        begin = [*(f"{name}={value}" for name, value in env.items()), *begin]
    given = made.env if made.enter else {**made.env, **env}
    try:
        process = await asyncio.create_subprocess_exec(
            *made.enter,
            *begin,
            env=given,
            cwd="/",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[account.gid] if account else None,
        )
    except (OSError, ValueError) as error:  # too long for an argument, or with a null in it
        raise SetupError(f"the command can not be started on the desktop: {error}") from None
    return await ended(process, command.stdin, command.timeout)


async def run_by(shell: Sequence[str], command: Command) -> Ran:
    """Run a command where ``shell`` leads, such as ``docker exec -i NAME`` or ``ssh HOST``; see ``RunsCommands``.

    The words are quoted once more where ``shell`` begins with ``ssh``, which makes one line of them.
    """
    _check(command.env)
    given = [f"{name}={value}" for name, value in command.env.items()]
    where = ["cd", "--", command.cwd] if command.cwd else ["cd"]
    words = ["env", *given, "sh", "-c", f"{shlex.join(where)} && exec sh -c {shlex.quote(command.text)}"]
    if os.path.basename(shell[0]) == "ssh":
        words = [shlex.join(words)]
    try:
        process = await asyncio.create_subprocess_exec(
            *shell,
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SetupError(f"{shell[0]} can not be started, which leads to the desktop: {error}") from None
    return await ended(process, command.stdin, command.timeout)


async def ended(process: asyncio.subprocess.Process, stdin: bytes, timeout: float) -> Ran:
    """Give it its input and read what it writes until it has ended, or kill it with its group."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    reading = [asyncio.ensure_future(_bounded(stream)) for stream in (process.stdout, process.stderr)]
    try:
        async with asyncio.timeout(timeout):
            await _give(process.stdin, stdin)
            out, errors = await asyncio.gather(*reading)
            await process.wait()
    except TimeoutError:
        raise CommandTimeout(f"the command had not ended after {timeout:g} s, and was killed") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST):
                    await process.wait()
        for one in reading:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
    return Ran(process.returncode or 0, out, errors)


async def _give(stream: asyncio.StreamWriter, content: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # it does not want all of it
        for at in range(0, len(content), _PIECE):
            stream.write(content[at : at + _PIECE])
            await stream.drain()
    stream.close()


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    pieces, length = [], 0
    while piece := await stream.read(_PIECE):
        length += len(piece)
        if length > MOST:
            raise SetupError(f"the command writes more than {MOST >> 20} MiB: have it write to a file")
        pieces.append(piece)
    return b"".join(pieces)
