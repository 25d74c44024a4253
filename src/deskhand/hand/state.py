"""What is known about a display that its X server can not tell: whose desktop it is, and what was launched on it.

A desktop that ``deskhand desktop up`` started has one state file, ``desktops/<key>.json``; what was launched on a
display, ours or not, stands one JSON object a line in ``launched/<key>.jsonl``. Both lie in a state directory::

    /run/deskhand                     desktops that root started
    $XDG_RUNTIME_DIR/deskhand         an ordinary user's
    /run/user/<uid>/deskhand          the same user's, from a service without that variable
    /tmp/deskhand-<uid>               the same, where there is no runtime directory

A directory or file counts only when root or the reader owns it and nobody else may write to it, because what is read
here decides as whom, and with which environment, an application starts.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import tempfile
import time
from typing import IO, Any, Dict, Iterable, List, Optional, Tuple

from .errors import SetupError
from .x11.display_name import parse_display

#: The environment variable, set to the desktop's id, that every process of a desktop of ours carries.
MARK = "DESKHAND_DESKTOP"

_LOCK_TIMEOUT = 5.0
_MOST_RECORDS = 1000
_MOST_BYTES = 1 << 20


# ---- processes


def process_start_time(pid: int) -> Optional[int]:
    """When process ``pid`` started, in clock ticks since boot (proc(5), /proc/pid/stat, field 22).

    None when there is no such process or it is a zombie: neither holds anything.
    """
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            # The name stands in parentheses and may itself hold spaces and parentheses.
            fields = file.read().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def is_alive(pid: Any, start_time: Any) -> bool:
    """Whether ``pid`` still is the process that started at ``start_time``, and not a later one with its number."""
    return isinstance(pid, int) and pid > 0 and isinstance(start_time, int) and process_start_time(pid) == start_time


# ---- directories


def display_key(display: str) -> str:
    """The file name for a display: ``71`` for ``:71``, ``:71.0`` and ``unix:71``; the host too for another host's.

    Raises:
        NoDisplay: ``display`` is no display name.
    """
    name = parse_display(display)
    return "%s_%d" % (re.sub(r"[^A-Za-z0-9.-]", "_", name.host), name.number) if name.host else str(name.number)


def own_directory() -> str:
    """The state directory that this user writes to. It may not be there yet."""
    uid = os.geteuid()
    if uid == 0:
        return "/run/deskhand"
    for runtime in (os.environ.get("XDG_RUNTIME_DIR", ""), "/run/user/%d" % uid):
        if os.path.isabs(runtime) and _is_private(runtime, (uid,)):
            return os.path.join(runtime, "deskhand")
    return "/tmp/deskhand-%d" % uid


def state_directories() -> List[str]:
    """The state directories to read, this user's own first; only those that are there and can be trusted."""
    uid = os.geteuid()
    found = [own_directory()]
    if uid != 0:
        found += ["/run/user/%d/deskhand" % uid, "/tmp/deskhand-%d" % uid, "/run/deskhand"]
    return [path for path in dict.fromkeys(found) if _is_private(path, (0, uid))]


def make_own_directory(name: str = "") -> str:
    """Make (``name`` of) this user's state directory and return its path.

    Raises:
        SetupError: It can not be made, or somebody else owns it.
    """
    base = own_directory()
    mode = 0o755 if os.geteuid() == 0 else 0o700
    make_private_directory(base, mode)
    if not name:
        return base
    make_private_directory(os.path.join(base, name), mode)
    return os.path.join(base, name)


def make_private_directory(path: str, mode: int) -> None:
    """Make ``path`` with ``mode``, whatever the umask, or make sure that it is a directory only this user writes to.

    Raises:
        SetupError: It can not be made, or it is there and somebody else may write to it.
    """
    try:
        os.mkdir(path)
        os.chmod(path, mode)
    except FileExistsError:
        if not _is_private(path, (os.geteuid(),)):
            raise SetupError(
                "%s is not a directory that only user %d may write to: remove it" % (path, os.geteuid())
            ) from None
    except OSError as error:
        raise SetupError("can not make the directory %s: %s" % (path, error.strerror)) from error


def _is_private(path: str, owners: Tuple[int, ...]) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid in owners and not facts.st_mode & 0o022


# ---- desktops


def write_desktop(directory: str, state: Dict[str, Any]) -> str:
    """Write ``state`` as the state file of its display below the state directory ``directory``; return the path.

    The file is put in place whole, so that a reader never sees half of one.
    """
    path = os.path.join(directory, "desktops", display_key(state["display"]) + ".json")
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            os.fchmod(descriptor, 0o644)
            json.dump(state, file, indent=1)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def read_desktops(directories: Optional[Iterable[str]] = None) -> List[Dict[str, Any]]:
    """Every state file, of dead desktops too, by display number; each with its own path as ``state_file``."""
    found = []
    for directory in state_directories() if directories is None else directories:
        folder = os.path.join(directory, "desktops")
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.endswith(".json") and not name.startswith("."):
                state = _read_state(os.path.join(folder, name))
                if state is not None:
                    found.append(state)
    return sorted(found, key=lambda state: (len(state["display"]), state["display"]))


