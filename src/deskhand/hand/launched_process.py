"""One launched application, as the process that asked for it sees it: starting its keeper, and hearing from it.

See ``keeper`` for what happens on the other side.
"""

from __future__ import annotations

import fcntl
import json
import os
import pkgutil
import shutil
import signal
import sys
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import state
from .errors import SetupError

#: The environment variable that every process of one launch carries: how it is known should its keeper be killed.
MARK = "DESKHAND_LAUNCH"

#: The source comes over standard input, with the order: the same in a folder, in a zip archive and without either.
_BOOT = (
    "import io,json,sys;given=json.load(sys.stdin);sys.stdin=io.StringIO(given['order']);"
    "exec(compile(given['source'],'keeper','exec'))"
)
_BUSES = ("dbus-daemon", "dbus-launch", "dbus-broker-launch")
_TAIL = 8192
_LONGEST_LINE = 300
#: Every GTK program says this where no accessibility bus runs, also one that died of something else.
_NOISE = "dbind-WARNING"


class Account(NamedTuple):
    """Whom the application runs as (credentials(7))."""

    uid: int
    gid: int
    groups: Tuple[int, ...]


class Exit(NamedTuple):
    """How a process of the launch ended; ``signal`` is 0 unless a signal ended it."""

    pid: int
    status: int
    signal: int

    @property
    def failed(self) -> bool:
        return bool(self.status or self.signal)

    def __str__(self) -> str:
        if not self.signal:
            return f"exit status {self.status}"
        try:
            return f"signal {self.signal} ({signal.Signals(self.signal).name})"
        except ValueError:
            return f"signal {self.signal}"


class LaunchedProcess:
    """A keeper with its application. ``fileno`` can be read when there is news, which ``read`` takes in.

    ``pid`` is the started process (the opener, or the application itself), also its session and process group; None
    until it is started. ``keeper`` and ``keeper_start`` name the keeper for ``state``.
    """

    def __init__(self, keeper: int, report: int, log: int, mark: str) -> None:
        self.keeper = keeper
        self.keeper_start = state.process_start_time(keeper)
        self.mark = mark
        self.pid: Optional[int] = None
        self.error: Optional[str] = None
        self.exits: List[Exit] = []
        self.empty = False
        self._report = report
        self._log = log
        self._buffer = b""

    def fileno(self) -> int:
        return self._report

    @property
    def listening(self) -> bool:
        """Whether ``fileno`` may still be waited on."""
        return self._report >= 0 and not self.empty

    @property
    def opener_exit(self) -> Optional[Exit]:
        """How the started process itself ended; None while it runs."""
        return next((one for one in self.exits if one.pid == self.pid), None)

    @property
    def over(self) -> bool:
        """Whether nothing of the application is left: at most a message bus that the opener started on its way."""
        if self.empty:
            return True
        if self.opener_exit is None:
            return False
        return not without_bus(descendants(self.keeper, self.mark))

    @property
    def failure(self) -> Optional[Exit]:
        """How the application failed, once it is over; None when it runs, or ended without a failure.

        What an opener started counts before the opener, which ends with 0 whatever becomes of it.
        """
        started = [one for one in self.exits if one.pid != self.pid]
        last = started[-1] if started else self.opener_exit
        if last is not None and not last.failed:
            last = self.opener_exit
        return last if last is not None and last.failed and self.over else None

    def read(self) -> None:
        """Take in what the keeper has said. Never waits."""
        if self._report < 0:
            return
        while True:
            try:
                data = os.read(self._report, 65536)
            except BlockingIOError:
                break
            if not data:
                self.empty = True  # the keeper is gone: it, too, ends only with its last child, or was killed
                break
            self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, news: Dict[str, object]) -> None:
        event = news["event"]
        if event == "started":
            self.pid = int(str(news["pid"]))
        elif event == "failed":
            self.error = str(news["error"])
        elif event == "exited":
            self.exits.append(Exit(*(int(str(news[name])) for name in ("pid", "status", "signal"))))
        elif event == "empty":
            self.empty = True

    def last_words(self) -> str:
        """The last line of the application's output that says anything; ``""`` when there is none."""
        try:
            size = os.fstat(self._log).st_size
            tail = os.pread(self._log, _TAIL, max(0, size - _TAIL)).decode("utf-8", "replace")
        except OSError:
            return ""
        for line in reversed(tail.splitlines()):
            text = "".join(character if character.isprintable() else " " for character in line).strip()
            if text and _NOISE not in text:
                return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 3] + "..."
        return ""

    def owns(self, pids: Sequence[int]) -> bool:
        """Whether one of ``pids`` is a process of this launch."""
        return any(self.keeper in ancestors(pid) or launch_of(pid) == self.mark for pid in pids)

    def stop_listening(self) -> None:
        """Give the descriptors back; the application and its keeper go on."""
        for descriptor in (self._report, self._log):
            if descriptor >= 0:
                os.close(descriptor)
        self._report = self._log = -1


