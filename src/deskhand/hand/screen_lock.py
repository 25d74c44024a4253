"""Whether the person has locked their screen, as far as a client can tell.

A locker has the keyboard grabbed and covers the screen with a window no manager knows (i3lock, xsecurelock,
XScreenSaver, MATE's and Xfce's screen savers, KDE's); or it only grabs and is known by its name (xtrlock). GNOME Shell
is its own locker and says so on the session bus; logind knows what session managers tell it. After a switch to another
session (light-locker, "switch user") the server does not have its console any more.
"""

from __future__ import annotations

import struct
import subprocess
from typing import List, Mapping, Optional, Tuple

from .errors import RequestFailed
from .launched_process import Account
from .x11 import Connection, core, randr, xres

_GRAB_KEYBOARD, _ALREADY_GRABBED, _ASYNCHRONOUS = 31, 1, 1
_VIEWABLE = 2
#: Part of a monitor that a locker's window covers: xsecurelock's leaves a pixel free on each side.
_COVERED = 0.98
#: Lockers without a window that covers anything, by the name of their process.
_WINDOWLESS = ("xtrlock", "slock", "xlock", "alock")
#: Names on the session bus that answer ``GetActive`` (each at the path of its name), by desktop.
_SAVERS = (
    "org.gnome.ScreenSaver",
    "org.mate.ScreenSaver",
    "org.xfce.ScreenSaver",
    "org.cinnamon.ScreenSaver",
    "org.freedesktop.ScreenSaver",
)
#: Seconds that a bus may take to answer.
_PATIENCE = 5.0


class ScreenLock:
    """Asks the server of one connection."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self._console = conn.atom("XFree86_has_VT")
        self._window = core.create_window(conn, input_only=True)

    def keyboard_grabbed(self) -> bool:
        """Whether another client has the keyboard grabbed: a locker, or an open menu.

        Asked by a grab that can not succeed, for a window that is not viewable (X Window System Protocol, GrabKeyboard;
        the server looks for another's grab first). So no grab is made, and nobody's focus changes.
        """
        request = struct.pack("=IIBB2x", self._window, 0, _ASYNCHRONOUS, _ASYNCHRONOUS)
        return self.conn.call(_GRAB_KEYBOARD, 0, request)[1] == _ALREADY_GRABBED

    def seen(self) -> Optional[str]:
        """What the server knows of a lock, in words; None when nothing is locked."""
        conn = self.conn
        if core.get_property(conn, conn.root, self._console).cardinals()[:1] == [0]:
            return "another session has the console"
        if not self.keyboard_grabbed():
            return None
        if any(_covers_a_monitor(conn, window) for window in reversed(core.query_tree(conn, conn.root)[2])):
            return "a window covers it and holds the keyboard"
        if not conn.name.host:
            for name in map(_process_name, xres.local_pids(conn)):
                if name in _WINDOWLESS:
                    return f"{name} holds the keyboard"
        return None


def locked_on_bus(env: Mapping[str, str], account: Optional[Account] = None) -> Optional[str]:
    """What screen savers on the session bus of ``env``, and logind, say; None when nothing is locked or nobody knows.

    ``account`` is whose bus it is, when that is somebody else.
    """
    if env.get("DBUS_SESSION_BUS_ADDRESS"):
        names = _ask(env, account, "--session", "org.freedesktop.DBus", "org.freedesktop.DBus.ListNames")
        for name in _SAVERS:
            if f"'{name}'" in names and _is_true(_ask(env, account, "--session", name, f"{name}.GetActive")):
                return f"{name} says so"
    hint = _ask(
        env,
        account,
        "--system",
        "org.freedesktop.login1",
        "org.freedesktop.DBus.Properties.Get",
        "/org/freedesktop/login1/session/auto",
        ("org.freedesktop.login1.Session", "LockedHint"),
    )
    return "its login session is marked as locked" if _is_true(hint) else None


def _covers_a_monitor(conn: Connection, window: int) -> bool:
    try:
        attributes = core.get_window_attributes(conn, window)
        if attributes.map_state != _VIEWABLE or not attributes.override_redirect:
            return False
        at = core.get_geometry(conn, window)
    except RequestFailed:
        return False  # it is gone
    for x, y, width, height in _monitors(conn):
        across = min(at.x + at.width, x + width) - max(at.x, x)
        down = min(at.y + at.height, y + height) - max(at.y, y)
        if across >= _COVERED * width and down >= _COVERED * height:
            return True
    return False


def _monitors(conn: Connection) -> List[Tuple[int, int, int, int]]:
    found = [(one.x, one.y, one.width, one.height) for one in randr.get_monitors(conn)]
    if not found:
        root = core.get_geometry(conn, conn.root)
        found = [(0, 0, root.width, root.height)]
    return found


def _process_name(pid: int) -> str:
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _ask(
    env: Mapping[str, str],
    account: Optional[Account],
    bus: str,
    name: str,
    method: str,
    path: str = "",
    arguments: Tuple[str, ...] = (),
) -> str:
    """What the method answers, as gdbus prints it; nothing when there is no such bus, service or program."""
    argv = ["gdbus", "call", bus, "--timeout", "3", "--dest", name]
    argv += ["--object-path", path or "/" + name.replace(".", "/"), "--method", method, *arguments]
    identity = {} if account is None else {
        "user": account.uid, "group": account.gid, "extra_groups": list(account.groups),
    }  # fmt: skip
    try:
        done = subprocess.run(  # type: ignore[call-overload]
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=dict(env), cwd="/", timeout=_PATIENCE, **identity
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return str(done.stdout.decode("utf-8", "replace"))


def _is_true(answer: str) -> bool:
    return answer.strip() in ("(true,)", "(<true>,)")
