"""A pool for every process of this user on this machine: ``python -m deskhand.fleet.service NAME OPTIONS PAGE``.

PAGE is the address of its status page and the names that is known under, or null for none. It owns the desktops, and
listens on a unix socket that this user alone may use; see ``socket`` for what is said there. On standard output it
tells how far it is, one JSON object a line (``ready``, ``of``), and then ``up`` or ``failed``.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import stat
import sys
from functools import partial
from types import TracebackType
from typing import Any

from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet.local import LocalPool
from deskhand.fleet.options import Options
from deskhand.fleet.page.status import PageSettings, StatusPage, missing
from deskhand.fleet.socket import LONGEST_LINE, encoded, socket_of
from deskhand.fleet.ways import answer
from deskhand.fleet.ways import told as refusal
from deskhand.hand.state import make_own_directory


class Service:
    """Serves ``pool``, which it enters and closes, at the socket ``path``; ``page`` it opens and closes too.

    ``no_page`` is what is told of it when there is none.
    """

    def __init__(
        self, pool: LocalPool, path: str, page: StatusPage | None = None, no_page: dict[str, Any] | None = None
    ) -> None:
        self._pool = pool
        self._page = page
        self._no_page = no_page
        self._path = path
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[Any]] = set()
        #: Set when a client has asked for the end.
        self.asked_to_end = asyncio.Event()

    async def __aenter__(self) -> Service:
        """Raises SetupError: no desktop came up, or the socket can not be made, or the page's address not be had."""
        if self._page is not None:
            self._page.open()
        await self._pool.__aenter__()
        try:
            before = os.umask(0o177)
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path)
                self._server = await asyncio.start_unix_server(self._serve, self._path, limit=LONGEST_LINE)
            finally:
                os.umask(before)
        except OSError as error:
            await self._pool.aclose()
            raise SetupError(f"the socket {self._path} can not be made: {error.strerror}") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            server.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
        for client in self._clients:
            client.cancel()
        if self._clients:
            await asyncio.wait(self._clients)
        if self._page is not None:
            await self._page.aclose(for_good=True)
        await self._pool.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        running: dict[int, asyncio.Task[None]] = {}
        try:
            while line := await reader.readline():
                asked = json.loads(line)
                if "cancel" in asked:
                    if (one := running.get(asked["cancel"])) is not None:
                        one.cancel()
                    continue
                one = asyncio.create_task(self._answer(asked, writer))
                running[asked["id"]] = one
                one.add_done_callback(partial(_forget, running, asked["id"]))
        except (OSError, ValueError, KeyError, TypeError, asyncio.CancelledError):
            pass
        finally:
            # Nobody waits for it any more: batches stop, and what they held is released. Leases end with their time.
            for one in list(running.values()):
                one.cancel()
            if running:
                await asyncio.wait(list(running.values()))
            writer.close()
            self._clients.discard(task)

    async def _answer(self, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        told: dict[str, Any] = {}
        content: bytes | None = None
        try:
            if asked["method"] == "end":
                self.asked_to_end.set()
                told = {"value": os.getpid()}
            elif asked["method"] == "page":
                told = {"value": await self._page.facts() if self._page is not None else self._no_page}
            else:
                told, content = await answer(self._pool.host, asked["method"], asked["arguments"])
        except asyncio.CancelledError:
            told = {"cancelled": True}
            raise
        except DeskhandError as error:
            told = refusal(error)
        finally:
            whole = encoded({"id": asked["id"], "answer": told, "bytes": None if content is None else len(content)})
            with contextlib.suppress(OSError):
                writer.write(whole + (content or b""))
                await writer.drain()


def _forget(running: dict[int, asyncio.Task[None]], number: int, _: asyncio.Task[None]) -> None:
    running.pop(number, None)


async def _run(name: str, options: Options, settings: PageSettings | None) -> int:
    def say(**facts: Any) -> None:
        with contextlib.suppress(OSError):
            print(json.dumps(facts), flush=True)

    make_own_directory("fleet")
    path = socket_of(name)
    # Held for as long as the fleet lives: two of one name would take each other's socket.
    lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(failed=f"there is a fleet {name!r} already: end it with: deskhand fleet down --name {name}")
        return 1
    if stat.S_ISREG(os.fstat(2).st_mode):
        os.ftruncate(2, 0)  # the log of the last one; before the lock it was still another's
    ending = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    pool = LocalPool(options, name=name, progress=lambda ready, of: say(ready=ready, of=of))
    page = None
    if settings is not None and missing() is None:
        page = StatusPage(pool.detail, name, settings, change=lambda: pool.host.change())
    service = Service(pool, path, page, {"missing": missing()} if settings is not None else None)
    entering = asyncio.ensure_future(service.__aenter__())
    asked = asyncio.ensure_future(ending.wait())
    try:
        await asyncio.wait({entering, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not entering.done():
            entering.cancel()
            await asyncio.wait({entering})
            return 1
        await entering
        say(up=path, pid=os.getpid())
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, sys.stdout.fileno())  # whoever started us may be gone by now
        os.close(quiet)
        told = asyncio.ensure_future(service.asked_to_end.wait())
        await asyncio.wait({asked, told}, return_when=asyncio.FIRST_COMPLETED)
        return 0
    except DeskhandError as error:
        say(failed=str(error))
        return 1
    finally:
        await service.aclose()
        os.close(lock)


def main() -> int:
    values = json.loads(sys.argv[2])
    values["screen"] = tuple(values["screen"])
    page = json.loads(sys.argv[3])
    settings = PageSettings(page["listen"], tuple(page["hosts"])) if page is not None else None
    return asyncio.run(_run(sys.argv[1], Options(**values), settings))


if __name__ == "__main__":
    sys.exit(main())
