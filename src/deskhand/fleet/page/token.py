"""The token of a status page, in a file for its owner alone: the same for all pages of one name."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import tempfile
import time

from deskhand.errors import SetupError
from deskhand.hand.state import make_own_directory

#: What a token begins with that was made here. One that somebody has put there begins otherwise, and is left there.
_MADE = "fleet-"
#: Characters that a token has at least, and bytes of its file that are read.
_LEAST, _MOST = 16, 4096
#: Seconds that its file may be locked by one who removes it, and between two looks.
_LOCKED, _LOOK = 5.0, 0.01


def token_file(name: str) -> str:
    """The file with the token of the pages of the fleet ``name``."""
    return os.path.join(make_own_directory("fleet"), f"{name}.token")


class Token:
    """The token of the fleet ``name``, made when there is none, and in use until it is closed or removed.

    ``path`` is its file, ``text`` the token. While it is in use the file has a shared lock (flock(2)), so that no other
    page of that name removes it.

    Raises:
        SetupError: Its file can not be made or read, or holds no token.
    """

    def __init__(self, name: str) -> None:
        self.path = token_file(name)
        deadline = time.monotonic() + _LOCKED
        while (descriptor := self._take()) is None:
            if time.monotonic() > deadline:
                raise SetupError(f"{self.path} stays locked by another process: end it and try again")
            time.sleep(_LOOK)  # flock has no deadline of its own
        try:
            self.text = os.read(descriptor, _MOST).decode("ascii", "replace").strip()
            if len(self.text) < _LEAST:
                raise SetupError(f"{self.path} holds no token of {_LEAST} characters or more: remove it, or write one")
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def close(self) -> None:
        """It is not in use here any more; its file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Remove the file, if its token was made here and no other page has it in use."""
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):  # another page has it, and will remove it
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.text.startswith(_MADE) and _stands_at(self.path, self._descriptor):
                os.unlink(self.path)
        self.close()

    def _take(self) -> int | None:
        """The file, made when there is none, and locked; None when another process just removes it."""
        try:
            if not os.path.lexists(self.path):
                _make(self.path)
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            if os.path.islink(self.path):
                raise SetupError(f"the token {self.path} leads to a file that is not there: remove it") from None
            return None
        except OSError as error:
            raise SetupError(f"the token {self.path} can not be made or read: {error.strerror}") from None
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.path.islink(self.path) or _stands_at(self.path, descriptor):
                return descriptor
        os.close(descriptor)
        return None


def _make(path: str) -> None:
    """Put a token there, whole from the first moment on; one that is there already stays."""
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))  # for its owner alone
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(f"{_MADE}{secrets.token_urlsafe(32)}\n")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _stands_at(path: str, descriptor: int) -> bool:
    """Whether it is that file, and neither another that has taken its place nor a link."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
