"""Start the service of a fleet on this machine, wait for its word, and end it."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from deskhand.desktop.processes import wait_for_end
from deskhand.errors import SetupError
from deskhand.fleet.options import Options
from deskhand.fleet.page.status import PageSettings
from deskhand.fleet.socket import SocketPool, socket_of
from deskhand.hand.state import make_own_directory, own_directory, process_start_time

Progress = Callable[[int, int], None]

#: Seconds that all desktops of a fleet get to end.
ENDING = 120.0


def start_service(
    name: str,
    options: Options,
    timeout: float = 600.0,
    progress: Progress | None = None,
    page: PageSettings | None = None,
) -> dict[str, Any]:
    """Start the fleet ``name`` and return when all its desktops are ready: ``name``, ``socket``, ``pid``.

    It lives on when this process ends. ``progress`` is called with how many are ready, of how many. ``page`` None: it
    has no status page.

    Raises:
        SetupError: There is one of that name, or no desktop came up; nothing is left then.
    """
    path = socket_of(name)
    options_and_page = [json.dumps(options.as_dict()), json.dumps(asdict(page) if page is not None else None)]
    log = os.open(_log_of(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "deskhand.fleet.service", name, *options_and_page],
            env={**os.environ, "PYTHONPATH": package},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    try:
        told = _listen(process, time.monotonic() + timeout, progress)
    except BaseException:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(ENDING)
        except subprocess.TimeoutExpired:
            process.kill()  # its warden ends the desktops
            process.wait()
        raise
    return {"name": name, "socket": path, "pid": told["pid"]}


async def end_service(name: str) -> int:
    """End the fleet ``name`` with all its desktops, and return when they are gone; gives the pid it had.

    Raises:
        SetupError: There is none, or it does not end.
    """
    pool = SocketPool(name)
    try:
        answer, _ = await pool.ask("end")
    finally:
        await pool.aclose()
    pid = int(answer["value"])
    start_time = process_start_time(pid)
    if start_time is not None and not await asyncio.to_thread(wait_for_end, pid, start_time, ENDING):
        raise SetupError(f"the fleet {name!r} (pid {pid}) has not ended within {ENDING:g} s: see {_log_of(name)}")
    return pid


def service_names() -> list[str]:
    """The fleets of this user that have a socket, whether they live or not."""
    try:
        names = os.listdir(os.path.join(own_directory(), "fleet"))
    except OSError:
        return []
    return sorted(name.removesuffix(".sock") for name in names if name.endswith(".sock"))


def _log_of(name: str) -> str:
    return os.path.join(make_own_directory("fleet"), f"{name}.log")


def _listen(process: subprocess.Popen[bytes], deadline: float, progress: Progress | None) -> dict[str, Any]:
    assert process.stdout is not None
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    text = b""
    with process.stdout:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(int(left * 1000) + 1):
                raise SetupError("the fleet was not ready in time: give it more with --timeout")
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                raise SetupError("the fleet's process ended without a word: see its log in the state directory")
            *lines, text = (text + piece).split(b"\n")
            for line in lines:
                told: dict[str, Any] = json.loads(line)
                if "failed" in told:
                    raise SetupError(str(told["failed"]))
                if "up" in told:
                    return told
                if progress is not None:
                    progress(told["ready"], told["of"])
