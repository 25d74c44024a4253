"""A desktop apart from the others: bubblewrap, with a file system and a network of its own, and a HOME in memory.

Processes of one desktop::

    supervisor
      X server           outside: its socket is shown to this sandbox alone
      bwrap (monitor)    ends with the supervisor
        sleep            holds the namespaces
      bus, session ...   each entered with nsenter(1), as the desktop's account, and never as root

The X server's abstract socket stays: servers that are to find a free display number tell each other by it. It belongs
to the machine's network namespace, and so no sandbox with a network of its own can reach it.

What is mounted is mounted in the sandbox's own mount namespace: the kernel takes it away with the last process in
there, whatever was killed. Processes are those of the machine (no PID namespace), so that what is known of them
outside holds inside, and so is System V shared memory, which the X server shares with its clients. What listens in
there is reached by the root directory of the process that holds the namespaces (proc(5), /proc/pid/root).
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import Any

from ..hand.errors import SetupError
from . import xserver
from .account import Account

#: Kinds of HOME: a directory on the disk; in memory; in memory over a template that is not written to.
HOMES = ("directory", "tmpfs", "overlay")
#: MiB of memory that the files of one desktop may take, when nothing else is said; and what they may be told to take.
SIZE, LEAST, MOST = 1024, 16, 1 << 20
#: The display's other name in there: what tools take that are told of no display.
FIRST_DISPLAY = 1
_PROGRAMS = ("bwrap", "nsenter", "setpriv", "unshare", "mount", "tar")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What is seen of this machine, and not written to.
_SEEN = ("/usr", "/opt", "/etc", "/sys", "/var", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: Where the launcher finds this package in there: the account may not be let to where it is here.
PACKAGE_SEEN = "/run/deskhand-package"
#: Where the launcher listens in there.
LAUNCHER_SOCKET = "/run/launcher/launcher.sock"

# As root, or as the root of a user namespace. All that the desktop can write, but a HOME on the disk, is one tmpfs.
# What the template has wins over what we put into every HOME. Processes of other accounts are not seen.
_PREPARE = """set -e
place=$1 seed=$2 owner=$3 home=$4 size=$5 template=$6 terminals=$7 overlay=$8; shift 8
mount -t tmpfs -o "size=${size}m,mode=0755,nosuid,nodev" deskhand "$place"
cd "$place"
mkdir root pts proc tmp var-tmp shm run home upper work
mkdir -m 0700 user run/launcher
chmod 1777 tmp var-tmp shm
mkdir -m 1777 tmp/.ICE-unix
mkdir -m 755 tmp/.X11-unix
mount -t devpts -o "newinstance,ptmxmode=0666,mode=0620$terminals" devpts pts
if [ "$home" = overlay ]; then
  mount -t overlay -o "lowerdir=$template,upperdir=$place/upper,workdir=$place/work$overlay" deskhand home
fi
if [ "$home" != directory ]; then
  tar -C "$seed" -cf - . | tar -C home --skip-old-files --numeric-owner -xpf -
  chmod 0700 home
fi
if [ -n "$owner" ]; then
  chown "$owner" root home user run/launcher
  mount -t proc -o nosuid,nodev,noexec,hidepid=2 proc proc
  if [ "$home" = overlay ]; then chown -R --no-dereference "$owner" home; fi
