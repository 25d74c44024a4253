"""Run the ``deskhand`` command as its users do: a process of its own, its exit status, and what it printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deskhand.testing import XServer

PROGRAM = str(Path(sys.executable).with_name("deskhand"))


class Answer(NamedTuple):
    """How the command ended. ``error`` is its line on standard error, without the program's name."""

    status: int
    output: bytes
    error: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)

    @property
    def text(self) -> str:
        return self.output.decode().removesuffix("\n")


def environment(server: XServer | None, **more: str) -> dict[str, str]:
    """What the command gets: the test's environment on that display; without one, no display at all."""
    base = dict(server.env if server is not None else os.environ)
    if server is None:
        for name in ("DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY"):
            base.pop(name, None)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "DESKHAND_TRACEBACK"):
        base.pop(name, None)
    return {**base, **more}


def deskhand(
    server: XServer | Mapping[str, str] | None,
    *words: str,
    stdin: Any = b"",
    cwd: Path | None = None,
    timeout: float = 90,
    verbose: bool = False,
) -> Answer:
    """Run the command to its end. However it ends, it prints no traceback, and its error is one line."""
    env = environment(server) if server is None or isinstance(server, XServer) else dict(server)
    data = stdin if isinstance(stdin, bytes) else json.dumps(stdin).encode()
    done = subprocess.run([PROGRAM, *words], input=data, env=env, cwd=cwd, capture_output=True, timeout=timeout)
    error = done.stderr.decode()
    assert "Traceback" not in error, error
    if not verbose:
        assert len(error.splitlines()) == (1 if done.returncode else 0), error
        assert not error or error.startswith("deskhand: "), error
    return Answer(done.returncode, done.stdout, error.removeprefix("deskhand: ").removesuffix("\n"))


def act(server: XServer | Mapping[str, str] | None, *actions: Mapping[str, Any], **more: Any) -> Answer:
    """``deskhand act --json`` with an envelope of these actions."""
    return deskhand(server, "act", "--json", stdin={"actions": list(actions), **more})


def start(
    server: XServer | Mapping[str, str] | None, *words: str, stdin: Any = None, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start the command and let it run; its outputs are pipes."""
    process = subprocess.Popen(
        [PROGRAM, *words],
        env=environment(server) if server is None or isinstance(server, XServer) else dict(server),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # pytest -n and shells that start it in the background may have it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    assert process.stdin is not None
    if stdin is not None:
        process.stdin.write(json.dumps(stdin).encode())
    process.stdin.close()
    process.stdin = None
    return process
