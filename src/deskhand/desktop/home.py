"""The HOME of one desktop, made fresh: settings that keep a desktop still, awake and free of first-run dialogs.

Compositing, GTK animations and overlay scroll bars are off, because a screen that fades does not settle; the saver,
locker and power manager are off, because a locked or dark screen is of no use to an agent.
"""

from __future__ import annotations

import os
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from .account import Account

_PANEL_DEFAULT = "/etc/xdg/xfce4/panel/default.xml"
_PANEL_LEFT_OUT = ("power-manager-plugin", "pulseaudio", "notification-plugin", "actions")
_AUTOSTART = "/etc/xdg/autostart"
#: Parts of the names of autostart entries that blank, lock, suspend, or open dialogs of their own.
_NOT_STARTED = (
    *("screensaver", "screen-saver", "locker", "xautolock", "power-manager", "powerdevil", "xss-lock"),
    *("update-notifier", "print-applet", "blueman", "nm-applet", "welcome", "initial-setup", "org.gnome.Software"),
)

_GTK_SETTINGS = "[Settings]\ngtk-enable-animations=false\ngtk-overlay-scrolling=false\n"
_GTK2_SETTINGS = "gtk-enable-animations = 0\n"

#: Channel to property path to value, as xfconf keeps them.
_XFCONF: dict[str, dict[str, object]] = {
    "xfwm4": {
        "/general/use_compositing": False,
        "/general/scroll_workspaces": False,  # a scroll meant for the desktop would switch away from it
        "/general/mousewheel_rollup": False,
        "/general/cycle_preview": False,
        "/general/zoom_desktop": False,
    },
    "xsettings": {
        "/Gtk/EnableAnimations": False,
        "/Gtk/OverlayScrolling": False,
        "/Net/EnableEventSounds": False,
        "/Net/EnableInputFeedbackSounds": False,
    },
    "xfce4-session": {
        "/general/SaveOnExit": False,
        "/general/PromptOnLogout": False,
        "/general/LockCommand": "",
        "/general/AutoSave": False,
        "/startup/ssh-agent/enabled": False,
        "/startup/gpg-agent/enabled": False,
        "/startup/screensaver/enabled": False,
        "/shutdown/LockScreen": False,
        "/compat/LaunchGNOME": False,
        "/compat/LaunchKDE": False,
        "/splash/Engine": "",
    },
    "xfce4-power-manager": {
        "/xfce4-power-manager/dpms-enabled": False,
        "/xfce4-power-manager/blank-on-ac": 0,
        "/xfce4-power-manager/blank-on-battery": 0,
        "/xfce4-power-manager/lock-screen-suspend-hibernate": False,
        "/xfce4-power-manager/presentation-mode": True,
    },
    "xfce4-screensaver": {
        "/saver/enabled": False,
        "/saver/idle-activation/enabled": False,
        "/lock/enabled": False,
        "/lock/saver-activation/enabled": False,
    },
    "thunar": {"/misc-single-click": False},
}


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
    }
    if session == "xfce":
        channels = {name: _channel(name, properties) for name, properties in _XFCONF.items()}
        channels["xfce4-panel"] = _panel()
        for name, content in channels.items():
            files[f".config/xfce4/xfconf/xfce-perchannel-xml/{name}.xml"] = content
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
        **({"XDG_CURRENT_DESKTOP": "XFCE", "XDG_MENU_PREFIX": "xfce-"} if session == "xfce" else {}),
        **({"XDG_CURRENT_DESKTOP": "Openbox"} if session == "openbox" else {}),
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


def _panel() -> str:
    """The panel's own default layout, so that its first start asks nothing, without what has no use here.

    Sound, power and notification plugins need daemons that are not there; the user's menu logs out.
    """
    try:
        channel = ElementTree.parse(_PANEL_DEFAULT).getroot()
    except (OSError, ElementTree.ParseError):
        return _channel("xfce4-panel", {})
    plugins = channel.find("property[@name='plugins']")
    left_out = set()
    for plugin in list(plugins) if plugins is not None else ():
        if plugin.get("value") in _PANEL_LEFT_OUT and plugins is not None:
            plugins.remove(plugin)
            left_out.add(plugin.get("name", "").removeprefix("plugin-"))
    for ids in channel.iterfind("property[@name='panels']/property/property[@name='plugin-ids']"):
        for value in list(ids):
            if value.get("value") in left_out:
                ids.remove(value)
    return ElementTree.tostring(channel, encoding="unicode", xml_declaration=True)


def _channel(name: str, properties: dict[str, object]) -> str:
    """An xfconf channel file."""
    tree: dict[str, object] = {}
    for path, value in properties.items():
        *parents, leaf = path.strip("/").split("/")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})  # type: ignore[assignment]
        node[leaf] = value
    body = "".join(_xml(key, value, 1) for key, value in tree.items())
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n\n<channel name={quoteattr(name)} version="1.0">\n{body}</channel>\n'
    )


def _xml(name: str, value: object, depth: int) -> str:
    indent = "  " * depth
    head = f"{indent}<property name={quoteattr(name)}"
    if isinstance(value, dict):
        inner = "".join(_xml(key, child, depth + 1) for key, child in value.items())
        return f'{head} type="empty">\n{inner}{indent}</property>\n'
    if isinstance(value, bool):
        return f'{head} type="bool" value="{str(value).lower()}"/>\n'
    if isinstance(value, int):
        return f'{head} type="int" value="{value}"/>\n'
    return f'{head} type="string" value="{escape(str(value), {chr(34): "&quot;"})}"/>\n'


def _give(top: str, account: Account) -> None:
    for directory, names, files in os.walk(top):
        for name in names + files:
            os.chown(os.path.join(directory, name), account.uid, account.gid, follow_symlinks=False)
    os.chown(top, account.uid, account.gid)
