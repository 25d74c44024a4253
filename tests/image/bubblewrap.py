"""The image without a container engine that can run it: its root under bubblewrap (bwrap(1)).

For machines where podman can build and unpack, and runc can not run. There is no seccomp filter, no limit on processes,
and a container that has ended can not be started again.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_ENTRYPOINT = ("/usr/bin/tini", "--", "/usr/local/bin/entrypoint")


class Bubblewrap:
    """One running root."""

    def __init__(self, child: subprocess.Popen[bytes], pid: int, log: Path, environment: Mapping[str, str]) -> None:
        self.child = child
        self.pid = pid
        self._log = log
        self._environment = dict(environment)

    def command(self, user: str, *words: str) -> list[str]:
        """The command that runs another one inside, as an account there."""
        account = [] if user == "root" else [f"--reuid={user}", f"--regid={user}", "--init-groups"]
        inside = ["setpriv", *account, "--no-new-privs", "--", *words]
        environment = [f"{name}={value}" for name, value in self._environment.items()]
        return ["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-i", "-u", "env", "-i", *environment, *inside]

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait(self, timeout: float) -> int:
        """Wait until it ended; its exit status."""
        return self.child.wait(timeout)

    def end(self, name: str) -> None:
        """Send a signal to its init."""
        if self.child.poll() is None:
            os.kill(self.pid, signal.Signals[f"SIG{name}"])


@contextmanager
def run_root(
    image: str,
    directory: Path,
    capabilities: Sequence[str],
    tmpfs: Sequence[tuple[str, str]],
    read_only: bool,
    volumes: Sequence[tuple[str, str]],
    environment: Mapping[str, str],
    command: Sequence[str],
) -> Iterator[Bubblewrap]:
    """Run the image's root; it is ended, and its mount undone, when the block is left.

    ``tmpfs`` are (place, octal mode), ``volumes`` (file here, place).
    """
    root = subprocess.run(
        ["podman", "image", "mount", image], check=True, capture_output=True, text=True
    ).stdout.strip()
    copy = directory / "root"
    try:
        if read_only:
            words = ["--ro-bind", root, "/"]
        else:  # a copy, because what podman mounts is every container's
            subprocess.run(["cp", "-a", "--reflink=auto", root, str(copy)], check=True)
            words = ["--bind", str(copy), "/"]
        words += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"]
        for place, mode in tmpfs if read_only else ():
            words += ["--perms", mode, "--tmpfs", place]
        for here, place in volumes:
            words += ["--ro-bind", here, place]
        words += ["--cap-drop", "ALL", *(word for name in capabilities for word in ("--cap-add", f"CAP_{name}"))]
        own = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", **environment}
        words += ["--clearenv", *(word for name, value in own.items() for word in ("--setenv", name, value))]
        words += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent"]
        log = directory / "log"
        reader, writer = os.pipe2(os.O_CLOEXEC)
        with open(log, "wb") as file:
            child = subprocess.Popen(
                ["bwrap", *words, "--info-fd", str(writer), "--", *(command or _ENTRYPOINT)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                pass_fds=(writer,),
            )
        os.close(writer)
        running = Bubblewrap(child, _child_pid(reader), log, own)
        try:
            yield running
        finally:
            running.end("KILL")
            running.wait(30.0)
    finally:
        if copy.exists():
            shutil.rmtree(copy)
        subprocess.run(["podman", "image", "unmount", image], capture_output=True)


def _child_pid(descriptor: int, timeout: float = 30.0) -> int:
    """What bwrap tells of its child."""
    text = b""
    deadline = time.monotonic() + timeout
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while select.select([file], [], [], max(0.0, deadline - time.monotonic()))[0]:
            piece = file.read(4096)
            if not piece:
                return int(json.loads(text)["child-pid"])
            text += piece
    raise AssertionError("bwrap did not tell its child's pid")
