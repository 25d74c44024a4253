"""Ends the desktops of a host that was killed: ``python -m deskhand.fleet.warden MARK``.

It waits for the end of its standard input, which is a pipe from the host, and then ends every desktop that carries the
host's mark. A host that ends by itself has ended its desktops, and says so first. It is no child of the host: engines
kill the children of a worker that ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from deskhand.errors import SetupError
from deskhand.fleet.making import desktops_of, end_desktop

#: Seconds after which no desktop can come up any more that was being started when the host died.
_LATE = 2.0
_START = 30.0
_DONE = b"done"


class Warden:
    """Watches over the desktops of the host ``mark``, which is this process."""

    def __init__(self, mark: str) -> None:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        started = subprocess.Popen(
            [sys.executable, "-m", "deskhand.fleet.warden", mark],
            env={**os.environ, "PYTHONPATH": package},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.wait(_START)
        if started.returncode != 0:
            raise SetupError(f"the warden of the fleet did not start (exit status {started.returncode})")
        assert started.stdin is not None
        self._pipe = started.stdin

    def dismiss(self) -> None:
        """All desktops have ended: nothing is left to do."""
        try:
            self._pipe.write(_DONE)
        except OSError:
            pass  # somebody has ended it
        self.take_over()

    def take_over(self) -> None:
        """Have it end what is left, as if this process had died."""
        try:
            self._pipe.close()
        except OSError:
            pass


def end_all(mark: str) -> None:
    """End the desktops of the host ``mark``, also one that comes up late."""
    deadline = time.monotonic() + _LATE
    while True:
        found = desktops_of(mark)
        with ThreadPoolExecutor(8) as threads:
            for ended in [threads.submit(end_desktop, facts) for facts in found]:
                try:
                    ended.result()
                except SetupError as error:
                    print(f"deskhand: {error}", file=sys.stderr)
        if time.monotonic() > deadline:
            return
        time.sleep(0.2)  # a supervisor tells nobody but its starter that it is up


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # what ends the host's whole group must not end this too
    if os.fork():
        os._exit(0)
    os.setsid()
    said = b""
    while piece := os.read(sys.stdin.fileno(), 4096):
        said += piece
    if said != _DONE:
        end_all(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
