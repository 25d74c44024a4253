"""A resident hand in a process of its own, and a client of its socket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deskhand
from deskhand.testing import XServer

SOURCES = str(Path(deskhand.__file__).parents[1])
HERE = {"actions": [{"action": "cursor_position"}]}
DOWN = {"actions": [{"action": "key_down", "keys": "shift"}], "settle": {"mode": "none"}}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "deskhand.hand", *arguments]


#: Nothing but what finds the package, and what measures coverage in child processes.
ENV = {"PYTHONPATH": SOURCES, **{name: value for name, value in os.environ.items() if name.startswith("COV")}}


#: A hand whose patience with its clients is not ten seconds.
IMPATIENT = (
    "import sys; from deskhand.hand import resident; resident.PATIENCE = 0.3;"
    " from deskhand.hand.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


@contextmanager
def resident(
    server: XServer, path: Path, *options: str, program: tuple[str, ...] = ("-m", "deskhand.hand")
) -> Iterator[subprocess.Popen[str]]:
    """A resident hand that has said where it is."""
    arguments = [sys.executable, *program, "--resident", str(path), "--display", server.display, *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, stdout=pipe, stderr=pipe, text=True, env=ENV) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said
            assert json.loads(said) == {"resident": str(path), "pid": process.pid}
            yield process
        finally:
            process.terminate()
            try:
                _out, err = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            assert "Traceback" not in err, err


class Client:
    """One connection to a resident hand."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rb")

    def send(self, *requests: Any) -> None:
        self.socket.sendall(b"".join(json.dumps(request).encode() + b"\n" for request in requests))

    def answer(self) -> dict[str, Any]:
        line = self.lines.readline()
        assert line.endswith(b"\n"), line
        return dict(json.loads(line))

    def act(self, request: Any) -> dict[str, Any]:
        self.send(request)
        return self.answer()

    def close(self) -> None:
        self.lines.close()
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
