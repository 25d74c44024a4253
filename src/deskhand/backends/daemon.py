"""A desktop that computerd serves over HTTP, on this machine or another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import stat
import time
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from deskhand.backends.answers import answer_in_problem, outcome_of, raise_error
from deskhand.backends.base import Backend, Envelope, Outcome
from deskhand.backends.lease import DesktopLease
from deskhand.errors import BackendError, DeskhandError, DesktopInUse, DisplayLost, NoDisplay, SetupError
from deskhand.turns import longest

#: Seconds beyond what a request itself may last: connecting, and the picture's way back.
PATIENCE, CONNECTING = 60.0, 10.0
#: Bytes of an answer at most: a clipboard of a million characters, each escaped, fits, and a picture.
_LONGEST_ANSWER = 64 << 20
#: Seconds to tell what the last call came to, when the backend is closed.
_PARTING = 2.0
#: What the daemon says of the request itself, which had no effect then.
_OF_THE_REQUEST = ("unauthorized", "foreign", "not_found", "method", "slow", "too_large", "not_json", "malformed")


class Daemon(Backend):
    """The desktop that computerd serves at ``url``: ``http://127.0.0.1:8765``, or ``unix:/run/computerd.sock``.

    Nothing is ever sent twice: when an answer does not arrive, the error says that it is unknown what happened. A
    cancelled call ends its request, on which the daemon stops the batch and releases what it held.

    Args:
        url: Where computerd listens; ``https`` where something before it speaks TLS.
        token: Its bearer token.
        token_file: A file that holds it instead; read at the first call.
        session: Names the session; what it holds when it is closed then stays held for a minute, for the next one
            with that name.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        session: str | None = None,
    ) -> None:
        if (token is None) == (token_file is None):
            raise ValueError("the token is needed from one place: token or token_file")
        self._url = url.rstrip("/")
        self._token = token
        self._token_file = token_file
        if session is not None and not re.fullmatch("[!-~]{1,100}", session):
            raise ValueError("a session's name has 1 to 100 printable ASCII characters without spaces")
        self._session = session or f"daemon-{uuid.uuid4().hex[:16]}"
        self._keeps = session is not None
        self._client: httpx2.AsyncClient | None = None
        #: The token of the lease that was taken last; a session takes its turn before each batch.
        self.lease_token: str | None = None
        #: Until when it was taken, CLOCK_MONOTONIC.
        self.lease_until = 0.0
        self._telling: asyncio.Task[None] | None = None
        self._untold: dict[str, Any] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._acted = False
        self._closed = False

    async def info(self) -> dict[str, Any]:
        return await self.get("/info")

    async def act(self, batch: Envelope) -> Outcome:
        async with self._turn:  # connections overtake each other
            self._acted = True
            headers = {"Idempotency-Key": uuid.uuid4().hex}
            if self.lease_token is not None:
                headers["Deskhand-Lease"] = self.lease_token
            try:
                response = await self.request(
                    "POST", "/act", dict(batch), headers, PATIENCE + longest(batch), acting=True
                )
            except asyncio.CancelledError:
                self._keep_lease()
                raise
        return outcome_of(*_parts(response))

    async def apps(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = await self._list("/apps", "apps")
        return found

    async def windows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self._list("/windows", "windows")
        return found

    async def _list(self, path: str, name: str) -> Any:
        response = await self.request("GET", path)
        found = _parts(response)[0].get(name)
        if not isinstance(found, list):
            raise _not_ours(response)
        return found

    async def get(self, path: str) -> dict[str, Any]:
        """The JSON at ``path``.

        Raises:
            DeskhandError: What the desktop's own error is; NoDisplay when computerd can not be reached.
        """
        answer, _ = _parts(await self.request("GET", path))
        return answer

    async def screenshot(self, **wish: Any) -> tuple[dict[str, Any], bytes]:
        """A picture of now, of ``format``, ``max_edge`` and ``region`` (pixels of the screen); its facts and its bytes.

        It waits for no batch.

        Raises:
            BatchRefused: There is no such picture.
            NoDisplay, DisplayLost, CaptureFailed: It can not be had.
        """
        if wish.get("region") is not None:
            wish["region"] = ",".join(str(corner) for corner in wish["region"])
        query = {name: str(value) for name, value in wish.items() if value is not None}
        response = await self.request("GET", "/screenshot", query=query)
        try:
            return json.loads(response.headers["deskhand-picture"]), response.content
        except (KeyError, ValueError):
            raise _not_ours(response) from None

    def lease(self, holder: str) -> DesktopLease:
        return DaemonLease(self, holder)

    def tell(self, outcome: Mapping[str, Any], used: int, limit: int | None) -> None:
        if self._closed:
            return
        self._untold = {"ok": outcome["ok"], "text": str(outcome["text"])[:2000] or "-", "used": used, "limit": limit}
        if self._telling is None or self._telling.done():
            with contextlib.suppress(RuntimeError):  # there is no event loop, and nobody to tell it
                self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            under_way = [task for task in (self._telling, self._keeping) if task is not None]
            if under_way:
                await asyncio.wait(under_way, timeout=_PARTING)
            if self._acted and not self._keeps:
                with contextlib.suppress(DeskhandError):  # it is gone, and what was held there
                    await self._send("DELETE", "/lease", timeout=PATIENCE)
        finally:
            client, self._client = self._client, None
            if client is not None:
                await client.aclose()

    def _keep_lease(self) -> None:
        """Only the batch was given up: the daemon, which saw a client go, would soon give the desktop to another."""
        left = self.lease_until - time.monotonic()
        if self.lease_token is not None and left > 0:
            headers = {"Deskhand-Lease": self.lease_token}
            self._keeping = asyncio.create_task(self._quietly("PATCH", "/lease", {"ttl": left}, headers))

    async def _quietly(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        with contextlib.suppress(DeskhandError):  # the next call that matters tells
            await self._send(method, path, body, headers, CONNECTING)

    async def _tell(self) -> None:
        while (told := self._untold) is not None:
            self._untold = None
            await self._quietly("POST", "/outcome", told)

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = PATIENCE,
        acting: bool = False,
        query: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """One request, and its answer when that is no problem.

        Raises:
            DeskhandError: What the problem tells of; or that no whole answer came.
        """
        if self._closed:
            raise RuntimeError("this backend is closed")
        response = await self._send(method, path, body, headers, timeout, acting, query)
        if response.status_code >= 400:
            _raise_problem(response)
        return response

    async def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = PATIENCE,
        acting: bool = False,
        query: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        client = self._connected()
        whole = {"Deskhand-Session": self._session, **(headers or {})}
        content = None
        if body is not None:
            content = _encoded(body)
            whole["Content-Type"] = "application/json"
        try:
            async with asyncio.timeout(timeout):
                return await client.request(method, path, content=content, headers=whole, params=query)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
            raise NoDisplay(
                f"no computerd can be reached at {self._url} ({error or type(error).__name__}): see whether it runs"
                " there (deskhand serve)"
            ) from None
        except TimeoutError:
            raise _no_answer(f"none came within {timeout:.0f} s", acting) from None
        except httpx2.HTTPError as error:
            raise _no_answer(str(error) or type(error).__name__, acting) from None

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            url, uds = self._url, None
            if url.startswith("unix:"):
                url, uds = "http://localhost", url.removeprefix("unix:")
            _check_address(url)
            if self._token is None:
                assert self._token_file is not None
                self._token = read_token(self._token_file)
            # No proxy of the environment gets to see the token; nothing is sent again, also not to another address.
            transport = httpx2.AsyncHTTPTransport(uds=uds, retries=0, trust_env=False)
            try:
                self._client = httpx2.AsyncClient(
                    base_url=url,
                    transport=transport,
                    headers={"Authorization": f"Bearer {self._token}", "Accept": "multipart/mixed"},
                    timeout=httpx2.Timeout(None, connect=CONNECTING),
                    follow_redirects=False,
                    trust_env=False,
                )
            except (httpx2.InvalidURL, ValueError) as error:
                raise SetupError(f"{self._url} is no address of a computerd: {error}") from None
        return self._client


class DaemonLease(DesktopLease):
    """A lease that computerd holds for the session ``holder``; its token goes with every batch."""

    def __init__(self, daemon: Daemon, holder: str) -> None:
        self._daemon = daemon
        self._holder = "".join(one if one.isprintable() else " " for one in holder)[:100] or "-"
        self._token: str | None = None

    async def take(self, seconds: float, wait: float = 0.0) -> None:
        if self._token is None or not await self._renew(self._token, seconds):
            wish = {"holder": self._holder, "ttl": seconds, "wait": wait}
            response = await self._daemon.request("POST", "/lease", wish, timeout=PATIENCE + wait)
            token = _parts(response)[0].get("lease")
            if not isinstance(token, str):
                raise _not_ours(response)
            self._token = token
        self._daemon.lease_token, self._daemon.lease_until = self._token, time.monotonic() + seconds

    async def release(self) -> None:
        token, self._token = self._token, None
        if token is None:
            return
        if self._daemon.lease_token == token:
            self._daemon.lease_token = None
        with contextlib.suppress(DeskhandError):  # it is gone, and the lease with it
            await self._daemon.request("DELETE", "/lease", headers={"Deskhand-Lease": token})

    async def _renew(self, token: str, seconds: float) -> bool:
        """False when it was over long ago, or computerd was started anew."""
        try:
            await self._daemon.request("PATCH", "/lease", {"ttl": seconds}, {"Deskhand-Lease": token})
        except NoLease:
            return False
        return True


class NoLease(DesktopInUse):
    """computerd does not know the lease any more."""


def read_token(path: str | os.PathLike[str]) -> str:
    """The token in a file that nobody else may read.

    Raises:
        SetupError: It can not be read, or others may.
    """
    try:
        with open(path, encoding="ascii") as file:
            facts = os.fstat(file.fileno())
            if stat.S_ISREG(facts.st_mode) and facts.st_mode & 0o077:
                raise SetupError(f"others may read the token file {os.fspath(path)}: give it mode 600")
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it holds no token"
        raise SetupError(f"the token file {os.fspath(path)} can not be read: {why}") from None
    if not token or not token.isprintable() or " " in token:
        raise SetupError(f"the token file {os.fspath(path)} holds no token")
    return token


def _check_address(url: str) -> None:
    """Raises SetupError: ``url`` has no port that can be, or a password, which would go in the token's place."""
    if "@" in url.partition("//")[2].partition("/")[0]:  # before anything quotes it
        raise SetupError("the address of a computerd holds no user and no password: its token stands in a file")
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise SetupError(f"{url} is no address of a computerd: {error}") from None


def _encoded(body: Any) -> bytes:
    """What the hand would refuse must reach it to be refused; what is no JSON can not."""

    def finite(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, Mapping):
            return {str(name): finite(item) for name, item in value.items()}
        return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value

    return json.dumps(finite(body), default=str).encode()


def _parts(response: httpx2.Response) -> tuple[dict[str, Any], bytes | None]:
    """An answer's JSON, and the picture in its second part when there is one (RFC 2046, Multipart)."""
    kind = response.headers.get("content-type", "")
    content, picture = response.content, None
    if len(content) > _LONGEST_ANSWER:
        raise _not_ours(response)
    if kind.startswith("multipart/mixed"):
        boundary = kind.partition("boundary=")[2].strip('"').encode()
        pieces = content.split(b"--" + boundary)
        if not boundary or len(pieces) != 4:
            raise _not_ours(response)
        content, picture = (piece.partition(b"\r\n\r\n")[2][:-2] for piece in pieces[1:3])
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise _not_ours(response) from None
    if not isinstance(answer, dict):
        raise _not_ours(response)
    return answer, picture


def _raise_problem(response: httpx2.Response) -> None:
    """Raise the error that a problem (RFC 9457) tells of; the same as in the daemon's process."""
    try:
        problem = response.json()
        kind, detail = str(problem["kind"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _not_ours(response) from None
    if kind in _OF_THE_REQUEST:
        raise SetupError(f"computerd refuses the request: {detail}")
    if kind == "no_lease":
        raise NoLease(detail)
    raise_error(answer_in_problem(problem))


def _not_ours(response: httpx2.Response) -> BackendError:
    return BackendError(
        f"the answer (status {response.status_code}) is none of computerd's: see what else listens there; it is"
        " unknown what happened"
    )


def _no_answer(why: str, acting: bool) -> DisplayLost:
    error = DisplayLost(
        f"computerd gave no answer ({why}): it is unknown what happened; look before anything is sent again"
        if acting
        else f"computerd gave no answer ({why}): ask again"
    )
    if not acting:
        error.sent = "none"
    return error
