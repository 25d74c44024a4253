"""Start a desktop: make what it needs, start its supervisor, and wait for the supervisor's word."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..hand.errors import SetupError
from ..hand.state import MARK, make_own_directory, make_private_directory, read_desktops
from . import processes
from .account import Account, desktop_account
from .remains import remove_files, remove_sockets_and_memory
from .sandbox import Isolation
from .serving import serving
from .sessions import SESSIONS
from .stop import forget_if_dead

#: Width and height of a screen in pixels, least and most: X11 counts them in 16 bits, panels need some room.
_LEAST, _MOST = 200, 16384
#: Seconds the supervisor gets to end everything when the start is given up.
_GRACE = 15.0


@dataclass(frozen=True)
class DesktopState:
    """A desktop as its state file tells of it.

    ``state`` is ``starting``, ``ready``, ``stopping`` or ``dead`` (``reason`` says why). ``env`` is the whole
    environment for what is started on it; ``processes`` is part to (pid, start time in clock ticks since boot);
    ``size`` is in pixels, ``started`` in seconds since the epoch. ``url`` is where computerd serves it and
    ``token_file`` what holds the token, both ``""`` when it is not served. ``launcher`` is the socket of what starts
    applications in its sandbox, ``""`` when it has none.
    """

    display: str
    xauthority: str
    session: str
    size: tuple[int, int]
    user: str
    uid: int
    gid: int
    home: str
    runtime_dir: str
    dbus_address: str
    current_desktop: str
    env: dict[str, str]
    processes: dict[str, tuple[int, int]]
    id: str
    directory: str
    logs: str
    started: float
    state: str
    reason: str
    state_file: str
    url: str = ""
    token_file: str = ""
    launcher: str = ""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> DesktopState:
        """The desktop of a state file's content."""
        values = {field.name: facts[field.name] for field in fields(cls) if field.name in facts}
        values["size"] = tuple(values["size"])
        values["processes"] = {part: tuple(process) for part, process in values["processes"].items()}
        return cls(**values)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def parse_size(text: str) -> tuple[int, int]:
    """``1280x800`` to (1280, 800).

    Raises:
        SetupError: It is no size, or one that no screen can have.
    """
    match = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text.strip(), re.ASCII)
    if match is None:
        raise SetupError(f"{text!r} is no screen size: give WIDTHxHEIGHT in pixels, like 1280x800")
    return _checked_size((int(match[1]), int(match[2])))


def start_desktop(
    session: str = "xfce",
    size: tuple[int, int] = (1280, 800),
    timeout: float = 60.0,
    environment: Mapping[str, str] | None = None,
    serve: str | None = None,
    account: Account | None = None,
    isolation: Isolation | None = None,
) -> DesktopState:
    """Start a whole desktop on a free display and return when it is painted.

    As root it runs as the account ``desk``, made when there is none; else as the user who asks. ``environment`` is
    added to what its processes get; nothing else of ours reaches them but language and time zone. ``timeout`` is in
    seconds, for everything together. With ``serve``, HOST:PORT (port 0: a free one), the launcher and computerd are
    started too; as an ordinary user they share the desktop's account, and applications can read the token then.
    ``account``: what it runs as instead. ``isolation``: it runs in a sandbox of its own, into which the environment's
    processes are entered; not together with ``serve``.

    Raises:
        SetupError: A part did not come up; ``facts`` hold its name (``part``) and the tail of its log (``log``).
            Nothing is left of the desktop, also when this call is interrupted.
    """
    if session not in SESSIONS:
        raise SetupError(f"there is no session {session!r}: choose one of {', '.join(SESSIONS)}")
    width, height = _checked_size(size)
    if isolation is not None:
        isolation.check()
        if serve is not None:
            raise SetupError("a desktop in a sandbox is not served by computerd: leave one of the two out")
    account = account or desktop_account()
    base = make_own_directory()
    make_own_directory("desktops")
    _forget_the_dead()
    mark = str(uuid.uuid4())
    directory = _make_directory(account, mark[:8])
    supervisor: subprocess.Popen[bytes] | None = None
    try:
        specification = {
            "id": mark,
            "session": session,
            "size": [width, height],
            "timeout": timeout,
            "directory": directory,
            "state_directory": base,
            "environment": dict(environment or {}),
            "account": asdict(account),
            "serve": asdict(serving(serve, directory, account)) if serve is not None else None,
            "isolation": isolation.as_dict() if isolation is not None else None,
        }
        supervisor = _start_supervisor(specification)
        answer = _answer(supervisor, timeout + _GRACE)
        if "ready" not in answer:
            if answer["failed"] == "supervisor":
                with open(os.path.join(directory, "supervisor.log"), encoding="utf-8", errors="replace") as log:
                    answer["log"] = log.read().splitlines()[-20:]
            raise _failure(answer)
        with open(answer["ready"], encoding="utf-8") as file:
            facts = json.load(file)
        desktop = DesktopState.of({**facts, "state_file": answer["ready"]})
    except BaseException:
        _undo(supervisor, mark, directory)
        raise
    # Whoever lives longer than the supervisor must not keep it as a zombie.
    threading.Thread(target=supervisor.wait, name=f"supervisor of {desktop.display}", daemon=True).start()
    return desktop