def start(
    argv: Sequence[str], env: Dict[str, str], directory: str, account: Optional[Account], mark: str
) -> LaunchedProcess:
    """Run ``argv`` under a keeper of its own: in a session of its own, with nothing of ours but ``env``.

    ``account`` is whom to become (root only); None: run as we are. The answer to whether it could be run comes later,
    as news.

    Raises:
        SetupError: the keeper itself can not be started.
    """
    import subprocess  # 10 ms, and only a launch needs it
    import threading

    source = pkgutil.get_data(__package__, "keeper.py")
    python = sys.executable or shutil.which("python3")
    if source is None or not python:
        raise SetupError("no Python to keep the application with: run the hand with python3 and its own files")
    order = {
        "argv": [_raw(argument) for argument in argv],
        "env": {_raw(name): _raw(value) for name, value in {**env, MARK: mark}.items()},
        "directory": _raw(directory),
        "account": account,
    }
    log = _new_log(account)
    receive, send = os.pipe()
    try:
        os.set_blocking(receive, False)
        process = subprocess.Popen(
            [python, "-I", "-S", "-c", _BOOT, "deskhand-keeper"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=(send,),
            start_new_session=True,
            cwd="/",
            env={name: env[name] for name in (state.MARK,) if name in env},
        )
    except OSError as error:
        os.close(log)
        os.close(receive)
        raise SetupError(f"{python} can not be started to keep the application: {error.strerror}") from None
    finally:
        os.close(send)
    assert process.stdin is not None
    # Somebody must take the keeper's exit status whenever it ends, long after the launch.
    threading.Thread(target=process.wait, name="deskhand-keeper", daemon=True).start()
    body = json.dumps({"source": source.decode(), "order": json.dumps({**order, "report": send})})
    try:
        process.stdin.write(body.encode())
        process.stdin.close()
    except BrokenPipeError:
        pass  # it ended at once; the report's end says so
    return LaunchedProcess(process.pid, receive, log, mark)


def _raw(text: str) -> str:
    """The bytes that ``text`` stands for in a system call, one character a byte: JSON knows no bytes."""
    return os.fsencode(text).decode("latin-1")


def _new_log(account: Optional[Account]) -> int:
    """A file without a name for the application's output: nobody else can open it, and it goes with its last user.

    Appended to, so that after the keeper has cut it the application goes on at its end. On a file system, because
    inotify tells nothing about a memfd.
    """
    import tempfile

    for directory in (None, "/dev/shm"):
        try:
            with tempfile.TemporaryFile(dir=directory) as file:
                log = os.dup(file.fileno())
            break
        except OSError:
            continue
    else:
        return os.open(os.devnull, os.O_RDWR)  # nowhere to write: better no log than no application
    fcntl.fcntl(log, fcntl.F_SETFL, fcntl.fcntl(log, fcntl.F_GETFL) | os.O_APPEND)
    if account is not None:
        os.fchown(log, account.uid, account.gid)  # programs open /dev/stderr anew
    return log


# ---- processes


def parents() -> Dict[int, int]:
    """Every process and its parent (proc(5), /proc/pid/stat)."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(int(name))
            if parent is not None:
                table[int(name)] = parent
    return table


def ancestors(pid: int) -> Iterator[int]:
    """``pid`` itself, its parent, and so on."""
    seen: Set[int] = set()
    current: Optional[int] = pid
    while current and current not in seen:
        seen.add(current)
        yield current
        current = _parent(current)


def descendants(keeper: Optional[int], mark: str) -> Set[int]:
    """The living processes of one launch: those below ``keeper`` (None: it is gone), and all that carry ``mark``.

    The keeper and this process are left out.
    """
    table = parents()
    roots = {one for one in table if mark and launch_of(one) == mark}
    found = set(roots)
    if keeper is not None and keeper > 1:  # everything is below 1 and 0
        roots.add(keeper)
    grown = roots
    while grown:
        grown = {one for one, parent in table.items() if parent in grown and one not in found}
        found |= grown
    return {one for one in found - {keeper, os.getpid()} if one > 1 and state.process_start_time(one) is not None}


def without_bus(pids: Set[int]) -> Set[int]:
    """``pids`` without message buses and what is below them: those outlive the application that needed one first."""
    buses = {pid for pid in pids if _command(pid) in _BUSES}
    return {pid for pid in pids if not buses.intersection(ancestors(pid))} if buses else pids


def marks() -> Set[str]:
    """The marks of every launch of which a process is left, as far as environments can be read."""
    return {launch_of(pid) for pid in parents()} - {""}


def launch_of(pid: int) -> str:
    """The launch that process ``pid`` belongs to by its environment; ``""`` for none, or when it can not be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return ""
    name = MARK.encode() + b"="
    found = next((item for item in environment.split(b"\0") if item.startswith(name)), b"")
    return os.fsdecode(found[len(name) :])


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return os.fsdecode(file.read().rstrip(b"\n"))
    except OSError:
        return ""


def _parent(pid: int) -> Optional[int]:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None
