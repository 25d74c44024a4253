"""The token: where it may come from, and that it goes nowhere else."""

from __future__ import annotations

import ctypes
import os
import stat

from deskhand.computerd.auth import digest
from deskhand.errors import SetupError

#: Characters of a token at least, and bytes of its file at most.
SHORTEST, LONGEST = 16, 4096
_PR_SET_DUMPABLE = 4


def from_file(path: str) -> bytes:
    """The digest of the token in a file that is this user's, or root's, alone.

    Raises:
        SetupError: It can not be read, others may read it, or it holds no token.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise SetupError(
            f"there is no token file {path}: make one with (umask 077; head -c 32 /dev/urandom | base64 > FILE)"
        ) from None
    except OSError as error:
        raise SetupError(f"the token file {path} can not be read: {error.strerror}") from None
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise SetupError(f"the token file {path} is no file: name one, or use --token-fd")
    with open(descriptor, "rb") as file:
        if facts.st_mode & 0o077 or facts.st_uid not in (0, os.geteuid()):
            raise SetupError(f"others may read the token file {path}: give it to computerd's user, and mode 600")
        return _digest(file.read(LONGEST + 1), f"the token file {path}")


def from_descriptor(number: int) -> bytes:
    """The digest of the token that can be read from a descriptor, which is closed then.

    Raises:
        SetupError: It can not be read, or it holds no token.
    """
    try:
        with open(number, "rb") as file:
            return _digest(file.read(LONGEST + 1), f"descriptor {number}")
    except OSError as error:
        raise SetupError(f"the token can not be read from descriptor {number}: {error.strerror}") from None


def keep_memory_private() -> None:
    """Processes of the same user may neither trace this one nor read its memory, nor is it dumped (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _digest(content: bytes, where: str) -> bytes:
    token = content.strip()
    if len(content) > LONGEST or not token.isascii() or not token.decode("ascii", "replace").isprintable():
        raise SetupError(f"{where} holds no token: it is one line of printable ASCII")
    if b" " in token or len(token) < SHORTEST:
        raise SetupError(f"{where} holds no token of {SHORTEST} characters or more, without spaces")
    return digest(token)