def _checked_size(size: tuple[int, int]) -> tuple[int, int]:
    if not all(_LEAST <= length <= _MOST for length in size):
        raise SetupError(f"{size[0]}x{size[1]} is no screen size: width and height are {_LEAST} to {_MOST} pixels")
    return size


def _make_directory(account: Account, name: str) -> str:
    """The desktop's own directory. Not below XDG_RUNTIME_DIR or /run: those are small, and may forbid programs."""
    parent = "/var/lib/deskhand" if account.switch else f"/tmp/deskhand-{account.uid}"
    make_private_directory(parent, 0o755 if account.switch else 0o700)
    directory = os.path.join(parent, name)
    make_private_directory(directory, 0o755)
    return directory


def _start_supervisor(specification: dict[str, Any]) -> subprocess.Popen[bytes]:
    # The package may be on our path without being installed; the supervisor's environment has nothing else of ours
    # but what the session may know as well.
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    passed = {name: value for name, value in os.environ.items() if name in ("LANG", "TZ") or name.startswith("LC_")}
    environment = {
        **passed,
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": package,
        "PYTHONDONTWRITEBYTECODE": "1",
        MARK: specification["id"],
        **({"XDG_RUNTIME_DIR": os.environ["XDG_RUNTIME_DIR"]} if "XDG_RUNTIME_DIR" in os.environ else {}),
    }
    log = os.open(os.path.join(specification["directory"], "supervisor.log"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "deskhand.desktop.supervisor", json.dumps(specification)],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)


def _answer(supervisor: subprocess.Popen[bytes], timeout: float) -> dict[str, Any]:
    """The one line that a supervisor says."""
    assert supervisor.stdout is not None
    deadline = time.monotonic() + timeout
    text = b""
    poll = select.poll()
    poll.register(supervisor.stdout, select.POLLIN)
    with supervisor.stdout:
        while not text.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(int(left * 1000) + 1):
                return {"failed": "supervisor", "why": f"it gave no answer within {timeout:g} s", "log": []}
            piece = os.read(supervisor.stdout.fileno(), 1 << 16)
            if not piece:
                return {"failed": "supervisor", "why": "it ended without an answer", "log": []}
            text += piece
    answer: dict[str, Any] = json.loads(text)
    return answer


def _failure(answer: dict[str, Any]) -> SetupError:
    part, why, log = answer["failed"], answer["why"], answer["log"]
    lines = [line for line in log if line.strip()]
    said = f"; its log ends: {' | '.join(lines[-3:])}" if lines else "; its log is empty"
    return SetupError(f"the desktop did not start, part {part}: {why}{said}", part=part, log=log)


def _undo(supervisor: subprocess.Popen[bytes] | None, mark: str, directory: str) -> None:
    """Leave nothing of a start that failed or was interrupted."""
    if supervisor is not None:
        supervisor.send_signal(signal.SIGTERM)
        try:
            supervisor.wait(_GRACE)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
    ended = processes.end_processes(mark, polite=1.0)
    for facts in read_desktops():
        if facts["id"] == mark:
            remove_sockets_and_memory(facts, ended.pids)
            remove_files(facts)
    shutil.rmtree(directory, ignore_errors=True)


def _forget_the_dead() -> None:
    """Desktops that a reboot or kill -9 ended leave files, and nobody to say so; the next start takes them away.

    One whose supervisor lived to tell why it ended stays for `status`, until `down` or until its display is reused.
    """
    for facts in read_desktops():
        if facts["state"] != "dead":
            forget_if_dead(facts)
