"""LXQt, started as its own session (lxqt-session) with openbox: lxqt-panel, and pcmanfm-qt as the desktop."""

from __future__ import annotations

from .session import Session

# Without a window manager named here, the first start asks for one in a dialog.
_SESSION = """[General]
window_manager=openbox
leave_confirmation=false
lock_screen_before_power_actions=false

[Environment]
GTK_CSD=0
GTK_OVERLAY_SCROLLING=0
"""

_LOOK = """[General]
icon_theme=Adwaita
theme=frost
"""
_PANEL = "/usr/share/lxqt/panel.conf"
#: Drives and sound: they need daemons that are not there.
_PANEL_LEFT_OUT = ("mount", "volume")


def _files() -> dict[str, str]:
    files = {".config/lxqt/session.conf": _SESSION, ".config/lxqt/lxqt.conf": _LOOK}
    panel = _panel()
    return {**files, ".config/lxqt/panel.conf": panel} if panel else files


def _panel() -> str:
    """The panel's own default layout without what has no use here; ``""`` when it is not installed."""
    try:
        with open(_PANEL, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    for number, line in enumerate(lines):
        key, _, value = line.partition("=")
        if key == "plugins":
            kept = [plugin for plugin in value.split(",") if plugin.strip() not in _PANEL_LEFT_OUT]
            lines[number] = f"plugins={','.join(kept)}"
    return "\n".join(lines) + "\n"


LXQT = Session(
    command=("lxqt-session",),
    # What startlxqt exports; the applications that are launched later need it too.
    environment={
        "XDG_CURRENT_DESKTOP": "LXQt",
        "XDG_MENU_PREFIX": "lxqt-",
        "XDG_CONFIG_DIRS": "/etc:/etc/xdg:/usr/share",
        "QT_PLATFORM_PLUGIN": "lxqt",
        "QT_QPA_PLATFORMTHEME": "lxqt",
    },
    files=_files,
    own_windows=("DESKTOP", "DOCK"),
)
