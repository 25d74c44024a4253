"""A running computer as the checks use it: commands in it, HTTP to it, its log and its end."""

from __future__ import annotations

import base64
import ctypes
import http.client
import json
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.image.containers import PORT, Container, EngineContainer, container, find_engine

_CLONE_NEWNET = 0x40000000


@dataclass
class Answer:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Computer:
    """A running computer."""

    container: Container
    _token: str = ""

    def run(self, *command: str, user: str = "root", check: bool = True, stdin: str = "") -> str:
        """Run a command in the computer and give its output, trimmed."""
        words = self.container.command(user, *command)
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, input=stdin)
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: exit status {done.returncode}: {done.stderr.strip()[-2000:]}")
        return done.stdout.strip()

    def begin(self, *command: str, user: str = "root") -> None:
        """Start a command in the computer, and leave it running."""
        self.run("sh", "-c", 'setsid -f "$@" </dev/null >/dev/null 2>&1', "sh", *command, user=user)

    def python(
        self, script: str, *arguments: str, user: str = "desk", environment: Mapping[str, str] | None = None
    ) -> Any:
        """Run a Python script in the computer with its deskhand; gives what it prints, as JSON."""
        words = ["env", *(f"{name}={value}" for name, value in (environment or {}).items())]
        return json.loads(self.run(*words, "/opt/deskhand/bin/python", "-P", "-", *arguments, user=user, stdin=script))

    def forget_token(self) -> None:
        """It was started again, and has made another one."""
        self._token = ""

    def processes(self) -> list[tuple[int, str, str, str]]:
        """Every process: pid, account, state, command line."""
        found = []
        for line in self.run("ps", "-ww", "-eo", "pid=,user:32=,stat=,args=").splitlines():
            pid, user, state, command = line.split(None, 3)
            found.append((int(pid), user, state, command))
        return found

    def pid_of(self, part: str) -> int:
        """The pid, in the computer, of the process with ``part`` in its command line."""
        pids = [pid for pid, _user, state, command in self.processes() if part in command and "Z" not in state]
        assert pids, f"no process {part!r}"
        return pids[0]

    def signal(self, part: str, number: str) -> int:
        """Send a signal to the process with ``part`` in its command line; gives its pid."""
        pid = self.pid_of(part)
        self.run("kill", f"-{number}", str(pid))
        return pid

    # ---- HTTP

    @property
    def token(self) -> str:
        if not self._token:
            self._token = self.run("cat", "/run/computerd/token")
        return self._token

    def connect(self, timeout: float = 30.0) -> socket.socket:
        """A connection to computerd, made inside the container's network (or to its published port)."""
        box = self.container
        if isinstance(box, EngineContainer) and box.engine == "docker":
            host, _, port = box.call("port", box.name, f"{PORT}/tcp").stdout.split()[0].rpartition(":")
            return socket.create_connection((host, int(port)), timeout)
        return _connect_in(box.pid, timeout)

    def request(
        self,
        method: str,
        path: str,
        content: Any = None,
        headers: Mapping[str, str | None] | None = None,
        timeout: float = 30.0,
    ) -> Answer:
        """One request with the token; a header that is None is left out."""
        sent: dict[str, str | None] = {
            "Host": f"127.0.0.1:{PORT}",
            "Authorization": None if "Authorization" in (headers or {}) else f"Bearer {self.token}",
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if content is not None else {}),
            **(headers or {}),
        }
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=timeout)
        connection.sock = self.connect(timeout)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            body = b"" if content is None else json.dumps(content).encode()
            for name, value in {**sent, "Content-Length": str(len(body)) if body else None}.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def act(self, *actions: Mapping[str, Any], picture: bool | Mapping[str, Any] = False, settle: str = "quiet") -> Any:
        """A batch; its answer, whatever became of it."""
        batch = {
            "actions": list(actions),
            "space": "screen",
            "picture": picture,
            "settle": {"mode": settle, "timeout": 3.0},
        }
        return self.request("POST", "/act", batch, timeout=120.0).json

    def done(
        self, *actions: Mapping[str, Any], picture: bool | Mapping[str, Any] = False, settle: str = "quiet"
    ) -> Any:
        """A batch that must succeed."""
        answer = self.act(*actions, picture=picture, settle=settle)
        assert answer["ok"], answer
        return answer

    def health(self, timeout: float = 5.0) -> int:
        """The status of /health; 0 when nobody answers."""
        try:
            return self.request("GET", "/health", headers={"Authorization": None}, timeout=timeout).status
        except OSError:
            return 0
        except http.client.HTTPException:
            return 0

    def health_while(self, act: Callable[[], object], status: int, timeout: float) -> float:
        """Do something and ask meanwhile until /health has ``status``; gives the seconds from its beginning.

        What is restarted may be back before a command in the computer has returned.
        """
        acting = threading.Thread(target=act)
        acting.start()
        try:
            return self.wait_for_health(status, timeout)
        finally:
            acting.join()

    def wait_for_health(self, status: int, timeout: float) -> float:
        """Ask until /health has ``status``; gives the seconds it took."""
        begun = time.monotonic()
        seen = set()
        while time.monotonic() - begun < timeout:
            seen.add(now := self.health())
            if now == status:
                return time.monotonic() - begun
            time.sleep(0.01)  # a probe is all that tells
        raise AssertionError(f"/health was {seen} for {timeout:g} s, and not {status}; the log: {self.log()[-3000:]}")

    def wait_until_healthy(self, timeout: float = 90.0) -> float:
        return self.wait_for_health(200, timeout)

    def log(self) -> str:
        return self.container.log()

    def wait_for_end(self, timeout: float = 60.0) -> int:
        """Wait until the computer has ended; its exit status."""
        return self.container.wait(timeout)


def picture_of(answer: Any) -> bytes:
    """The bytes of the picture in an answer."""
    return base64.b64decode(answer["picture"]["base64"])


def wait_for(condition: Callable[[], Any], timeout: float = 30.0) -> Any:
    """Wait for what a container does, which says nothing when it has done it."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("it did not come about")


@contextmanager
def started(
    read_only: bool = True,
    with_token: bool = True,
    modes: str = "",
    volumes: Sequence[tuple[Path, str]] = (),
    environment: Mapping[str, str] | None = None,
    command: Sequence[str] = (),
) -> Iterator[Computer]:
    """A computer, run as compose.yaml says; nothing is left of it when the block is left.

    Without a token it makes one. ``modes`` are those of the volumes in memory, when not compose.yaml's. ``volumes`` are
    files from here, read-only. ``command`` is run instead of the entrypoint, with the same rights.
    """
    token = secrets.token_urlsafe(32) if with_token else ""
    with container(
        find_engine(),
        read_only=read_only,
        modes=modes,
        token=token,
        volumes=volumes,
        environment=environment or {},
        command=command,
    ) as running:
        yield Computer(running, token)


def _connect_in(pid: int, timeout: float) -> socket.socket:
    """Connect from within the network namespace of process ``pid`` (setns(2): a thread's own matter)."""
    made: list[socket.socket] = []
    errors: list[OSError] = []

    def connect() -> None:
        try:
            namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(namespace)
            made.append(socket.create_connection(("127.0.0.1", PORT), timeout))
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return made[0]
