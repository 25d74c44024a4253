"""Serve one desktop over HTTP until told to end: the sockets, the server, the service manager."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from deskhand.computerd.app import Access, Computerd, create_app
from deskhand.computerd.connections import DeadlineProtocol
from deskhand.computerd.health import Health
from deskhand.computerd.live.control import Control
from deskhand.computerd.live.mount import LiveView
from deskhand.computerd.logs import say, set_up
from deskhand.computerd.notify import Notifier
from deskhand.computerd.recording import Recording
from deskhand.computerd.secret import keep_memory_private
from deskhand.computerd.served import ServedDesktop
from deskhand.desktop.address import tcp_socket
from deskhand.errors import SetupError
from deskhand.extras import needs
from deskhand.hand.launcher import Launcher, NoLauncher

with needs("computerd", "computerd", "uvicorn", "fastapi"):
    import uvicorn
    from fastapi import FastAPI

DEFAULT_LISTEN = "127.0.0.1:8765"
#: Seconds that requests under way have to come to an end once the batch was stopped.
_PARTING = 5


@dataclass(frozen=True)
class Settings:
    """How to serve. ``token`` is its digest; ``listen`` is HOST:PORT (port 0: any), ``unix:PATH`` or ``fd:NUMBER``."""

    display: str | None
    xauthority: str | None
    token: bytes = field(repr=False)
    listen: str = DEFAULT_LISTEN
    launcher: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    wait_for_desktop: bool = False
    log_level: str = "info"
    #: Whether a person may take over at the live view; and the directory that everything done is recorded in.
    control: bool = False
    trace: str | None = None


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then stop the batch that runs, and release what it holds.

    Raises:
        SetupError: The address can not be listened on.
    """
    keep_memory_private()
    set_up(settings.log_level)
    notifier = Notifier()
    with listening(settings.listen) as sock:
        served = ServedDesktop(settings.display, settings.xauthority, lambda: _launcher(settings.launcher))
        health = Health(settings.display, settings.xauthority, settings.launcher, settings.wait_for_desktop)
        access = Access(settings.token, settings.hosts, settings.origins)
        live = LiveView(served, settings.token, settings.control)

        def extend(app: FastAPI, computerd: Computerd) -> Callable[[Any], bool]:
            live.add_to(app)
            return live.admits

        recording = Recording(served, settings.trace, {Control.session}) if settings.trace is not None else None
        config = uvicorn.Config(
            create_app(served, health, access, extend),
            http=DeadlineProtocol,
            ws="auto",
            # What viewers say is small, and pictures are small already.
            ws_max_size=1 << 20,
            ws_per_message_deflate=False,
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_PARTING,
            h11_max_incomplete_event_size=64 << 10,
            backlog=512,
        )
        where = address_of(sock)
        server = _Server(config, served, notifier, where)
        try:
            asyncio.run(server.serve(sockets=[sock]))
        finally:
            if recording is not None:
                recording.close()


class _Server(uvicorn.Server):
    """uvicorn's, that stops the batch before it waits for requests to end, and tells the service manager."""

    def __init__(self, config: uvicorn.Config, served: ServedDesktop, notifier: Notifier, where: str) -> None:
        super().__init__(config)
        self._served = served
        self._notifier = notifier
        self._where = where
        self._telling: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            say("ready", listen=self._where, pid=os.getpid())
            self._notifier.tell("READY=1", f"STATUS=listening on {self._where}")
            self._telling = asyncio.create_task(self._notifier.keep_alive())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._notifier.tell("STOPPING=1")
        say("ending")
        if self._telling is not None:
            self._telling.cancel()
        await self._served.stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn raises the signal again at the end; ours is a clean end, with status 0.
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def listening(listen: str) -> Iterator[socket.socket]:
    """A listening socket at HOST:PORT or ``unix:PATH``; the path is for its owner alone, and removed at the end.

    ``fd:NUMBER`` is one that was listened on before us and is kept by who started us: while we are started again
    nobody else on this machine can take the address, and with it the tokens that clients send there.

    Raises:
        SetupError: It can not be had.
    """
    if listen.startswith("unix:"):
        path = listen.removeprefix("unix:")
        with _unix_socket(path) as sock:
            yield sock
        return
    try:
        sock = _given(listen) if listen.startswith("fd:") else tcp_socket(listen)
    except (OSError, ValueError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise SetupError(f"{listen} can not be listened on ({why}): give --listen HOST:PORT or unix:PATH") from None
    with sock:
        yield sock


def _given(listen: str) -> socket.socket:
    sock = socket.socket(fileno=int(listen.removeprefix("fd:")))
    sock.set_inheritable(False)
    if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise ValueError("it is no socket that is listened on")
    sock.setblocking(False)
    return sock


def address_of(sock: socket.socket) -> str:
    """Where a socket listens, as a client is told it."""
    name: Any = sock.getsockname()
    if sock.family == socket.AF_UNIX:
        return f"unix:{name}"
    return f"[{name[0]}]:{name[1]}" if sock.family == socket.AF_INET6 else f"{name[0]}:{name[1]}"


@contextlib.contextmanager
def _unix_socket(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            _remove_dead(path)
            before = os.umask(0o177)
            try:
                sock.bind(path)
            finally:
                os.umask(before)
            sock.listen(512)
            sock.setblocking(False)
        except OSError as error:
            raise SetupError(f"no socket can be made at {path}: {error.strerror or error}") from None
        ours = os.lstat(path)
        try:
            yield sock
        finally:
            with contextlib.suppress(OSError):
                there = os.lstat(path)
                if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                    os.unlink(path)


def _remove_dead(path: str) -> None:
    """Remove the socket that a killed daemon left; touch nothing else."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except TimeoutError:
            pass


def _launcher(path: str | None) -> Launcher | None:
    if path is None:
        return NoLauncher()
    from deskhand.computerd.launcher.client import LauncherClient

    return LauncherClient(path)


def log_levels() -> list[str]:
    return [name.lower() for name in logging.getLevelNamesMapping() if name not in ("NOTSET", "WARN", "FATAL")]
