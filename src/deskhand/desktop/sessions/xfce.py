"""XFCE, started as its own session (startxfce4): xfwm4, xfdesktop, xfce4-panel, xfsettingsd.

Its settings are xfconf channel files, which xfconfd reads when the first program asks.
"""

from __future__ import annotations

from xml.etree import ElementTree

from .session import Session

_PANEL_DEFAULT = "/etc/xdg/xfce4/panel/default.xml"
_PANEL_LEFT_OUT = ("power-manager-plugin", "pulseaudio", "notification-plugin", "actions")

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


def _files() -> dict[str, str]:
    channels = {name: _channel(name, properties) for name, properties in _XFCONF.items()}
    channels["xfce4-panel"] = _panel()
    return {f".config/xfce4/xfconf/xfce-perchannel-xml/{name}.xml": content for name, content in channels.items()}


def _panel() -> str:
    """The panel's own default layout, so that its first start asks nothing, without what has no use here.

    Sound, power and notification plugins need daemons that are not there; the user's menu logs out. No panel hides by
    itself: the lower one does so half a second after a window has covered it, and comes back under the pointer.
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
    for hides in channel.iterfind("property[@name='panels']/property/property[@name='autohide-behavior']"):
        hides.set("value", "0")
    for ids in channel.iterfind("property[@name='panels']/property/property[@name='plugin-ids']"):
        for value in list(ids):
            if value.get("value") in left_out:
                ids.remove(value)
    return ElementTree.tostring(channel, encoding="unicode", xml_declaration=True)


def _channel(name: str, properties: dict[str, object]) -> str:
    """An xfconf channel file."""
    channel = ElementTree.Element("channel", name=name, version="1.0")
    for path, value in properties.items():
        *parents, leaf = path.strip("/").split("/")
        node = channel
        for parent in parents:
            there = node.find(f"property[@name='{parent}']")
            node = there if there is not None else ElementTree.SubElement(node, "property", name=parent, type="empty")
        kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
        text = str(value).lower() if isinstance(value, bool) else str(value)
        ElementTree.SubElement(node, "property", name=leaf, type=kind, value=text)
    ElementTree.indent(channel)
    return ElementTree.tostring(channel, encoding="unicode", xml_declaration=True) + "\n"


XFCE = Session(
    command=("startxfce4",),
    environment={"XDG_CURRENT_DESKTOP": "XFCE", "XDG_MENU_PREFIX": "xfce-"},
    files=_files,
    # GDK asks OpenGL which visuals are good for it, once a display, and leaves the answer on the root window
    # (GDK_VISUALS). Who asks loads all of Mesa, and keeps it: so a program asks that ends again, and not the session.
    asides=(("xfce4-session", "--version"),),
    own_windows=("DESKTOP", "DOCK"),
)
