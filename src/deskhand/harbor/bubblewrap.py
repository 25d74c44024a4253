"""A sandbox of bubblewrap: its own mount, process, network, IPC and host name namespaces over a scratch root.

Processes::

    this process
      bwrap (monitor)              ends with this process, and everything below with it
        bwrap (process 1 in there)
          the entry point, and what it starts
      nsenter (one each command)   enters the namespaces and ends with its command

The machine's programs are seen and can not be written (``/usr``, ``/opt``); everything else is a scratch directory of
the sandbox's own. Who is root in there is nobody outside: when we are root, its users are 65,536 user ids that no
account has; else it has one user, which is us, and programs that change their groups (``xterm``, ``su``) do not run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from deskhand.errors import SetupError

#: Seeing these is enough: programs, their data, and caches that are slow to make.
_SEEN = ("/usr", "/opt", "/var/cache/fontconfig", "/var/lib/dpkg")
_MADE = (
    "dev",
    "home",
    "logs",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "srv",
    "sys",
    "tmp",
    "tests",
    "usr",
    "var",
)
_MADE_IN_VAR = ("cache", "lib", "local", "lock", "log", "run", "spool", "tmp")
_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
#: User ids of a sandbox, and where they may begin: far above what accounts, and their subordinate ids, are given.
_USERS = 1 << 16
_FIRST_USERS = range(1 << 30, 1 << 31, _USERS)
#: What root in there may do, within its own users and files: as in a container.
_CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE"),
    *("SYS_CHROOT", "SETFCAP", "AUDIT_WRITE"),
)
#: Seconds that bwrap gets to have made the namespaces, and to end.
_PATIENCE = 20.0
ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/bash",
    "USER": "root",
}


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    stdout: bytes
    stderr: bytes


class CommandTimeout(Exception):
    """The command took too long and has been killed."""


class BubblewrapSandbox:
    """One sandbox.

    Args:
        image: A directory that holds another system's files, to be seen instead of this machine's.
        share_network: Use this machine's network. Else there is only a loopback interface.
    """

    def __init__(self, image: str = "/", share_network: bool = False) -> None:
        self._image = Path(image)
        self._share_network = share_network
        self._place: Path | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._inside = 0

    @property
    def runs(self) -> bool:
        """Whether its first process runs."""
        return self._process is not None and self._process.returncode is None

    @property
    def root(self) -> Path:
        """Its root directory as seen from here: to look into. What writes there must not follow links in it."""
        assert self._place is not None, "it has not been started"
        return self._place / "root"

    async def start(self, command: Sequence[str] = ("sleep", "infinity"), env: Mapping[str, str] | None = None) -> None:
        """Make it and start its first command; when that ends, the sandbox does.

        Raises:
            SetupError: There is no bubblewrap here, or it can not make the namespaces; says why.
        """
        for program in ("bwrap", "nsenter", "setpriv", "unshare"):
            if shutil.which(program) is None:
                raise SetupError(f"{program} is not there. Install it with: apt-get install bubblewrap util-linux")
        self._place = Path(tempfile.mkdtemp(prefix="deskhand-sandbox-"))
        try:
            await asyncio.to_thread(self._make_root)
            await self._start(command, {**ENVIRONMENT, **(env or {})})
        except BaseException:
            await self.stop()
            raise

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        user: str | int | None = None,
        timeout: float | None = None,
    ) -> Ended:
        """Run a command in there. When it takes too long, or the call is cancelled, it and its group are killed.

        Raises:
            CommandTimeout: It took too long.
            SetupError: The sandbox has ended.
        """
        if not self.runs:
            raise SetupError("the sandbox has ended")
        process = await asyncio.create_subprocess_exec(
            *self._enter(cwd, user),
            *command,
            stdin=stdin if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=stdout if stdout is not None else asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**ENVIRONMENT, **(env or {})},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(timeout):
                out, errors = await process.communicate()
        except TimeoutError:
            raise CommandTimeout(f"it had not ended after {timeout:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return Ended(process.returncode or 0, out or b"", errors or b"")

    async def stop(self) -> None:
        """End every process in there and remove its files. Calling it again does nothing."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            for end in (process.terminate, process.kill):
                with contextlib.suppress(ProcessLookupError):
                    end()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PATIENCE):
                        await process.wait()
                        break
        place, self._place = self._place, None
        if place is not None:
            await asyncio.to_thread(_remove, place)

    # -- how it is made

    def _make_root(self) -> None:
        root = self.root
        for name in _MADE:
            (root / name).mkdir(parents=True)
        for name in _MADE_IN_VAR:
            (root / "var" / name).mkdir()
        for name in ("tmp", "var/tmp", "run/user", "tmp/.X11-unix", "tmp/.ICE-unix"):
            (root / name).mkdir(exist_ok=True)
            (root / name).chmod(0o1777)
        for name in _LINKED:
            here = self._image / name
            if here.is_symlink():
                (root / name).symlink_to(here.readlink())
        shutil.copytree(self._image / "etc", root / "etc", symlinks=True, copy_function=_copy, ignore=_unreadable)
        (root / "etc" / "hosts").write_text("127.0.0.1 localhost trial\n")
        group = root / "etc" / "group"
        if group.is_file():
            # Terminals would give their device to this group, which is not there when we are not root.
            kept = [line for line in group.read_text().splitlines(True) if not line.startswith("tty:")]
            group.write_text("".join(kept))
        (root / "var" / "lib" / "dbus").mkdir()
        (root / "var" / "lib" / "dbus" / "machine-id").symlink_to("/etc/machine-id")
        for path in _SEEN:
            if (self._image / path[1:]).is_dir():
                (root / path[1:]).mkdir(parents=True, exist_ok=True)

    async def _start(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        assert self._place is not None
        if os.geteuid() != 0:
            await self._start_bwrap([], ["--unshare-user"], command, env, ())
            return
        first = secrets.choice(_FIRST_USERS)
        await asyncio.to_thread(_give, self._place, first)
        owner = ["setpriv", f"--reuid={first}", f"--regid={first}", "--clear-groups"]
        users = await _users(owner, first)
        try:
            await self._start_bwrap(owner, ["--userns", str(users)], command, env, (users,))
        finally:
            os.close(users)

    async def _start_bwrap(
        self,
        owner: Sequence[str],
        users: Sequence[str],
        command: Sequence[str],
        env: Mapping[str, str],
        fds: tuple[int, ...],
    ) -> None:
        assert self._place is not None
        reader, writer = os.pipe()
        seen, see = os.pipe()
        log = (self._place / "log").open("wb")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *owner,
                *self._bwrap(users, writer),
                # Its namespaces are told before its root is in place; what runs in there has the root.
                *("bash", "-c", f'echo >&{see}; exec {see}>&-; exec "$@"', "bash"),
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(env),
                pass_fds=(writer, see, *fds),
                start_new_session=True,
            )
        finally:
            os.close(writer)
            os.close(see)
            log.close()
        with os.fdopen(reader, "rb") as told, os.fdopen(seen, "rb") as begun:
            try:
                async with asyncio.timeout(_PATIENCE):
                    said = await _all_of(told) if await _all_of(begun) else b""
            except TimeoutError:
                said = b""
        try:
            self._inside = int(json.loads(said)["child-pid"])
        except (ValueError, KeyError):
            why = (self._place / "log").read_text(errors="replace").strip().rpartition("\n")[2]
            raise SetupError(f"bubblewrap can not make a sandbox here: {why or 'it said nothing'}") from None

    def _bwrap(self, users: Sequence[str], tell: int) -> list[str]:
        seen: list[str] = []
        for path in _SEEN:
            if (self._image / path[1:]).is_dir():
                seen += ["--ro-bind", str(self._image / path[1:]), path]
        network = [] if self._share_network else ["--unshare-net"]
        may = [word for name in _CAPABILITIES for word in ("--cap-add", f"CAP_{name}")]
        return [
            *("bwrap", *users, "--uid", "0", "--gid", "0", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
            *network,
            *may,
            *("--hostname", "trial", "--die-with-parent", "--info-fd", str(tell)),
            *("--bind", str(self.root), "/", *seen, "--proc", "/proc", "--dev", "/dev", "--chdir", "/", "--"),
        ]

    def _enter(self, cwd: str, user: str | int | None) -> list[str]:
        network = [] if self._share_network else ["--net"]
        where = ["--user", "--mount", "--pid", "--ipc", "--uts", *network]
        # Without it the working directory would stay one of ours. Where the command begins is walked to in there: a
        # link on the way would lead through our directories.
        where += ["--root", f"--wd=/proc/{self._inside}/root"]
        walk = ["sh", "-c", 'cd -- "$0" && exec "$@"', cwd]
        become: list[str] = []
        if user not in (None, "root", 0, "0"):
            if os.geteuid() != 0:
                raise SetupError(f"this sandbox has no user {user!r}: it has others than root only when root makes it")
            switch = 'exec setpriv --reuid="$0" --regid="$(id -g "$0")" --init-groups -- "$@"'
            become = ["sh", "-c", switch, str(user)]
        return ["nsenter", f"--target={self._inside}", *where, "--", *become, *walk]


async def _users(owner: Sequence[str], first: int) -> int:
    """A new user namespace of 65,536 users, the first of whom owns it: a descriptor of it."""
    process = await asyncio.create_subprocess_exec(
        *owner,
        *("unshare", "--user", "--", "sh", "-c", "echo; read _"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(_PATIENCE):
            if not await process.stdout.readline():
                why = (await process.stderr.read()).decode("utf-8", "replace").strip()
                raise SetupError(f"no user namespace can be made here: {why}")
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{process.pid}/{name}").write_text(f"0 {first} {_USERS}")
        return os.open(f"/proc/{process.pid}/ns/user", os.O_RDONLY)
    except (OSError, TimeoutError) as error:
        raise SetupError(f"no user namespace can be made here: {error}") from None
    finally:
        process.stdin.close()
        await process.wait()


async def _all_of(file: IO[bytes]) -> bytes:
    """All that is said on a pipe until its other end is closed."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    try:
        return await reader.read()
    finally:
        transport.close()


def _copy(source: str, target: str) -> str:
    return str(shutil.copy2(source, target))


def _unreadable(directory: str, names: list[str]) -> list[str]:
    """What not everybody may read stays outside: passwords, keys."""
    left = []
    for name in names:
        mode = os.lstat(os.path.join(directory, name)).st_mode
        readable = mode & (stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0))
        if not stat.S_ISLNK(mode) and not ((stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and readable):
            left.append(name)
    return left


def _give(place: Path, uid: int) -> None:
    for directory, folders, files in os.walk(place):
        for name in (".", *folders, *files):
            os.lchown(os.path.join(directory, name), uid, uid)


def _remove(place: Path) -> None:
    """Directories that their owner may not enter are opened first; links are never followed."""
    for directory, folders, _ in os.walk(place):
        for name in folders:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(place, ignore_errors=True)
