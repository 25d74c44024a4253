"""A fresh X server for a test, and a window manager on it, each ended when its block is left.

::

    with xvfb(width=1280, height=800) as server, window_manager(server, "openbox"):
        with Connection.open(server.display, server.xauthority) as connection:
            ...

``os.environ`` is left alone: pass ``server.env`` to what is to run on the display.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from ..desktop import xserver
from ..desktop.processes import wait_for_end
from ..desktop.readiness import Readiness
from ..hand.errors import SetupError
from ..hand.state import process_start_time
from ..hand.x11 import Connection

_COMMANDS = {"openbox": ["openbox", "--sm-disable"], "xfwm4": ["xfwm4", "--compositor=off"]}
_TIMEOUT = 15.0


@dataclass(frozen=True)
class XServer:
    """A running X server: ``display`` is ``":71"``; ``xauthority`` is None when it lets every client in.

    ``env`` is a whole environment for clients: this process's, on that display, without its session's bus.
    """

    display: str
    xauthority: str | None
    pid: int
    env: dict[str, str] = field(repr=False)

    @property
    def number(self) -> int:
        return int(self.display.removeprefix(":"))

    def __str__(self) -> str:
        return self.display


@contextmanager
def xvfb(
    width: int = 1280, height: int = 800, depth: int = 24, auth: bool = False, number: int | None = None
) -> Iterator[XServer]:
    """Xvfb on a free display, or on the one of that ``number``, so that a server can come back where it was.

    With ``auth`` it asks for a cookie, which stands in ``xauthority``.

    Raises:
        SetupError: Xvfb is not installed or does not start; holds what it said.
    """
    # Their errors go to a file: a pipe that nobody reads would stop a server that complains a lot.
    with tempfile.TemporaryDirectory(prefix="deskhand-xvfb-") as directory, tempfile.TemporaryFile() as log:
        path = os.path.join(directory, "Xauthority") if auth else None
        if path is not None:
            xserver.write_xauthority(path, xserver.new_cookie(), None)
        reader, writer = os.pipe()
        command = xserver.xvfb_command(width, height, depth, writer, path)
        if number is not None:
            command.insert(1, f":{number}")
        try:
            server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=(writer,),
                # Ctrl-C is for the tests, which then end the server themselves.
                start_new_session=True,
            )
        except FileNotFoundError:
            os.close(reader)
            raise SetupError("Xvfb is not installed: install it (Debian: xvfb)") from None
        finally:
            os.close(writer)
        try:
            display = f":{int(_line(reader, log))}"
            env = {**os.environ, "DISPLAY": display}
            env.pop("XAUTHORITY", None)
            for name in ("DBUS_SESSION_BUS_ADDRESS", "SESSION_MANAGER", "WAYLAND_DISPLAY"):
                env.pop(name, None)
            if path is not None:
                env["XAUTHORITY"] = path
            yield XServer(display, path, server.pid, env)
        finally:
            os.close(reader)
            _end(server)


@contextmanager
def window_manager(server: XServer, name: str = "openbox") -> Iterator[int]:
    """A window manager on ``server`` that owns ``_NET_SUPPORTING_WM_CHECK`` and shows windows; gives its pid.

    Raises:
        SetupError: It is not installed, or does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="deskhand-home-") as home, tempfile.TemporaryFile() as log:
        env = {**server.env, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home}
        try:
            process = subprocess.Popen(
                _COMMANDS.get(name, [name]),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise SetupError(f"{name} is not installed: install it (Debian: {name})") from None
        try:
            with Connection.open(server.display, server.xauthority, _TIMEOUT) as connection:
                readiness = Readiness(connection, lambda: None)
                if not (readiness.window_manager(_TIMEOUT) and readiness.window_of_ours(_TIMEOUT)):
                    raise SetupError(f"{name} did not come up on {server} within {_TIMEOUT:g} s: {_said(log)}")
            yield process.pid
        finally:
            _end(process)


def _line(reader: int, log: IO[bytes]) -> str:
    text = b""
    deadline = time.monotonic() + _TIMEOUT
    while not text.endswith(b"\n"):
        left = deadline - time.monotonic()
        if not select.select([reader], [], [], max(0.0, left))[0]:
            raise SetupError(f"Xvfb gave no display within {_TIMEOUT:g} s: {_said(log)}")
        piece = os.read(reader, 64)
        if not piece:
            raise SetupError(f"Xvfb did not start: {_said(log)}")
        text += piece
    return text.decode()


def _said(log: IO[bytes]) -> str:
    """The last line of a log."""
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, so that an X server removes its socket; SIGKILL when that is not enough."""
    start_time = process_start_time(process.pid)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        if start_time is not None and not wait_for_end(process.pid, start_time, 5.0):
            process.kill()
    process.wait()
