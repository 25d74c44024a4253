"""The pool that another process of this machine has: asked over a unix socket.

A request is a line of JSON, ``{"id", "method", "arguments"}`` or ``{"cancel": id}``. An answer is a line of JSON,
``{"id", "answer", "bytes"}``, and so many bytes of a picture after it. Requests do not wait for each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
from typing import Any

from deskhand.errors import DisplayLost, NoDisplay, SetupError
from deskhand.fleet.pool import Lease
from deskhand.fleet.ways import Answer, HostPool, Way, read
from deskhand.hand.state import own_directory
from deskhand.turns import longest

#: Bytes of a line at most: a clipboard of a million characters, each escaped, fits.
LONGEST_LINE = 64 << 20
#: Seconds beyond what is asked for itself.
PATIENCE = 60.0


def socket_of(name: str) -> str:
    """Where this user's fleet ``name`` listens.

    Raises:
        SetupError: It is no name.
    """
    if not name.isascii() or not name.replace("-", "").isalnum() or len(name) > 40:
        raise SetupError(f"{name[:60]!r} is no name of a fleet: use up to 40 letters, digits and hyphens")
    return os.path.join(own_directory(), "fleet", f"{name}.sock")


class SocketPool(HostPool):
    """The fleet that ``deskhand fleet up`` started on this machine, for this user's processes.

    Args:
        path: Its socket, or its name; ``default`` is that of a fleet that was started without one.
    """

    def __init__(self, path: str = "default") -> None:
        self._path = path if "/" in path else socket_of(path)
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    def way(self, lease: Lease | None) -> Way:
        return self.ask

    async def ask(self, method: str, **arguments: Any) -> tuple[Answer, bytes | None]:
        """See ``Way``."""
        connection = await self._connected()
        seconds = PATIENCE + float(arguments.get("wait", 0.0))
        if method == "act" and isinstance(arguments["batch"], dict):
            seconds += longest(arguments["batch"])
        answer, content = await connection.ask(method, arguments, seconds)
        return read(answer), content

    async def aclose(self) -> None:
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    async def _connected(self) -> _Connection:
        if self._closed:
            raise RuntimeError("this pool is closed")
        async with self._connecting:
            if self._connection is None or self._connection.ended:
                try:
                    streams = await asyncio.open_unix_connection(self._path, limit=LONGEST_LINE)
                except OSError as error:
                    raise NoDisplay(
                        f"no fleet can be reached at {self._path} ({error.strerror}): start one with:"
                        f" deskhand fleet up{_name_option(self._path)}"
                    ) from None
                self._connection = _Connection(*streams)
            return self._connection


class _Connection:
    """One connection to a fleet; when it ends, everything that is asked over it is told so."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[tuple[Answer, bytes | None]]] = {}
        self.ended = False
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def ask(self, method: str, arguments: dict[str, Any], seconds: float) -> tuple[Answer, bytes | None]:
        if self.ended:
            raise _no_answer(method, "its connection has ended")
        number = next(self._ids)
        answered: asyncio.Future[tuple[Answer, bytes | None]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answered
        try:
            self._writer.write(encoded({"id": number, "method": method, "arguments": arguments}))
            async with asyncio.timeout(seconds):
                answer, content = await asyncio.shield(answered)
            if "lost_way" in answer:
                raise _no_answer(method, "its connection has ended")
            return answer, content
        except TimeoutError:
            self._cancel(number)
            raise _no_answer(method, f"none came within {seconds:.0f} s") from None
        except ConnectionError:
            raise _no_answer(method, "its connection has ended") from None
        except asyncio.CancelledError:
            self._cancel(number)
            # A batch that was given up has ended, with what it held released, before its caller goes on.
            with contextlib.suppress(Exception, TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await asyncio.shield(answered)
            raise
        finally:
            self._asked.pop(number, None)

    async def aclose(self) -> None:
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _cancel(self, number: int) -> None:
        with contextlib.suppress(ConnectionError):
            self._writer.write(encoded({"cancel": number}))

    async def _listen(self) -> None:
        try:
            while line := await self._reader.readline():
                told = json.loads(line)
                content = await self._reader.readexactly(told["bytes"]) if told["bytes"] is not None else None
                answered = self._asked.get(told["id"])
                if answered is not None and not answered.done():
                    answered.set_result((told["answer"], content))
        except (OSError, ValueError, KeyError, TypeError, asyncio.IncompleteReadError):
            pass
        finally:
            self.ended = True
            for answered in self._asked.values():
                if not answered.done():
                    answered.set_result(({"lost_way": True}, None))


def _name_option(path: str) -> str:
    """What ``deskhand fleet up`` needs for a fleet to listen at ``path``; the default's needs nothing."""
    name = os.path.basename(path).removesuffix(".sock")
    try:
        return f" --name {name}" if name != "default" and socket_of(name) == path else ""
    except SetupError:
        return ""


def encoded(value: Any) -> bytes:
    """One line of JSON. What the host would refuse must reach it to be refused."""
    return json.dumps(value, default=str).encode() + b"\n"


def _no_answer(method: str, why: str) -> DisplayLost:
    error = DisplayLost(f"the fleet gave no answer ({why}): it is unknown what happened; look before acting again")
    if method != "act":
        error.sent = "none"
    return error
