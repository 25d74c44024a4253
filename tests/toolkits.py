"""Windows of real toolkits, and what they say they received."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deskhand.testing import XServer

FIXTURES = Path(__file__).parent / "fixtures"
#: The distribution's own Python, which has its toolkits.
PYTHON = "/usr/bin/python3"
_NEEDED = {
    "gtk": "import gi; gi.require_version('Gtk', '3.0')",
    "gtk4": "import gi; gi.require_version('Gtk', '4.0')",
    "qt": "import PyQt5.QtWidgets",
    "qt6": "import PyQt6.QtWidgets",
    "tk": "import tkinter",
}


class ToolkitWindow:
    """One running fixture window; ``lines`` is its log so far."""

    def __init__(self, log: Path, process: subprocess.Popen[bytes]) -> None:
        self._log = log
        self.process = process

    @property
    def lines(self) -> list[dict[str, Any]]:
        if not self._log.exists():
            return []
        whole = self._log.read_bytes().rpartition(b"\n")[0]  # a line being written is not one yet
        return [json.loads(line) for line in whole.splitlines()]

    @property
    def text(self) -> str:
        """What stands in the window."""
        return next((str(line["text"]) for line in reversed(self.lines) if "text" in line), "")

    def all(self, name: str) -> list[Any]:
        """Every value of that name, in order."""
        return [line[name] for line in self.lines if name in line]

    def keys(self) -> list[str]:
        """The names of the keys pressed, modifiers left out."""
        modifiers = ("Shift", "Control", "Alt", "Super", "ISO_Level3")
        return [str(key) for key in self.all("key") if not str(key).startswith(modifiers)]

    def until(self, condition: Callable[[ToolkitWindow], Any], timeout: float = 10.0) -> bool:
        """Wait until ``condition`` holds: the window writes its log when it gets round to it."""
        deadline = time.monotonic() + timeout
        while not condition(self):
            if time.monotonic() > deadline or self.process.poll() is not None:
                return bool(condition(self))
            time.sleep(0.01)  # a file in another process's hands has no event of its own
        return True

    def shows(self, text: str, timeout: float = 10.0) -> bool:
        """Whether the window comes to hold exactly ``text``."""
        return self.until(lambda window: window.text == text, timeout)


@contextmanager
def toolkit_window(
    server: XServer, kind: str, log: Path, *arguments: str, focused: bool = True
) -> Iterator[ToolkitWindow]:
    """A window of ``kind`` (gtk, gtk4, qt, qt6, tk) that is mapped and has the keyboard focus (``focused``)."""
    if subprocess.run([PYTHON, "-c", _NEEDED[kind]], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} can not {_NEEDED[kind]}")
    env = {**server.env, "LC_ALL": "C.UTF-8", "GTK_IM_MODULE": "gtk-im-context-simple", "NO_AT_BRIDGE": "1"}
    program, options = ("qt", ("--6",)) if kind == "qt6" else (kind, ())
    command = [PYTHON, str(FIXTURES / f"{program}_text.py"), str(log), *options, *arguments]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    window = ToolkitWindow(log, process)
    try:
        if not window.until(lambda w: w.all("ready" if focused else "mapped")):
            process.kill()
            raise AssertionError(f"{kind} window did not come up: {process.communicate()[1].decode()}")
        yield window
    finally:
        process.terminate()
        process.send_signal(signal.SIGCONT)
        process.communicate()


@contextmanager
def busy(cores: int = os.cpu_count() or 2) -> Iterator[None]:
    """Every core has something to do."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(cores)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
