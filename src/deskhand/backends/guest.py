"""Any place that can run a command: the hand is sent there once, as one file, and run by the ``python3`` it finds."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deskhand.backends.answers import outcome_of, raise_error
from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.backends.transports import Transport
from deskhand.errors import BackendError, DisplayLost, SetupError
from deskhand.hand import build

#: Seconds the guest may take to take the hand in, and beyond what a batch itself may last.
PATIENCE = 60.0
#: Receives the hand on standard input and unpacks it in a directory that only its user may write to, with its bytecode:
#: most of a start is compiling. For any Python 3, so that one that is too old can say so.
_RECEIVE = """
import compileall, hashlib, io, os, shutil, stat, sys, tempfile, zipfile
if sys.version_info < (3, 9):
    sys.exit("python3 there is %d.%d: the hand needs 3.9 or newer" % sys.version_info[:2])
content = sys.stdin.buffer.read()
digest = hashlib.sha256(content).hexdigest()
if digest != sys.argv[1]:
    sys.exit("the hand arrived damaged: %d bytes" % len(content))
directory = os.path.join(tempfile.gettempdir(), "deskhand-hand-%d" % os.geteuid())
try:
    os.mkdir(directory, 0o700)
except FileExistsError:
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        directory = tempfile.mkdtemp(prefix="deskhand-hand-")
path = os.path.join(directory, digest[:16])
if not os.path.isdir(path):
    unfinished = tempfile.mkdtemp(dir=directory)
    zipfile.ZipFile(io.BytesIO(content)).extractall(unfinished)
    compileall.compile_dir(unfinished, quiet=2)
    try:
        os.rename(unfinished, path)
    except OSError:
        shutil.rmtree(unfinished)
print(path)
"""


class Finished(NamedTuple):
    """How a command in the guest ended."""

    code: int
    stdout: bytes
    stderr: bytes


#: Runs a command in the guest with that standard input: ``await run(argv, stdin)``.
Run = Callable[[Sequence[str], bytes], Awaitable[Finished]]


class Guest(Backend):
    """The display ``display`` of a guest, reached by ``way``: a ``Transport``, or a function that runs a command there.

    Every batch is one command there, and the picture comes back with its answer. Nothing is ever sent twice: when an
    answer does not arrive, the error says that it is unknown what happened.

    Args:
        way: How to run a command in the guest.
        display: The display's name over there.
        xauthority: The cookie file over there; None: what the hand finds by itself.
        python: The Python 3.9 or newer to run the hand with.
    """

    def __init__(
        self, way: Transport | Run, display: str = ":0", xauthority: str | None = None, python: str = "python3"
    ) -> None:
        self._run: Run = _runner(way) if isinstance(way, Transport) else way
        self._display = display
        self._xauthority = xauthority
        self._python = python
        self._session = f"guest-{uuid.uuid4().hex[:12]}"
        self._path: str | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    async def info(self) -> dict[str, Any]:
        return (await self._ask({"request": "info"}))[0]

    async def act(self, batch: Envelope) -> Outcome:
        return outcome_of(*await self._ask(dict(batch)))

    async def apps(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = (await self._ask({"request": "apps"}))[0]["apps"]
        return found

    async def windows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self._ask({"request": "windows"}))[0]["windows"]
        return found

    async def aclose(self) -> None:
        if self._closed:
            return
        if self._path is not None:
            with contextlib.suppress(SetupError, BackendError):
                await self._ask({"request": "release"})
        self._closed = True

    async def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes | None]:
        """One request, one command in the guest.

        Raises:
            DeskhandError: What the hand there raised; or that it could not be run, or gave no answer.
        """
        if self._closed:
            raise RuntimeError("this backend is closed")
        async with self._turn:
            path = await self._installed()
            argv = [self._python, path, "--raw", "--display", self._display, "--session", self._session]
            if self._xauthority is not None:
                argv += ["--xauthority", self._xauthority]
            try:
                finished = await self._run(argv, json.dumps(request).encode())
            except OSError as error:
                raise DisplayLost(f"the command in the guest broke off ({error}): nobody knows what happened") from None
        answer, picture = _parse(finished)
        raise_error(answer)
        return answer, picture

    async def _installed(self) -> str:
        """The hand's path in the guest; sends it there first when it is not there yet."""
        if self._path is None:
            with tempfile.TemporaryDirectory(prefix="deskhand-") as directory:
                content = Path(build(str(Path(directory) / "hand.pyz"))).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            try:
                finished = await self._run([self._python, "-c", _RECEIVE, digest], content)
            except OSError as error:
                raise SetupError(f"no command can be run in the guest: {error}") from None
            path = finished.stdout.decode("utf-8", "replace").strip()
            if finished.code != 0 or not path:
                raise SetupError(f"the hand can not be put into the guest: {_last_words(finished)}")
            self._path = path
        return self._path


def _runner(transport: Transport) -> Run:
    async def run(argv: Sequence[str], stdin: bytes) -> Finished:
        process = await asyncio.create_subprocess_exec(
            *transport.command(argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            stdout, stderr = await process.communicate(stdin)
        finally:
            if process.returncode is None:  # cancelled: the hand over there sees that nobody reads its answer
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
        return Finished(process.returncode or 0, stdout, stderr)

    return run


def _parse(finished: Finished) -> tuple[dict[str, Any], bytes | None]:
    """The answer's line, and the picture's bytes after it.

    Raises:
        DisplayLost: There is no whole answer, so nobody knows what happened.
    """
    line, newline, rest = finished.stdout.partition(b"\n")
    try:
        answer = json.loads(line) if newline else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise DisplayLost(
            f"the hand in the guest gave no answer ({_last_words(finished)}): it is unknown what happened; look before"
            " anything is sent again"
        )
    size = (answer.get("picture") or {}).get("bytes")
    if size is None:
        return answer, None
    if len(rest) < size:
        raise DisplayLost(f"the picture arrived cut off ({len(rest)} of {size} bytes): take a new one", answer=answer)
    return answer, rest[:size]


def _last_words(finished: Finished) -> str:
    lines = finished.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit status {finished.code}"
