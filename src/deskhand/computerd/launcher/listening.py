"""The launcher's socket file: ``/run/launcher/launcher.sock``, in a directory that only two accounts may enter.

The directory is 0750, the launcher's own, with computerd's group; the socket is 0666, as the directory and the peer's
credentials already say who is let in. Modes are set by chmod: a umask would reach every application.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import socket
import stat
from collections.abc import Iterator
from typing import Any

from ...hand.errors import SetupError
from .server import Server

DEFAULT_SOCKET = "/run/launcher/launcher.sock"
_BACKLOG = 64
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38


def serve(path: str, serve_uid: int, display: str, xauthority: str | None = None, new_privileges: bool = False) -> None:
    """Listen at ``path`` and serve the account ``serve_uid`` until SIGTERM or SIGINT.

    Unless ``new_privileges``, this process and all that it starts can gain none: no set-uid program works below it.

    Raises:
        SetupError: the socket can not be made; says what to do. Or this is root, whose applications could read all.
    """
    if os.geteuid() == 0:
        raise SetupError(
            "the launcher must not run as root, or applications could read computerd's token: run it as the desktop's"
            " account (setpriv --reuid=desk --regid=desk --init-groups deskhand launcher ...)"
        )
    if not new_privileges:
        _give_up_privileges()
    with listener(path, serve_uid) as listening:
        server = Server(listening, serve_uid, display, xauthority)

        def stop(*_: Any) -> None:
            server.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        server.serve()


@contextlib.contextmanager
def listener(path: str, serve_uid: int) -> Iterator[socket.socket]:
    """A socket that listens at ``path``; the file goes when the block is left.

    Raises:
        SetupError: the directory is not fit for it, or another launcher listens there.
    """
    _prepare_directory(os.path.dirname(os.path.abspath(path)), serve_uid)
    _remove_dead(path)
    # Under its name only once it listens: who finds it can connect.
    unfinished = f"{path}.{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        try:
            listening.bind(unfinished)
            os.chmod(unfinished, 0o666)
            listening.listen(_BACKLOG)
            made = os.stat(unfinished).st_ino
            os.rename(unfinished, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            raise SetupError(f"the launcher can not listen at {path}: {error.strerror or error}") from None
        try:
            yield listening
        finally:
            with contextlib.suppress(OSError):
                if os.lstat(path).st_ino == made:  # and not another launcher's by now
                    os.unlink(path)


def _prepare_directory(directory: str, serve_uid: int) -> None:
    uid = os.geteuid()
    group = _group_of(serve_uid)
    advice = f"make it with: install -d -o {_name(uid)} -g {_name(serve_uid)} -m 0750 {directory}"
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise SetupError(f"the directory {directory} can not be made ({error.strerror}): {advice}") from None
    else:
        with contextlib.suppress(OSError):  # not everybody may give a directory away; it is told below
            os.chown(directory, -1, group)
        os.chmod(directory, 0o750)
    facts = os.lstat(directory)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != uid:
        raise SetupError(f"{directory} is not a directory of {_name(uid)}'s own: {advice}")
    if facts.st_mode & 0o027:
        raise SetupError(f"others may enter {directory}, or write to it (mode {facts.st_mode & 0o777:04o}): {advice}")
    if serve_uid not in (uid, 0) and not (facts.st_mode & 0o010 and facts.st_gid in _groups_of(serve_uid)):
        raise SetupError(f"{_name(serve_uid)} can not enter {directory}: {advice}")


def _remove_dead(path: str) -> None:
    """Remove the socket of a launcher that is gone."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise SetupError(f"{path} is there and is no socket: remove it, or listen elsewhere")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError:
            pass  # a full backlog is a living launcher's
    raise SetupError(f"another launcher listens at {path}: end it, or listen elsewhere")


def _give_up_privileges() -> None:
    """prctl(2), PR_SET_NO_NEW_PRIVS and PR_CAPBSET_DROP. The second takes CAP_SETPCAP, which an account seldom has."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    for capability in range(64):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise SetupError(f"privileges can not be given up: {os.strerror(ctypes.get_errno())}")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_of(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def _groups_of(uid: int) -> list[int]:
    return os.getgrouplist(_name(uid), _group_of(uid))
