"""What the tests expect of each kind of desktop."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from deskhand.desktop import SESSIONS, DesktopState, start_desktop, stop_desktop
from deskhand.hand import applications, launch_environment
from deskhand.hand.launch import launch
from deskhand.hand.x11 import Connection

from .conftest import nothing_left_of


class Kind(NamedTuple):
    """One kind: its window manager's name, the processes and types of windows it shows itself with, its own programs.

    ``editor``, ``terminal`` and ``files`` are desktop file ids; ``opener`` is what ordinary entries are opened with.
    """

    manager: str
    processes: frozenset[str]
    own_windows: frozenset[str]
    editor: str
    terminal: str
    files: str
    opener: str = "gio launch"
    composited: bool = False


_SHOWN = frozenset({"desktop", "dock"})
KINDS = {
    "xfce": Kind(
        "Xfwm4", frozenset({"xfwm4", "xfdesktop", "xfce4-panel", "xfsettingsd"}), _SHOWN,
        "org.xfce.mousepad", "xfce4-terminal", "thunar", "exo-open",
    ),
    "mate": Kind(
        "Metacity (Marco)", frozenset({"marco", "mate-panel", "caja", "mate-settings-da"}), _SHOWN,
        "pluma", "mate-terminal", "caja-browser",
    ),
    "lxqt": Kind(
        "Openbox", frozenset({"openbox", "lxqt-session", "lxqt-panel", "pcmanfm-qt"}), _SHOWN,
        "featherpad", "qterminal", "pcmanfm-qt",
    ),
    "gnome": Kind(
        "GNOME Shell", frozenset({"gnome-shell"}), frozenset(),
        "org.gnome.TextEditor", "org.gnome.Terminal", "org.gnome.Nautilus", composited=True,
    ),
    "openbox": Kind(
        "Openbox", frozenset({"openbox"}), frozenset(),
        "org.xfce.mousepad", "debian-xterm", "thunar", "Exec line",
    ),
}  # fmt: skip


class Desk(NamedTuple):
    """A desktop of one kind, a connection to it, and launches on it."""

    kind: Kind
    desktop: DesktopState
    conn: Connection

    @property
    def display(self) -> str:
        return self.desktop.display

    def entry(self, name: str) -> applications.Entry:
        """The entry, or a skip where its package is not installed."""
        where = launch_environment.find(self.conn, self.display, self.desktop.xauthority)
        try:
            return applications.find(name, where.env, unlisted=True)
        except applications.UnknownApplication as error:
            pytest.skip(str(error))

    def launch(self, name: str, timeout: float = 30) -> dict[str, Any]:
        entry = self.entry(name)
        return launch(self.conn, None, entry, display=self.display, xauthority=self.desktop.xauthority, timeout=timeout)


def one_desk(session: str) -> Iterator[Desk]:
    """A whole desktop; when it is left, nothing of it may be."""
    command = SESSIONS[session].command[0]
    if shutil.which(command) is None:
        pytest.skip(f"{command} is not installed")
    desktop = start_desktop(session)
    try:
        with Connection.open(desktop.display, desktop.xauthority) as conn:
            yield Desk(KINDS[session], desktop, conn)
    finally:
        stop_desktop(desktop.display)
    nothing_left_of(desktop)