def find_desktop(display: str, directories: Optional[Iterable[str]] = None) -> Optional[Dict[str, Any]]:
    """The state of the living desktop of ours at ``display``; None for a foreign display or a dead desktop's file.

    The keys a launch needs: ``user``, ``uid``, ``gid``, ``home``, ``xauthority``, ``env`` (the whole environment).
    """
    key = display_key(display)
    for directory in state_directories() if directories is None else directories:
        state = _read_state(os.path.join(directory, "desktops", key + ".json"))
        if state is not None and state["state"] == "ready" and desktop_is_alive(state):
            return state
    return None


def desktop_is_alive(state: Dict[str, Any]) -> bool:
    """Whether the X server of a desktop's state file still runs, and is the one the file tells of."""
    server = state["processes"].get("X server")
    if state["state"] not in ("starting", "ready") or not server or not is_alive(*server):
        return False
    mark = process_mark(server[0])
    return mark is None or mark == state["id"]


def process_mark(pid: int) -> Optional[str]:
    """The id of the desktop that process ``pid`` belongs to, ``""`` when to none; None when that can not be read."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            environment = file.read()
    except OSError:
        return None
    name = MARK.encode() + b"="
    for variable in environment.split(b"\0"):
        if variable.startswith(name):
            return os.fsdecode(variable[len(name) :])
    return ""


def _read_state(path: str) -> Optional[Dict[str, Any]]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid not in (0, os.geteuid()):
            return None
        state = json.loads(os.read(descriptor, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(descriptor)
    whole = (
        isinstance(state, dict)
        and isinstance(state.get("display"), str)
        and isinstance(state.get("id"), str)
        and isinstance(state.get("state"), str)
        and isinstance(state.get("processes"), dict)
        and isinstance(state.get("env"), dict)
    )
    if not whole:
        return None
    state["state_file"] = path
    return state  # type: ignore[no-any-return]


# ---- what was launched


def record_launched(
    display: str, record: Dict[str, Any], directory: Optional[str] = None, replace: bool = False
) -> None:
    """Remember that an application was launched on ``display``.

    ``record`` holds what the launch knows (application id, session name, ``keep_open`` ...), among it ``pid``;
    ``start_time`` and ``time`` (seconds since the epoch) are added when they are missing.
    With ``replace`` it stands in place of an older record of the same process, and no reader finds neither.

    Raises:
        SetupError: The file can not be written, or another process held its lock for too long.
    """
    record = dict(record)
    record.setdefault("start_time", process_start_time(record["pid"]))
    record.setdefault("time", time.time())
    line = json.dumps(record)
    if "\n" in line:  # never: JSON escapes it; a record must stay one line
        raise ValueError("a record must be one line")
    folder = make_own_directory("launched") if directory is None else os.path.join(directory, "launched")
    with _locked(os.path.join(folder, display_key(display) + ".jsonl"), write=True) as file:
        records = _parse(file.read())
        kept = [old for old in records if not (replace and _is_of(old, record["pid"], record["start_time"]))]
        if len(kept) >= _MOST_RECORDS:
            kept = [old for old in kept if is_alive(old["pid"], old.get("start_time"))]
        if len(kept) < len(records):
            _rewrite(file, kept)
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(file.tell() - 1)
            if file.read(1) != b"\n":  # a writer died in the middle of its line
                line = "\n" + line
        file.write(line.encode() + b"\n")


def launched(display: str, directories: Optional[Iterable[str]] = None) -> List[Dict[str, Any]]:
    """What was launched on ``display`` and not forgotten, oldest first, each with ``alive`` as it is now."""
    found = []
    for directory in state_directories() if directories is None else directories:
        try:
            with _locked(os.path.join(directory, "launched", display_key(display) + ".jsonl"), write=False) as file:
                found += _parse(file.read())
        except FileNotFoundError:
            continue
    for record in found:
        record["alive"] = is_alive(record["pid"], record.get("start_time"))
    return sorted(found, key=lambda record: float(record.get("time", 0)))


def forget_launched(display: str, pid: int, start_time: Optional[int], directory: Optional[str] = None) -> None:
    """Take the record of one launch out again (it was quit). One that is not there is no error."""
    path = os.path.join(
        own_directory() if directory is None else directory, "launched", display_key(display) + ".jsonl"
    )
    if os.path.exists(path):
        with _locked(path, write=True) as file:
            records = _parse(file.read())
            _rewrite(file, [old for old in records if not _is_of(old, pid, start_time)])


def _is_of(record: Dict[str, Any], pid: int, start_time: Optional[int]) -> bool:
    return (record["pid"], record.get("start_time")) == (pid, start_time)


def _parse(content: bytes) -> List[Dict[str, Any]]:
    records = []
    for line in content.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("pid"), int):
            records.append(record)
    return records


def _rewrite(file: IO[bytes], records: List[Dict[str, Any]]) -> None:
    file.seek(0)
    file.truncate()
    file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))


def _locked(path: str, write: bool) -> IO[bytes]:
    """Open ``path`` with flock(2) held, exclusive to write. Closing it lets go."""
    flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SetupError("can not open %s: %s" % (path, error.strerror)) from error
    file = os.fdopen(descriptor, "r+b" if write else "rb")
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if write else fcntl.LOCK_SH) | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                file.close()
                raise SetupError("%s stays locked by another process; end it and try again" % path) from None
            time.sleep(0.005)  # flock has no deadline of its own
