"""modal-computer-use's own daemon over HTTP, on an X server that is there already, with a window manager on it.

It wants to start both itself, and ffmpeg to be there: it is given programs of those names that do nothing, finds the
display it asked for, and is satisfied. Of its routes the one is asked that takes a batch and answers with the picture's
bytes, as ours does; it asks neither for a lease nor for a receipt. Its limit on the rate of input is lifted.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2

from bench.sides import PATIENCE, PEERS_PYTHON, NotInstalled
from deskhand.testing import XServer

_BATCH = {
    "actions": [{"type": "click", "x": 200, "y": 200}],
    "screenshot_after": True,
    "screenshot_options": {"format": "png"},
}


class ModalDaemon:
    """One that runs; ``act`` is a click and a PNG by one request over a connection that is kept."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def act(self) -> float:
        """Seconds that it took.

        Raises:
            NotInstalled: It gave no picture.
        """
        start = time.perf_counter()
        answer = await self._client.post("/v1/actions/run/raw-screenshot", json=_BATCH)
        seconds = time.perf_counter() - start
        if answer.status_code != 200 or not answer.content.startswith(b"\x89PNG"):
            raise NotInstalled
        return seconds


@asynccontextmanager
async def modal_daemon(server: XServer, folder: Path, size: str = "1280x800") -> AsyncIterator[ModalDaemon]:
    """The daemon, when it says that it is ready.

    Raises:
        NotInstalled: It, or wmctrl and xdotool, is not there, or it did not become ready.
    """
    if not os.path.exists(PEERS_PYTHON):
        raise NotInstalled
    token = secrets.token_urlsafe(24)
    with _process(server, folder, size, token) as (process, url):
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
            deadline = time.monotonic() + PATIENCE
            while not await _is_ready(client):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NotInstalled
                await asyncio.sleep(0.1)  # it says nothing when it is
            yield ModalDaemon(client)


async def _is_ready(client: httpx2.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).status_code == 200
    except httpx2.HTTPError:
        return False


@contextmanager
def _process(server: XServer, folder: Path, size: str, token: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    programs = folder / "programs"
    programs.mkdir()
    for name in ("Xvfb", "openbox", "ffmpeg"):
        path = programs / name
        path.write_text("#!/bin/sh\nexec sleep 600\n")
        path.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    width, _, height = size.partition("x")
    settings = {
        "LOCAL_TOKEN": token,
        "BACKEND": "x11",
        "WINDOW_MANAGER": "openbox",
        "DESKTOP_WIDTH": width,
        "DESKTOP_HEIGHT": height,
        "DAEMON_HOST": "127.0.0.1",
        "DAEMON_PORT": str(port),
        "INPUT_RATE_LIMIT_PER_SEC": "0",
        **{f"{name}_DIR": str(folder / name.lower()) for name in ("ARTIFACTS", "RECORDINGS", "RUNTIME", "TRACE")},
    }
    process = subprocess.Popen(
        [PEERS_PYTHON, "-m", "modal_computer_use.daemon"],
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "DISPLAY": server.display,
            **{f"COMPUTER_USE_{name}": value for name, value in settings.items()},
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()  # it ends the placeholders
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
