"""The logs of a desktop's parts: a file each, in a directory of the desktop's own."""

from __future__ import annotations

import os
import sys

#: Bytes after which a log begins anew.
_LIMIT = 8 << 20
#: Of a log that is shown: how many lines, out of how many of its last bytes.
_LINES, _BYTES = 20, 8192


class Logs:
    """Those in ``directory``. With ``console`` what serves the desktop writes to our standard error instead: in a
    container, that is its log.
    """

    def __init__(self, directory: str, console: bool = False) -> None:
        self._directory = directory
        self._console = console

    def open(self, part: str) -> int:
        """A descriptor to write a part's log with, after what is there."""
        return os.open(self._path(part), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def open_service(self, name: str) -> int:
        """The same for what serves the desktop."""
        return os.dup(sys.stderr.fileno()) if self._console else self.open(name)

    def tail(self, part: str) -> list[str]:
        """Its last lines; none where there is no log."""
        try:
            with open(self._path(part), "rb") as file:
                file.seek(max(0, os.path.getsize(self._path(part)) - _BYTES))
                return file.read().decode(errors="replace").splitlines()[-_LINES:]
        except OSError:
            return []

    def cut(self) -> None:
        """Empty those that have grown too long: what the panel starts writes to the session's."""
        for name in os.listdir(self._directory):
            path = os.path.join(self._directory, name)
            if os.path.getsize(path) > _LIMIT:
                os.truncate(path, 0)

    def _path(self, part: str) -> str:
        return os.path.join(self._directory, part.replace(" ", "-") + ".log")
