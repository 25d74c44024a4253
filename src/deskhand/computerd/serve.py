"""Serve one desktop over HTTP until told to end: the server, and what the service manager is told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from deskhand.computerd.app import Access, Computerd, create_app
from deskhand.computerd.connections import server_config
from deskhand.computerd.health import Health
from deskhand.computerd.listening import address_of, listening
from deskhand.computerd.live.control import Control
from deskhand.computerd.live.mount import LiveView
from deskhand.computerd.logs import say, set_up
from deskhand.computerd.notify import Notifier
from deskhand.computerd.recording import Recording
from deskhand.computerd.secret import keep_memory_private
from deskhand.computerd.served import ServedDesktop
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
    """How to serve. ``token`` is its digest; ``listen`` is what ``listening`` takes, HOST:PORT and more."""

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
        config = server_config(
            create_app(served, health, access, extend),
            ws="auto",
            # What viewers say is small, and pictures are small already.
            ws_max_size=1 << 20,
            ws_per_message_deflate=False,
            lifespan="on",
            date_header=True,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_PARTING,
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


def _launcher(path: str | None) -> Launcher | None:
    if path is None:
        return NoLauncher()
    from deskhand.computerd.launcher.client import LauncherClient

    return LauncherClient(path)


def log_levels() -> list[str]:
    return [name.lower() for name in logging.getLevelNamesMapping() if name not in ("NOTSET", "WARN", "FATAL")]
