"""The HOME of one desktop, made fresh: settings that keep a desktop still, awake and free of first-run dialogs.

Compositing, GTK animations and overlay scroll bars are off, because a screen that fades does not settle; the saver,
locker and power manager are off, because a locked or dark screen is of no use to an agent.
"""

from __future__ import annotations

import os

from .account import Account
from .first_starts import first_start_files
from .sessions import SESSIONS

_AUTOSTART = "/etc/xdg/autostart"
#: Parts of the names of autostart entries that blank, lock, suspend, or open dialogs of their own.
_NOT_STARTED = (
    *("screensaver", "screen-saver", "locker", "xautolock", "power-manager", "powerdevil", "xss-lock"),
    *("update-notifier", "print-applet", "blueman", "nm-applet", "welcome", "initial-setup", "org.gnome.Software"),
    *("polkit", "policykit"),  # they ask on behalf of a log-in session, which this is none
    "tracker-miner",  # reads every file in HOME for a search that nobody uses here
)

_GTK_SETTINGS = "[Settings]\ngtk-enable-animations=false\ngtk-overlay-scrolling=false\n"
_GTK2_SETTINGS = "gtk-enable-animations = 0\n"


def make_home(directory: str, account: Account, session: str) -> None:
    """Make ``home``, ``run`` (XDG_RUNTIME_DIR), ``tmp`` and ``logs`` below ``directory``, owned by ``account``.

    ``logs`` stays ours: a process that runs as root must not write where another user can put a link.
    """
    home = os.path.join(directory, "home")
    files = {
        ".config/gtk-3.0/settings.ini": _GTK_SETTINGS,
        ".config/gtk-4.0/settings.ini": _GTK_SETTINGS,
        ".gtkrc-2.0": _GTK2_SETTINGS,
        ".xscreensaver": "mode: off\nlock: False\ndpmsEnabled: False\n",
        **{f".config/autostart/{name}": _hidden_entry(name) for name in _entries_not_started()},
        **first_start_files(),
        **SESSIONS[session].files(),
    }
    for name in ("home", "run", "tmp", "logs"):
        os.mkdir(os.path.join(directory, name), 0o700)
    for path, content in files.items():
        target = os.path.join(home, path)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(target, "x", encoding="utf-8") as file:
            file.write(content)
    if account.switch:
        for name in ("run", "tmp", "home"):
            _give(os.path.join(directory, name), account)


def session_environment(directory: str, account: Account, session: str) -> dict[str, str]:
    """What the session's processes get as environment, all of it; display, cookie and bus are added when known.

    Of the caller's environment only language and time zone are passed on.
    """
    run = os.path.join(directory, "run")
    environment = {
        "HOME": os.path.join(directory, "home"),
        "USER": account.name,
        "LOGNAME": account.name,
        "SHELL": account.shell,
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games",
        "LANG": os.environ.get("LANG") or "C.UTF-8",
        "TMPDIR": os.path.join(directory, "tmp"),
        "XDG_RUNTIME_DIR": run,
        "XDG_DATA_DIRS": "/usr/local/share:/usr/share",
        "XDG_CONFIG_DIRS": "/etc/xdg",
        "XDG_SESSION_TYPE": "x11",
        "DESKTOP_SESSION": session,
        "GTK_OVERLAY_SCROLLING": "0",
        **SESSIONS[session].environment,
    }
    for name, value in os.environ.items():
        if value and (name.startswith("LC_") or name in ("TZ", "LANGUAGE")):
            environment[name] = value
    return environment


def _entries_not_started() -> list[str]:
    try:
        names = os.listdir(_AUTOSTART)
    except OSError:
        return []
    return [name for name in names if name.endswith(".desktop") and any(part in name for part in _NOT_STARTED)]


def _hidden_entry(name: str) -> str:
    """An autostart entry that hides the system's of the same name (Desktop Application Autostart, Hidden key)."""
    return f"[Desktop Entry]\nType=Application\nName={name.removesuffix('.desktop')}\nExec=true\nHidden=true\n"


def _give(top: str, account: Account) -> None:
    for directory, names, files in os.walk(top):
        for name in names + files:
            os.chown(os.path.join(directory, name), account.uid, account.gid, follow_symlinks=False)
    os.chown(top, account.uid, account.gid)
