"""GNOME: gnome-shell on X11 without gnome-session, which wants systemd and logind."""

from __future__ import annotations

import json
import re
import subprocess

from .session import Session

_EXTENSION = "no-overview@deskhand"
#: gnome-shell starts with the overview, which covers the desktop until somebody leaves it.
_EXTENSION_CODE = """
class NoOverview {
    enable() {
        if (!Main.layoutManager._startingUp)
            return;
        const had = Main.sessionMode.hasOverview;
        Main.sessionMode.hasOverview = false;
        Main.layoutManager.connect('startup-complete', () => { Main.sessionMode.hasOverview = had; });
    }

    disable() {}
}
"""
_BEFORE_45 = "const Main = imports.ui.main;" + _EXTENSION_CODE + "function init() { return new NoOverview(); }\n"
_FROM_45 = (
    "import * as Main from 'resource:///org/gnome/shell/ui/main.js';" + _EXTENSION_CODE + "export default NoOverview;\n"
)


def _files() -> dict[str, str]:
    version = _version()
    about = {
        "uuid": _EXTENSION,
        "name": "No overview at the start",
        "description": "The desktop, not the overview, is shown when the session starts.",
        "shell-version": [str(version)],
    }
    shell = ".local/share/gnome-shell"
    return {
        f"{shell}/extensions/{_EXTENSION}/metadata.json": json.dumps(about),
        f"{shell}/extensions/{_EXTENSION}/extension.js": _FROM_45 if version >= 45 else _BEFORE_45,
        # Without the file a message says at every first start that nothing locks the screen.
        f"{shell}/lock-warning-shown": "",
    }


def _version() -> int:
    """The main version of the gnome-shell that is installed; 0 when none is, which its start will say."""
    try:
        said = subprocess.run(["gnome-shell", "--version"], capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    number = re.search(r"\d+", said)
    return int(number[0]) if number else 0


GNOME = Session(
    command=("gnome-shell", "--x11", "--sm-disable"),
    environment={
        "XDG_CURRENT_DESKTOP": "GNOME",
        "XDG_MENU_PREFIX": "gnome-",
        "XDG_SESSION_DESKTOP": "gnome",
        "LIBGL_ALWAYS_SOFTWARE": "1",
    },
    files=_files,
    gsettings=(
        ("org.gnome.shell", "enabled-extensions", f"['{_EXTENSION}']"),
        ("org.gnome.shell", "disable-extension-version-validation", "true"),
        ("org.gnome.shell", "welcome-dialog-last-shown-version", "'999'"),
        ("org.gnome.desktop.session", "idle-delay", "uint32 0"),
        ("org.gnome.desktop.lockdown", "disable-lock-screen", "true"),
        ("org.gnome.desktop.sound", "event-sounds", "false"),
        ("org.gnome.desktop.interface", "enable-hot-corners", "false"),
    ),
    own_system_bus=True,
)
