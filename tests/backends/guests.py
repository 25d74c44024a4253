"""Places that a ``Guest`` reaches: a bare process, bubblewrap with its own root and network, a local sshd."""

from __future__ import annotations

import asyncio
import getpass
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from deskhand.backends.guest import Finished
from deskhand.backends.transports import Transport, bubblewrap, ssh
from deskhand.testing import XServer

#: The distribution's Python, which an image has.
PYTHON = "/usr/bin/python3"
#: Runs a command and passes on what it says until the file is there; then it ends, and what comes is lost.
_LOSES = """
import os, subprocess, sys
flag, *words = sys.argv[1:]
command = subprocess.Popen(words, stdout=subprocess.PIPE)
while data := os.read(command.stdout.fileno(), 1 << 16):
    if os.path.exists(flag):
        os.unlink(flag)
        os._exit(1)
    while data:
        data = data[os.write(1, data):]
sys.exit(command.wait())
"""


def bare() -> Transport:
    """A process that knows nothing of ours: no display, no cookie, no package."""
    return Transport("bare", ("env", "-i", "PATH=/usr/bin:/bin"))


def python_3_9() -> str:
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.9*/bin/python3.9")))
    found += filter(None, [shutil.which("python3.9")])
    if not found:
        pytest.skip("there is no Python 3.9 here")
    return found[0]


def sandbox(server: XServer, directory: Path) -> Transport:
    """bubblewrap with nothing inside but python3, its libraries, and the display's socket and cookie (``/cookie``)."""
    if shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed (Debian: bubblewrap)")
    inside = directory / "tmp of the sandbox"
    inside.mkdir(exist_ok=True)
    name = f"/tmp/.X11-unix/X{server.number}"
    words = ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "guest", "--clearenv"]
    words += ["--ro-bind", os.path.realpath(PYTHON), "/usr/bin/python3", "--setenv", "PATH", "/usr/bin"]
    for place in ("/usr/lib", "/usr/lib64"):
        words += ["--ro-bind-try", place, place, "--symlink", place.removeprefix("/"), place.removeprefix("/usr")]
    words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(inside), "/tmp"]
    if server.pid:
        assert server.xauthority is not None
        words += ["--bind", name, name, "--ro-bind", server.xauthority, "/cookie"]
    transport = bubblewrap(words)
    works = subprocess.run(transport.command(["python3", "-c", ""]), capture_output=True, text=True, check=False)
    if works.returncode:
        pytest.skip(f"bubblewrap does not work here: {works.stderr.strip()}")
    return transport


@contextmanager
def sshd(directory: Path) -> Iterator[Transport]:
    """An sshd of the test's own on 127.0.0.1, with its own keys; gives the way to this user there."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    if program is None or shutil.which("ssh") is None:
        pytest.skip("sshd or ssh is not installed (Debian: openssh-server, openssh-client)")
    if os.geteuid() != 0:
        pytest.skip("sshd is started as root")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # its privilege separation directory, made at boot
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = directory / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/user.pub\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\n"
        "PermitRootLogin prohibit-password\nMaxStartups 100\n"
    )
    known = directory / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {(directory / 'host.pub').read_text()}")
    process = subprocess.Popen([program, "-D", "-e", "-f", config], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "listening on 127.0.0.1" in said, said
        # It says something of every connection, and would stop at a full pipe.
        reading = threading.Thread(target=process.stderr.read, daemon=True)
        reading.start()
        options = ["-F", "none", "-p", str(port), "-i", str(directory / "user"), "-o", "IdentitiesOnly=yes"]
        options += ["-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=ERROR"]
        yield ssh(f"{getpass.getuser()}@127.0.0.1", options)
    finally:
        process.terminate()
        process.wait()


def lossy(transport: Transport, flag: Path) -> Transport:
    """The same; once ``flag`` is there, the next thing said there never arrives here."""
    return replace(transport, prefix=(sys.executable, "-c", _LOSES, str(flag), *transport.prefix))


def counting(transport: Transport, log: Path) -> Transport:
    """The same; each command there adds a line to ``log``."""
    return replace(transport, prefix=("sh", "-c", f'echo >>"{log}"; exec "$@"', "sh", *transport.prefix))


class OneByOne:
    """A function that runs commands; when it is cancelled it ends them with SIGKILL."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []
        self.lose = False

    async def __call__(self, argv: Sequence[str], stdin: bytes) -> Finished:
        self.commands.append(argv)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*bare().command(argv), stdin=pipe, stdout=pipe, stderr=pipe)
        try:
            out, err = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.wait()
        if self.lose:
            self.lose = False
            return Finished(255, b"", b"the network is down\n")
        return Finished(process.returncode or 0, out, err)
