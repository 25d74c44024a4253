"""The fleet's side of its status page: serves it from a process of its own, which can not touch the fleet."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from deskhand.desktop.address import tcp_socket
from deskhand.errors import DeskhandError, SetupError
from deskhand.fleet.page.token import Token

DEFAULT_LISTEN = "127.0.0.1:0"
#: Seconds between two words to the server: at least, so that many changes at once are told once; and at most.
_LEAST, _MOST = 0.5, 5.0
#: Seconds before a server that ended is started again: at first, and at most; and that one gets to end.
_FIRST_PAUSE, _LONGEST_PAUSE, _ENDING = 0.5, 15.0, 5.0
#: Seconds that a ticket may take: the server may just be starting.
_TICKET = 20.0

Look = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class PageSettings:
    """Where the page is: ``listen`` is HOST:PORT (port 0: any); ``hosts`` are names it is known under besides."""

    listen: str = DEFAULT_LISTEN
    hosts: tuple[str, ...] = ()


def missing() -> str | None:
    """Why there can be no page here; None when there can."""
    if all(find_spec(name) is not None for name in ("uvicorn", "starlette", "fastapi")):
        return None
    return "The status page is not available. Install it with: pip install 'deskhand[computerd]'"


class StatusPage:
    """The status page of the fleet ``name``, and its metrics, between ``async with`` and its end.

    ::

        async with LocalPool(options) as pool, StatusPage(pool.detail) as page:
            print(await page.ticket())

    Args:
        look: Tells how the fleet is, as ``Pool.detail`` does.
        name: Names the file that holds the token (see ``token``), which is made when there is none.
        settings: Where it is.
        change: Returns when something has changed. None: ``look`` is asked once a second.
        least: Seconds between two looks at least; may grow with the fleet.
    """

    def __init__(
        self,
        look: Look,
        name: str = "local",
        settings: PageSettings | None = None,
        *,
        change: Callable[[], Awaitable[object]] | None = None,
        least: Callable[[], float] = lambda: _LEAST,
    ) -> None:
        self._look = look
        self._name = name
        self._settings = settings or PageSettings()
        self._change = change
        self._least = least
        self._socket: socket.socket | None = None
        self._token: Token | None = None
        self._serving: asyncio.Task[None] | None = None
        self.token_file = ""

    async def __aenter__(self) -> Self:
        """Raises SetupError: the address can not be listened on, or what it needs is not installed."""
        self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def open(self) -> None:
        """Listen, and begin to serve; see ``__aenter__``. In the event loop."""
        why = missing()
        if why is not None:
            raise SetupError(why)
        listen = self._settings.listen
        try:
            self._socket = tcp_socket(listen)
        except (OSError, ValueError, OverflowError) as error:
            said = getattr(error, "strerror", None) or error
            raise SetupError(f"{listen} can not be listened on ({said}): give --page HOST:PORT") from None
        try:
            self._token = Token(self._name)
        except BaseException:
            self._socket.close()
            self._socket = None
            raise
        self.token_file = self._token.path
        self._serving = asyncio.get_running_loop().create_task(self._serve())

    async def aclose(self, *, for_good: bool = False) -> None:
        """End it. The token's file stays, for the next page of that name, unless this was ``for_good``."""
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        token, self._token = self._token, None
        if token is not None:
            (token.remove if for_good else token.close)()

    @property
    def url(self) -> str:
        """Where it is; what can be opened in a browser is ``ticket``."""
        if self._socket is None:
            raise RuntimeError("this page is not open: use it with async with")
        host, port = self._socket.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def ticket(self) -> str:
        """An address for a browser, good once and for a minute.

        Raises:
            SetupError: The server gives none.
        """
        import httpx2

        url = self.url
        assert self._token is not None
        headers = {"Authorization": f"Bearer {self._token.text}"}
        try:
            async with httpx2.AsyncClient(base_url=url, timeout=_TICKET, trust_env=False) as client:
                answer = await client.post("/fleet/tickets", headers=headers)
                return url + str(answer.raise_for_status().json()["url"])
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            raise SetupError(f"the status page at {url} gives no ticket ({error}): see the fleet's log") from None

    async def facts(self) -> dict[str, Any]:
        """What a client of the fleet is told of the page: ``url``, ``open``, ``metrics``, ``token_file``."""
        return {
            "url": f"{self.url}/fleet",
            "open": await self.ticket(),
            "metrics": f"{self.url}/metrics",
            "token_file": self.token_file,
        }

    async def _serve(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            began = time.monotonic()
            try:
                process = await self._start()
            except OSError:  # no process can be started just now
                await asyncio.sleep(pause)
                continue
            assert process.stdin is not None
            work = [asyncio.create_task(self._tell(process.stdin)), asyncio.create_task(process.wait())]
            try:
                await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in work:
                    task.cancel()
                await asyncio.gather(*work, return_exceptions=True)
                await _end(process)
            if time.monotonic() - began > _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    async def _start(self) -> asyncio.subprocess.Process:
        assert self._socket is not None
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "deskhand.fleet.page",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            pass_fds=[self._socket.fileno()],
            env={**os.environ, "PYTHONPATH": package},
            cwd="/",
            start_new_session=True,
        )

    async def _tell(self, pipe: asyncio.StreamWriter) -> None:
        """Tell the server how the fleet is, until it has ended, or the fleet can not be asked any more."""
        from deskhand.computerd.auth import digest

        assert self._socket is not None
        assert self._token is not None
        health: dict[str, Any] = {"ok": False, "size": 0, "free": 0, "leased": 0, "waiting": 0, "hosts": []}
        first = {"descriptor": self._socket.fileno(), "token": digest(self._token.text).hex()}
        with contextlib.suppress(ConnectionError):
            await _say(pipe, {**first, "hosts": self._settings.hosts})
            while True:
                try:
                    health = await self._look()
                except DeskhandError as error:  # the last that was told, and that it is no longer known to be so
                    health = {**health, "ok": False, "trouble": str(error)}
                await _say(pipe, {"health": {"name": self._name, **health}})
                await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        if self._change is None:
            await asyncio.sleep(1.0)  # a pool elsewhere tells nobody by itself
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_MOST):
                await self._change()
        await asyncio.sleep(self._least())


async def _say(pipe: asyncio.StreamWriter, what: dict[str, Any]) -> None:
    pipe.write(json.dumps(what, separators=(",", ":"), default=str).encode() + b"\n")
    await pipe.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Its input ends, and so does it."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_ENDING):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
