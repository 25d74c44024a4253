"""MATE, started as its own session (mate-session): marco, mate-panel, caja, mate-settings-daemon."""

from __future__ import annotations

import os

from .session import Session

#: MATE's own look, and what stands in where its package (mate-themes) is not there: marco would take any it finds.
_THEME = "/usr/share/themes/Menta"
_STAND_IN = (
    ("org.mate.Marco.general", "theme", "'ClearlooksRe'"),
    ("org.mate.interface", "gtk-theme", "'Adwaita'"),
    ("org.mate.interface", "icon-theme", "'Adwaita'"),
)

MATE = Session(
    command=("mate-session",),
    environment={"XDG_CURRENT_DESKTOP": "MATE", "XDG_MENU_PREFIX": "mate-", "XDG_SESSION_DESKTOP": "mate"},
    gsettings=(
        ("org.mate.Marco.general", "compositing-manager", "false"),
        ("org.mate.interface", "enable-animations", "false"),
        ("org.mate.interface", "gtk-enable-animations", "false"),
        ("org.mate.panel", "enable-animations", "false"),
        ("org.mate.background", "background-fade", "false"),
        ("org.mate.sound", "event-sounds", "false"),
        ("org.mate.session", "auto-save-session", "false"),
        ("org.mate.session", "logout-prompt", "false"),
        ("org.mate.session", "idle-delay", "0"),
        ("org.mate.lockdown", "disable-lock-screen", "true"),
        ("org.mate.screensaver", "idle-activation-enabled", "false"),
        ("org.mate.screensaver", "lock-enabled", "false"),
        ("org.mate.power-manager", "sleep-display-ac", "0"),
        ("org.mate.power-manager", "sleep-display-battery", "0"),
        ("org.mate.power-manager", "sleep-computer-ac", "0"),
        ("org.mate.power-manager", "sleep-computer-battery", "0"),
        *(() if os.path.isdir(_THEME) else _STAND_IN),
    ),
    own_windows=("DESKTOP", "DOCK"),
)
