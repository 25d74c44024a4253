#!/bin/bash
# Starts this task's desktop on display :1: what a task's image does by itself. The same in every task here.
export HOME=/root DISPLAY=:1 XDG_RUNTIME_DIR=/run/user/0 XDG_CURRENT_DESKTOP=XFCE LANG=C.UTF-8
export NO_AT_BRIDGE=1 GTK_A11Y=none
mkdir -p "$XDG_RUNTIME_DIR" "$HOME/Desktop" "$HOME/Documents"
chmod 700 "$XDG_RUNTIME_DIR"
# The panel asks at its first start how it should look, unless it has been told.
channels=$HOME/.config/xfce4/xfconf/xfce-perchannel-xml
mkdir -p "$channels"
[ -f /etc/xdg/xfce4/panel/default.xml ] && cp /etc/xdg/xfce4/panel/default.xml "$channels/xfce4-panel.xml"
here=$(dirname "$(readlink -f "$0")")
for place in "$here" /environment; do
  [ -f "$place/prepare.sh" ] && { bash "$place/prepare.sh"; break; }
done
Xvfb :1 -screen 0 1280x800x24 -noreset -nolisten tcp &
until [ -S /tmp/.X11-unix/X1 ]; do sleep 0.05; done
exec dbus-run-session -- xfce4-session
