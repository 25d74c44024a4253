"""Commands in a guest: run to their end, or a hand that answers requests on its standard input while that is open."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from deskhand.backends.places import Place, Process
from deskhand.errors import DisplayLost

#: Seconds a hand is given to see that nobody waits for its answer, to release what it held and to end.
PARTING = 5.0
#: Lines before an answer that are not read as one: a login shell or the image's own ``python3`` may greet first.
_GREETING = 100
#: Bytes of a picture at most; the hand's own limit is far below.
_LARGEST = 64 << 20


class Finished(NamedTuple):
    """How a command in the guest ended."""

    code: int
    stdout: bytes
    stderr: bytes

    def last_words(self) -> str:
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self.code}"


def parse(finished: Finished) -> tuple[dict[str, Any], bytes | None]:
    """The answer's line, and the picture's bytes after it.

    Raises:
        DisplayLost: There is no whole answer, so nobody knows what happened.
    """
    rest, answer = finished.stdout, None
    for _ in range(_GREETING):
        line, newline, rest = rest.partition(b"\n")
        if _may_answer(line) or not newline:
            answer = _answer_in(line + newline)
            break
    if answer is None:
        raise no_answer(finished.last_words())
    size = picture_size(answer)
    if len(rest) < size:
        raise cut_off(len(rest), answer)
    return answer, rest[:size] if size else None


def no_answer(why: str) -> DisplayLost:
    return DisplayLost(
        f"the hand in the guest gave no answer ({why}): it is unknown what happened; look before anything is sent again"
    )


def cut_off(came: int, answer: dict[str, Any]) -> DisplayLost:
    """The batch has been answered, and only its picture is missing."""
    size = picture_size(answer)
    del answer["picture"]
    error = DisplayLost(f"the picture arrived cut off ({came} of {size} bytes): take a new one", answer=answer)
    error.sent = str(answer.get("sent", "unknown"))
    return error


def picture_size(answer: dict[str, Any]) -> int:
    """Bytes of the picture that follows the answer's line."""
    return int((answer.get("picture") or {}).get("bytes", 0))


def _may_answer(line: bytes) -> bool:
    return line.startswith(b"{")


def _answer_in(line: bytes) -> dict[str, Any] | None:
    """The answer in a line; None when it is not whole, or not one that a hand gives."""
    try:
        answer = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("picture", {}), dict):
        return None
    size = answer.get("picture", {}).get("bytes", 0)
    whole = isinstance(size, int) and not isinstance(size, bool)
    return answer if whole and 0 <= size <= _LARGEST else None


async def run_to_its_end(place: Place, argv: Sequence[str], stdin: bytes) -> Finished:
    """Run a command in the guest that gets ``stdin``; it is ended when the call is cancelled.

    Raises:
        OSError, DeskhandError: As ``Place.start``.
    """
    process = await place.start(argv)
    try:
        stdout, stderr = await process.communicate(stdin)
    finally:
        await _end(process)
    return Finished(process.returncode or 0, stdout, stderr)


class RunningHand:
    """A hand in the guest with ``--stream``, and the ends of its three streams."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._said = bytearray()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, place: Place, argv: Sequence[str]) -> RunningHand:
        """Raises OSError, DeskhandError: as ``Place.start``."""
        return cls(await place.start([*argv, *place.hand_options], stream=True))

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes | None]:
        """One request and its answer.

        Raises:
            DisplayLost: No whole answer came.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(ConnectionError):  # then no answer comes, and its last words say why
            stdin.write(json.dumps(request).encode() + b"\n")
            await stdin.drain()
        try:
            for _ in range(_GREETING):
                line = await stdout.readline()
                if _may_answer(line) or not line:
                    break
            answer = _answer_in(line)
        except ValueError:
            answer = None
        if answer is None:
            await self.end()
            raise no_answer(Finished(self._process.returncode or 0, b"", bytes(self._said)).last_words())
        encoded = (answer.get("picture") or {}).pop("base64", None)
        if encoded is not None:
            try:
                return answer, base64.b64decode(encoded, validate=True)
            except (TypeError, ValueError):
                await self.end()
                raise no_answer("its picture can not be read") from None
        size = picture_size(answer)
        if not size:
            return answer, None
        try:
            return answer, await stdout.readexactly(size)
        except asyncio.IncompleteReadError as error:
            await self.end()
            raise cut_off(len(error.partial), answer) from None

    def close_input(self) -> None:
        """Nothing more is asked, and nobody waits for what was."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def end(self) -> None:
        """Close its standard input, which it takes for the end, and wait until it is gone; else it is made to go."""
        process = self._process
        assert process.stdout is not None
        self.close_input()
        try:
            async with asyncio.timeout(PARTING):
                while await process.stdout.read(1 << 16):
                    pass  # what it was about to say would keep it from ending
                await process.wait()
        except TimeoutError:
            pass
        finally:
            await _end(process)
        # What it started there may keep its error output open.
        self._listening.cancel()

    async def _listen(self) -> None:
        """Keep the end of what it says on its error output, and never let it wait for somebody to read."""
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(1 << 12):
            self._said = (self._said + data)[-4096:]


async def _end(process: Process) -> None:
    for signal in (process.terminate, process.kill):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            signal()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PARTING):
                await process.wait()
