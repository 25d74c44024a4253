"""As whom, and with which environment, an application starts on a display.

A desktop of ours has a state file that says. On a foreign display the process of the window manager tells user, session
bus and ``XDG_CURRENT_DESKTOP``; one started by hand often has no word about where entries are, and then ours counts.
Where neither is to be had it is ourselves and our own environment. Whichever it is, no token and no key goes along.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import Any, Dict, Mapping, NamedTuple, Optional

from . import state, windows
from .errors import NoDisplay, Unsupported
from .launched_process import MARK, Account
from .window_properties import read_windows
from .x11 import Connection

#: A variable with one of these words in its name is not handed on.
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL")
_OURS = re.compile(r"DESKHAND_|COMPUTERD_")
#: Says something about the process it was made for, and something wrong about any other.
_PERSONAL = (
    "DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN", "GIO_LAUNCHED_DESKTOP_FILE", "GIO_LAUNCHED_DESKTOP_FILE_PID",
    "WINDOWID", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "OLDPWD", "PWD", "SHLVL", "_", "TERM",
    "COLUMNS", "LINES", "STY", "TMUX", "TMUX_PANE", "VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "PYTEST_CURRENT_TEST",
    "WAYLAND_DISPLAY", MARK,
)  # fmt: skip
#: Where entries are, and which are shown: ours where the window manager is the same user's and has no word.
_LOOKUP = ("XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CURRENT_DESKTOP")
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"


class LaunchEnvironment(NamedTuple):
    """``account`` is whom to become (None: nobody else). ``source`` is where it was learnt: ``"desktop"`` (our state
    file), ``"window manager"`` or ``"own"``. ``window_manager`` is its name, None when none runs."""

    env: Dict[str, str]
    account: Optional[Account]
    source: str
    window_manager: Optional[str]


def find(conn: Connection, display: str, xauthority: Optional[str] = None) -> LaunchEnvironment:
    """The environment for launching on ``display``, which ``conn`` is connected to.

    Applications are to be looked up with its ``env`` too: it decides which the desktop shows.

    Raises:
        Unsupported: the desktop is another user's, whom we can not become.
    """
    manager = windows.window_manager(conn)
    desktop = state.find_desktop(display)
    if desktop is not None:
        if desktop.get("uid") not in (None, os.geteuid()) and os.geteuid() != 0:
            raise Unsupported(
                f"display {display} belongs to the user {desktop.get('user')}: launch as that user or as root"
            )
        account = _account(desktop["uid"]) if desktop.get("uid") is not None else None
        env = {str(name): str(value) for name, value in desktop["env"].items()}
        return LaunchEnvironment(_prepared(env, display, desktop.get("xauthority")), account, "desktop", manager)
    process = _manager_process(conn, display)
    if process is not None:
        uid, env = process
        if uid == os.geteuid():
            env = {**{name: os.environ[name] for name in _LOOKUP if name in os.environ}, **env}
        cookie = env.get("XAUTHORITY") or (xauthority if uid == os.geteuid() else None)
        return LaunchEnvironment(_prepared(env, display, cookie, uid), _account(uid), "window manager", manager)
    cookie = xauthority or os.environ.get("XAUTHORITY")
    return LaunchEnvironment(_prepared(dict(os.environ), display, cookie, os.geteuid()), None, "own", manager)


def without_secrets(env: Mapping[str, str]) -> Dict[str, str]:
    """``env`` without tokens, keys and passwords, without our settings, and without what is one process's own."""
    return {
        name: value
        for name, value in env.items()
        if name not in _PERSONAL
        and not _SECRET.search(name.upper())
        and (name == state.MARK or not _OURS.match(name.upper()))
    }


def _prepared(
    env: Dict[str, str], display: str, xauthority: Optional[str], uid: Optional[int] = None
) -> Dict[str, str]:
    env = without_secrets(env)
    env["DISPLAY"] = display
    if xauthority:
        env["XAUTHORITY"] = xauthority
    env.setdefault("PATH", _PATH)
    entry = _passwd(uid)
    if entry is not None:
        # What the window manager was started with may be another user's, as with sudo.
        for name in ("USER", "LOGNAME"):
            env[name] = entry.pw_name
        env.setdefault("HOME", entry.pw_dir)
        env.setdefault("SHELL", entry.pw_shell or "/bin/sh")
    return env


def _manager_process(conn: Connection, display: str) -> Any:
    """The window manager's uid and environment; None when they can not be had."""
    window = windows.manager_window(conn)
    found = read_windows(conn, [window]) if window is not None else []
    # The server's word first: openbox and others set no _NET_WM_PID on that window.
    for pid in reversed(found[0].pids if found else ()):
        try:
            uid = os.stat(f"/proc/{pid}").st_uid
            with open(f"/proc/{pid}/environ", "rb") as file:
                raw = file.read()
        except OSError:
            continue
        if uid != os.geteuid() and os.geteuid() != 0:
            continue
        pairs = (os.fsdecode(item).partition("=") for item in raw.split(b"\0") if b"=" in item)
        env = {name: value for name, _, value in pairs}
        # The number may be of another pid namespace, and here somebody else's.
        if _same_display(env.get("DISPLAY", ""), display):
            return uid, env
    return None


def _same_display(one: str, other: str) -> bool:
    try:
        return state.display_key(one) == state.display_key(other)
    except NoDisplay:
        return False


def _account(uid: int) -> Optional[Account]:
    if uid == os.geteuid():
        return None
    entry = _passwd(uid)
    if entry is None:
        return Account(uid, uid, ())
    return Account(uid, entry.pw_gid, tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)))


def _passwd(uid: Optional[int]) -> Optional[pwd.struct_passwd]:
    if uid is None:
        return None
    try:
        return pwd.getpwuid(uid)
    except KeyError:  # a container may run as a uid without an account
        return None
