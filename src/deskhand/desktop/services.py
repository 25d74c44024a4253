"""What serves a desktop over HTTP, beside it: the launcher as the desktop's account, computerd as one of its own.

The desktop's supervisor starts both, and again when they end; it does so with nothing else of a desktop. Where there
are two accounts, only computerd's reads the token and only computerd is let in by the launcher.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..hand.state import MARK, process_start_time
from .account import Account
from .address import tcp_socket
from .parts import PartFailed

LAUNCHER, COMPUTERD = "launcher", "computerd"
#: Seconds before one that ended is started again: at once, then ever later while it keeps ending.
_DELAYS = (0.0, 0.25, 0.5, 1.0, 2.0, 5.0)
#: Seconds after which one that runs counts as well again.
_WELL = 10.0
#: Fewer characters than this could be guessed.
_LEAST_TOKEN = 16

Start = Callable[[str, list[str], Account, Mapping[str, str], tuple[int, ...]], int]
#: Waits until a condition holds, looked at whenever a descriptor can be read, or for some seconds.
Wait = Callable[[Callable[[], bool], tuple[int, ...], float], bool]


@dataclass(frozen=True)
class Serving:
    """How a desktop is to be served.

    ``listen`` is HOST:PORT; ``token_from`` the file with the token that an operator gives, ``""`` for one made here;
    ``launcher_directory`` and ``directory`` are made here, for the launcher's socket and for what is computerd's alone.
    ``python`` is the interpreter that both accounts can run, ``python_path`` its PYTHONPATH; ``arguments`` are more of
    computerd's.
    """

    listen: str
    account: Account
    launcher_directory: str
    directory: str
    token_from: str = ""
    python: str = sys.executable
    python_path: str = ""
    arguments: tuple[str, ...] = ()

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Serving:
        """The one that a specification tells of."""
        return cls(**{**facts, "account": Account(**facts["account"]), "arguments": tuple(facts.get("arguments", ()))})

    @property
    def socket(self) -> str:
        return os.path.join(self.launcher_directory, "launcher.sock")

    @property
    def token_file(self) -> str:
        return os.path.join(self.directory, "token")

    @property
    def url(self) -> str:
        """Where it is reached from this machine."""
        host, _, port = self.listen.rpartition(":")
        return f"http://{'127.0.0.1' if host in ('', '0.0.0.0') else '[::1]' if host == '[::]' else host}:{port}"


class Services:
    """The two of one desktop: started, watched, started again.

    ``start`` starts a program as an account, with an environment and descriptors of ours, and gives its pid.

    The socket that computerd serves is kept here: a port that is free while computerd is started again could be taken
    by an application, which clients would then send the token to.
    """

    def __init__(self, serving: Serving, account: Account, start: Start) -> None:
        self.serving = serving
        self._account = account
        self._start = start
        self._display = ""
        self._desktop: dict[str, str] = {}
        self._pids: dict[int, str] = {}
        self._started: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._notices: socket.socket | None = None
        self._listening: socket.socket | None = None
        self.processes: dict[str, list[int | None]] = {}
        self.is_ready = False

    def prepare(self, display: str, xauthority: str, environment: Mapping[str, str]) -> None:
        """Make the directories, the token file, computerd's copy of the cookie, and its socket.

        Raises:
            PartFailed: The token that was given can not be read, is too short, or can be read by applications; or the
                address can not be listened at.
        """
        serving, owner = self.serving, self.serving.account
        self._display, self._desktop = display, dict(environment)
        for directory in (serving.launcher_directory, serving.directory):
            shutil.rmtree(directory, ignore_errors=True)
            os.mkdir(directory, 0o700)
        self._write("token", self._token())
        with open(xauthority, "rb") as file:
            self._write("Xauthority", file.read())
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._notices.bind(self._path("notify"))
        if owner.switch:
            os.chown(self._path("notify"), owner.uid, owner.gid)
            os.chown(serving.directory, owner.uid, owner.gid)
            os.chown(serving.launcher_directory, self._account.uid, owner.gid)
        # Whoever may connect is the launcher's to say, by the peer's credentials; here it is who may reach the socket.
        os.chmod(serving.launcher_directory, 0o750)
        try:
            self._listening = tcp_socket(serving.listen)
        except (OSError, ValueError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise PartFailed(COMPUTERD, f"{serving.listen} can not be listened at: {why}") from None

    def bring_up(self, wait: Wait, left: Callable[[], float]) -> None:
        """Start the launcher, then computerd, each proved, while ``left()`` seconds are left.

        Raises:
            PartFailed: The launcher's socket did not appear, or computerd did not say that it serves.
        """
        path = self.serving.socket
        self.start(LAUNCHER)
        while not self.launcher_answers():
            if not self.runs(LAUNCHER):
                raise PartFailed(LAUNCHER, f"the launcher ended, and its socket {path} never appeared")
            if left() <= 0:
                raise PartFailed(LAUNCHER, f"its socket {path} did not appear in time")
            # A file appears without a word to us, so this looks again and again.
            wait(lambda: not self.runs(LAUNCHER), (), min(0.02, left()))
        self.start(COMPUTERD)
        notices = () if self._notices is None else (self._notices.fileno(),)
        wait(lambda: self.is_ready or not self.runs(COMPUTERD), notices, left())
        if not self.is_ready:
            ended = "it did not say in time that it serves" if self.runs(COMPUTERD) else "it ended before it served"
            raise PartFailed(COMPUTERD, f"{ended} {self.serving.url}")

    def start(self, name: str) -> None:
        """Start one of the two, for the first time or again."""
        serving = self.serving
        given: tuple[int, ...] = ()
        self._due.pop(name, None)
        self._started[name] = time.monotonic()
        if name == LAUNCHER:
            # Not by the command line, whose packages take ten megabytes that the launcher has no use for.
            module = "deskhand.computerd.launcher"
            command = ["--socket", serving.socket, "--serve-uid", str(serving.account.uid)]
            account, environment = self._account, dict(self._desktop)
        else:
            assert self._listening is not None
            module = "deskhand"
            given = (self._listening.fileno(),)
            command = ["serve", "--listen", f"fd:{given[0]}", "--token-file", serving.token_file]
            command += ["--xauthority", self._path("Xauthority"), "--launcher", serving.socket, *serving.arguments]
            account, environment = serving.account, self._service_environment()
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if serving.python_path:
            environment["PYTHONPATH"] = serving.python_path
        command = [serving.python, "-P", "-m", module, *command, "--display", self._display]
        pid = self._start(name, command, account, environment, given)
        self._pids[pid] = name
        self.processes[name] = [pid, process_start_time(pid)]

    def ended(self, statuses: Mapping[int, int]) -> list[str]:
        """Take in which processes ended; gives a line for each of ours. It is due to be started again."""
        lines = []
        for pid in set(statuses) & set(self._pids):
            name = self._pids.pop(pid)
            lived = time.monotonic() - self._started[name]
            delay = self._is_due(name, lived)
            code = os.waitstatus_to_exitcode(statuses[pid])
            how = f"ended with exit status {code}" if code >= 0 else f"was ended by signal {-code}"
            when = f"in {delay:g} s" if delay else "now"
            lines.append(f"{name} {how}, after {lived:.1f} s; it is started again {when}")
        return lines

    def start_the_due(self) -> list[str]:
        """Start again what is due; gives a line for each, and one that can not be started now is due again."""
        lines = []
        for name in [name for name, then in self._due.items() if then <= time.monotonic()]:
            try:
                self.start(name)
                lines.append(f"{name} was started again")
            except (PartFailed, OSError) as error:  # such as an account with as many processes as it may have
                why = error.why if isinstance(error, PartFailed) else error.strerror
                lines.append(f"{name} is not started again ({why}); tried again in {self._is_due(name, 0.0):g} s")
        return lines

    def _is_due(self, name: str, lived: float) -> float:
        """One that lived for so many seconds is to be started again; gives in how many."""
        failures = self._failures[name] = 0 if lived > _WELL else self._failures.get(name, -1) + 1
        delay = _DELAYS[min(failures, len(_DELAYS) - 1)]
        self._due[name] = time.monotonic() + delay
        return delay

    def until_due(self, most: float) -> float:
        """Seconds until something is due, at most ``most``."""
        return min([most, *(max(0.0, due - time.monotonic()) for due in self._due.values())])

    def runs(self, name: str) -> bool:
        return name in self._pids.values()

    def launcher_answers(self) -> bool:
        """The launcher's socket takes a connection. (One that sends nothing is a probe, and not answered.)"""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
            try:
                probe.connect(self.serving.socket)
            except OSError:
                return False
        return True

    def take_notices(self) -> None:
        """Read what computerd says of itself (sd_notify(3)): READY=1 when it serves."""
        while self._notices is not None:
            try:
                said = self._notices.recv(4096)
            except OSError:
                return
            self.is_ready = self.is_ready or b"READY=1" in said.split(b"\n")

    # ---- what they are given

    def _service_environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": self._desktop.get("LANG", "C.UTF-8"),
            "HOME": self.serving.directory,
            "TMPDIR": self.serving.directory,
            "XAUTHORITY": self._path("Xauthority"),
            "NOTIFY_SOCKET": self._path("notify"),
            **({MARK: self._desktop[MARK]} if MARK in self._desktop else {}),
        }

    def _token(self) -> bytes:
        path = self.serving.token_from
        if not path:
            return secrets.token_urlsafe(32).encode()
        try:
            with open(path, "rb") as file:
                token = file.read(4097).strip()
        except OSError as error:
            raise PartFailed(COMPUTERD, f"the token file {path} can not be read: {error.strerror}") from None
        if not _LEAST_TOKEN <= len(token) <= 4096 or not token.isascii() or token.split() != [token]:
            what = f"{_LEAST_TOKEN} to 4096 ASCII characters without blanks"
            raise PartFailed(COMPUTERD, f"the token file {path} does not hold a token: put {what} in it")
        if self._account.switch and self._can_read(path):
            who = f"{self._account.name}, and so every application,"
            raise PartFailed(COMPUTERD, f"{who} can read the token file {path}: make it root's own, mode 400")
        return token

    def _can_read(self, path: str) -> bool:
        """Whether the desktop's account can read a file: asked as that account, because directories count too."""
        user, group = self._account.uid, self._account.gid
        command = ["/usr/bin/test", "-r", path]
        asked = subprocess.run(command, user=user, group=group, extra_groups=[group], env={}, cwd="/", timeout=10)
        return asked.returncode == 0

    def _write(self, name: str, content: bytes) -> None:
        owner = self.serving.account
        descriptor = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if owner.switch:
                os.fchown(descriptor, owner.uid, owner.gid)
            file.write(content)

    def _path(self, name: str) -> str:
        return os.path.join(self.serving.directory, name)
