"""What exactly was compared: the versions of this project, of the peers, and of the desktop under them."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

from bench.sides import PEERS_PYTHON

#: Debian packages that a side is, or that what it drives is.
DEBIAN = (
    "xvfb",
    "xfce4-session",
    "xfwm4",
    "openbox",
    "xdotool",
    "imagemagick",
    "scrot",
    "maim",
    "python3-gi",
    "python3-xdg",
    "libgtk-3-0",
    "libgtk-4-1",
    "libqt5widgets5",
    "libqt6widgets6",
    "firefox-esr",
    "thunar",
    "mousepad",
    "xterm",
    "xfce4-terminal",
)
#: PyPI projects in the peers' own environment.
PYPI = ("mss", "pillow", "pyautogui", "pynput", "modal-computer-use")


def versions() -> dict[str, str]:
    """Name to version, this project's revision first; what is not installed is left out."""
    return {"deskhand": _ours(), **_pypi(), **_debian()}


def _ours() -> str:
    root = Path(__file__).parents[1]
    found = _output("git", "-C", str(root), "rev-parse", "--short", "HEAD")
    return f"{version('deskhand')} ({found.strip()})" if found.strip() else version("deskhand")


def _debian() -> dict[str, str]:
    found = _output("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n", *DEBIAN)
    lines = (line.split() for line in found.splitlines())
    return {words[1]: words[2] for words in lines if len(words) == 3 and words[0] == "installed"}


def _pypi() -> dict[str, str]:
    try:
        listed = json.loads(_output(PEERS_PYTHON, "-m", "pip", "list", "--format", "json"))
    except ValueError:
        return {}
    have = {one["name"].lower(): str(one["version"]) for one in listed}
    return {name: have[name] for name in PYPI if name in have}


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    except OSError:
        return ""
