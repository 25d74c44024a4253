#!/usr/bin/env bash
# Installs what the benchmark compares with: Debian packages, and PyPI packages in a virtual environment of their own.
# A peer that can not be installed is named; the benchmark names it again and goes on without.
# Usage: bench/peers.sh
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

debian=(xdotool scrot maim imagemagick libglib2.0-bin libgtk-3-bin python3-gi python3-xdg python3-tk python3-pyqt5 python3-pyqt6
  gir1.2-gtk-3.0 gir1.2-gtk-4.0 xterm firefox-esr thunar mousepad xfce4-terminal)
pypi=(mss Pillow pyautogui pynput modal-computer-use)
missing=()

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

wanted=()
for package in "${debian[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || wanted+=("$package")
done
if [ "${#wanted[@]}" -gt 0 ]; then
  as_root apt-get update -qq || true
  for package in "${wanted[@]}"; do
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
      missing+=("$package (Debian)")
  done
fi

# modal-computer-use wants Python 3.12, so the newest that is there.
if [ ! -x .setup/bench/bin/python ]; then
  mkdir -p .setup
  for python in python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python3 python3; do
    "$python" -c 'import venv, ensurepip' 2>/dev/null && "$python" -m venv .setup/bench && break
  done
fi
[ -x .setup/bench/bin/python ] || exit 1
for package in "${pypi[@]}"; do
  .setup/bench/bin/python -m pip install --quiet --disable-pip-version-check "$package" >/dev/null 2>&1 ||
    missing+=("$package (PyPI)")
done

for name in "${missing[@]}"; do echo "not installed: $name"; done
.setup/bench/bin/python -m pip list --disable-pip-version-check --format=freeze |
  grep -iE "^($(
    IFS='|'
    echo "${pypi[*]}"
  ))=="
