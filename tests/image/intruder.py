"""What a launched application tries, to get at the token. Run in the computer as an application, by its own Python.

``intruder.py RESULT DECOY NEKOT``: DECOY is a secret that it must find wherever it looks (a child of its own has it),
or its search proves nothing; NEKOT is the token backwards, so that the search does not find what it was told. Writes
to RESULT, as JSON, where it found either, what it could read, and what was refused.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial

PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000
MOST = 1 << 26
PLACES = ("/run", "/tmp", "/dev/shm", "/etc", "/var", "/home", "/root", "/opt", "/srv")


class Search:
    """Where the marks were found, and what could be read or not."""

    def __init__(self, marks: dict[str, bytes]) -> None:
        self.marks = marks
        self.found: dict[str, set[str]] = {mark: set() for mark in marks}
        self.read: dict[str, list[str]] = {}
        self.refused: dict[str, dict[str, str]] = {}

    def look(self, kind: str, where: str, get: Callable[[], bytes]) -> bytes:
        """Read one thing."""
        try:
            content = get()
        except OSError as error:
            self.refused.setdefault(kind, {})[where] = os.strerror(error.errno or 0)
            return b""
        self.read.setdefault(kind, []).append(where)
        for name, mark in self.marks.items():
            if mark in content:
                self.found[name].add(kind)
        return content


def content_of(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(MOST)


def memory_of(pid: int) -> bytes:
    """All of a process's writable memory."""
    pieces = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                start, end = (int(part, 16) for part in span.split("-"))
                try:
                    memory.seek(start)
                    pieces.append(memory.read(min(end - start, MOST)))
                except (OSError, ValueError, OverflowError):
                    continue
    return b"".join(pieces)


def files(search: Search) -> None:
    def closed(error: OSError) -> None:
        search.refused.setdefault("directory", {})[str(error.filename)] = os.strerror(error.errno or 0)

    for place in PLACES:
        for top, _names, names in os.walk(place, onerror=closed):
            for path in (os.path.join(top, name) for name in names):
                if os.path.isfile(path) and os.path.getsize(path) < MOST:
                    search.look("file", path, partial(content_of, path))
    for path in ("/run/computerd/token", "/run/computerd/Xauthority", "/run/secrets/deskhand_token"):
        search.look("file", path, partial(content_of, path))


def processes(search: Search) -> None:
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        if pid != os.getpid():  # which was told the token
            process(search, pid)


def process(search: Search, pid: int) -> None:
    for name in ("environ", "cmdline"):
        search.look(name, str(pid), partial(content_of, f"/proc/{pid}/{name}"))
    search.look("memory", str(pid), partial(memory_of, pid))
    for path in ("token", "Xauthority"):
        path = f"/proc/{pid}/root/run/computerd/{path}"
        search.look("root", path, partial(content_of, path))
    numbers = search.look("descriptors", str(pid), lambda: "\n".join(os.listdir(f"/proc/{pid}/fd")).encode())
    for number in numbers.decode().split():
        path = f"/proc/{pid}/fd/{number}"
        if os.path.isfile(path):
            search.look("descriptor", f"{pid}/{number}", partial(content_of, path))
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    if ptrace(PTRACE_ATTACH, pid, 0, 0) == 0:
        os.waitpid(pid, WALL)
        search.read.setdefault("ptrace", []).append(str(pid))
        ptrace(PTRACE_DETACH, pid, 0, 0)
    else:
        search.refused.setdefault("ptrace", {})[str(pid)] = os.strerror(ctypes.get_errno())
    try:
        os.kill(pid, 0)
    except OSError as error:
        search.refused.setdefault("signal", {})[str(pid)] = os.strerror(error.errno or 0)


def launcher() -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect("/run/launcher/launcher.sock")
        sock.sendall(b"list\n")
        return sock.recv(1 << 16)


def main() -> None:
    result, decoy, nekot = sys.argv[1:]
    status, environment = content_of("/proc/self/status").decode(), dict(os.environ)
    descriptors = [os.readlink(f"/proc/self/fd/{number}") for number in ("0", "1", "2", "3", "4", "5") if held(number)]
    # A child with the decoy in its memory, its environment, its command line and an open file.
    with open(result + ".decoy", "w+") as file:
        file.write(decoy)
        file.flush()
        wait = "import sys; print(flush=True); sys.stdin.read()"
        child = subprocess.Popen(
            [sys.executable, "-c", wait, decoy],
            env={"DECOY": decoy},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[file.fileno()],
        )
    assert child.stdout is not None
    child.stdout.readline()
    search = Search({"decoy": decoy.encode(), "token": nekot[::-1].encode()})
    files(search)
    processes(search)
    said = search.look("socket", "launcher", launcher)
    child.communicate()
    facts = {
        "uid": os.getuid(),
        "groups": os.getgroups(),
        "status": status,
        "descriptors": descriptors,
        "environment": environment,
        "found": {name: sorted(kinds) for name, kinds in search.found.items()},
        "read": search.read,
        "refused": search.refused,
        "launcher": said.decode(),
    }
    with open(result + ".new", "w") as file:
        json.dump(facts, file)
    os.rename(result + ".new", result)


def held(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


main()