fi
exec "$@"
"""


@dataclass(frozen=True)
class Isolation:
    """How far a desktop is apart from the others of its machine.

    Args:
        network: Whether it has a network of its own, in which there is nothing but loopback.
        home: ``directory``, ``tmpfs`` or ``overlay``, see ``HOMES``.
        template: The directory under an ``overlay``; it is read only.
        size: MiB that its files in memory may take: HOME, ``/tmp``, and what is written at ``/``.
        see: More directories of this machine that it sees, and can not write to.
    """

    network: bool = True
    home: str = "tmpfs"
    template: str = ""
    size: int = SIZE
    see: tuple[str, ...] = ()

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Isolation:
        return cls(**{**facts, "see": tuple(facts["see"])})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def check(self) -> None:
        """That this can be had here, as far as it can be told before it is tried.

        Raises:
            SetupError: It can not; says why and what to do.
        """
        if self.home not in HOMES:
            raise SetupError(f"{self.home!r} is no kind of HOME: use {', '.join(HOMES)}")
        if not LEAST <= self.size <= MOST:
            raise SetupError(f"{self.size} MiB is no size for a HOME in memory: use {LEAST} to {MOST}")
        if (self.home == "overlay") != bool(self.template):
            raise SetupError("a HOME that is an overlay needs a template, and only that one has one: give both")
        for path in (self.template, *self.see):
            # They are options of mount(8), which has no way to write these.
            if path and (not os.path.isabs(path) or set(path) & set(":,\\\n") or not os.path.isdir(path)):
                raise SetupError(f"{path!r} is no directory, or its path is not absolute or has one of : , \\ in it")
        missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
        if missing:
            raise SetupError(
                f"desktops can not be isolated here: {' and '.join(missing)} is not there. Install with: "
                "apt-get install bubblewrap util-linux"
            )


class Sandbox:
    """The sandbox of one desktop of ``account``, whose own files are below ``directory``."""

    def __init__(self, isolation: Isolation, account: Account, directory: str) -> None:
        self._isolation = isolation
        self._account = account
        self._directory = directory
        self._python, self._python_directory = _python()

    @property
    def launcher_command(self) -> list[str]:
        """What serves launches in there, for this user; with ``PYTHONPATH`` as ``PACKAGE_SEEN``."""
        module = ["-P", "-m", "deskhand.computerd.launcher"]
        return [self._python, *module, "--socket", LAUNCHER_SOCKET, "--serve-uid", str(os.geteuid())]

    def make_directories(self) -> None:
        """What is mounted at."""
        os.mkdir(self._place, 0o700)

    def command(self, display: int, tell: int) -> list[str]:
        """What makes it, and then tells the pid that holds its namespaces, a line on the descriptor ``tell``."""
        isolation, account = self._isolation, self._account
        root = account.switch
        owner = f"{account.uid}:{account.gid}" if root else ""
        # metacopy: a file that changes only its owner is not copied. The other is how a user namespace marks files.
        overlay, terminals = (",metacopy=on", ",gid=5") if root else (",userxattr", "")
        prepare = [
            *(self._place, os.path.join(self._directory, "home"), owner, isolation.home, str(isolation.size)),
            *(isolation.template, terminals, overlay),
        ]
        namespaces = [] if root else ["--user", "--map-root-user"]
        hold = ["sh", "-c", f"echo $$ > /proc/self/fd/{tell}; exec sleep infinity"]
        return [
            *("unshare", *namespaces, "--mount", "--propagation", "private", "--"),
            *("sh", "-c", _PREPARE, "sh", *prepare),
            *("bwrap", *self._bwrap(display), "--", *hold),
        ]

    def enter(self, pid: int, directory: str | None = None) -> list[str]:
        """What runs a command in there, before the command itself: as the desktop's account, without privileges.

        ``pid`` holds the namespaces; ``directory`` is where the command begins, as seen in there (None: HOME).
        """
        return enter(pid, self._account, self._isolation.network, directory or os.path.join(self._directory, "home"))

    @property
    def _place(self) -> str:
        return os.path.join(self._directory, "sandbox")

    def _bwrap(self, display: int) -> list[str]:
        isolation, account, directory, place = self._isolation, self._account, self._directory, self._place
        words = ["--die-with-parent", "--bind", f"{place}/root", "/"]
        if not account.switch:
            words += ["--unshare-user", "--uid", str(account.uid), "--gid", str(account.gid)]
        if isolation.network:
            words += ["--unshare-net"]
        for path in _SEEN:
            if os.path.islink(path):
                words += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                words += ["--ro-bind", path, path]
        words += ["--bind", f"{place}/proc", "/proc"] if account.switch else ["--proc", "/proc"]
        words += ["--tmpfs", "/dev"]
        for name in _DEVICES:
            words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
        for target, path in (("/proc/self/fd", "/dev/fd"), ("pts/ptmx", "/dev/ptmx")):
            words += ["--symlink", target, path]
        for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
            words += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
        words += ["--dev-bind", f"{place}/pts", "/dev/pts"]
        for own, path in (("shm", "/dev/shm"), ("tmp", "/tmp"), ("var-tmp", "/var/tmp"), ("run", "/run")):
            words += ["--bind", f"{place}/{own}", path]
        words += ["--remount-ro", "/dev"]
        if os.path.dirname(directory).startswith("/var/"):
            words += ["--tmpfs", os.path.dirname(directory)]  # the other desktops'
        for path in (*isolation.see, *([self._python_directory] if self._python_directory else [])):
            words += [*_parents(path), "--ro-bind", path, path]
        home = f"{directory}/home"
        words += [*_parents(home), "--bind", home if isolation.home == "directory" else f"{place}/home", home]
        words += ["--bind", f"{place}/tmp", f"{directory}/tmp", "--bind", f"{place}/user", f"{directory}/run"]
        bus = f"{directory}/run/system_bus"  # that of a session which has one: it is nobody's, and runs outside
        words += ["--bind", bus, bus] if os.path.exists(bus) else []
        words += ["--ro-bind", f"{directory}/Xauthority", f"{directory}/Xauthority"]
        for number in sorted({display, FIRST_DISPLAY}):
            path = f"{xserver.SOCKET_DIRECTORY}/X{display}"
            words += ["--bind", path, f"{xserver.SOCKET_DIRECTORY}/X{number}"]
        package = f"{PACKAGE_SEEN}/deskhand"
        return [*words, *_parents(package), "--ro-bind", _PACKAGE, package, "--chdir", "/"]


def enter(pid: int, account: Account, network: bool, directory: str) -> list[str]:
    """See ``Sandbox.enter``.

    The account can write at ``/`` in there, and so decide what a program is loaded with: nothing may be executed in
    there before it has become the account.
    """
    become = ["--setgid", str(account.gid), "--setuid", str(account.uid)]
    if not account.switch:
        become = ["--user", "--preserve-credentials"]
    where = ["--mount", *(["--net"] if network else [])]
    begin = ["env", f"--chdir={directory}"]
    return ["setpriv", "--no-new-privs", "--", "nsenter", f"--target={pid}", *where, *become, "--", *begin]


def launcher_socket(pid: int) -> str:
    """Where it is reached from outside; ``pid`` holds the namespaces. What stands there is the account's to change."""
    return f"/proc/{pid}/root{LAUNCHER_SOCKET}"


def _parents(path: str) -> list[str]:
    """The directories above ``path``, for everybody to enter: bubblewrap would make them for root alone."""
    parts = path.strip("/").split("/")[:-1]
    paths = ["/" + "/".join(parts[:number]) for number in range(1, len(parts) + 1)]
    return [word for path in paths for word in ("--perms", "0755", "--dir", path)]


def _python() -> tuple[str, str]:
    """A Python for the launcher, and the directory that it must be shown with; ``""`` when it is seen anyway."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if os.access(path, os.X_OK):
            return path, ""
    prefix = os.path.realpath(sys.base_prefix)
    seen = any(prefix == path or prefix.startswith(path + "/") for path in _SEEN)
    return os.path.join(prefix, "bin", version), "" if seen else prefix
