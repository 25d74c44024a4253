"""The lookup against GLib's (Gio.DesktopAppInfo), on files put together from odd lines. Skipped where GLib is missing.

Left out are the three rulings that differ: an entry whose program is not there (listed here), one without a name
("Unnamed" there) and an empty name.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from deskhand.hand import applications
from deskhand.hand.applications import BrokenEntry

PYTHON = "/usr/bin/python3"
ASK = """
import json, os, sys
import gi
gi.require_version("Gio", "2.0")
try:
    gi.require_version("GioUnix", "2.0")
    from gi.repository import GioUnix
    Info = GioUnix.DesktopAppInfo
except (ImportError, ValueError):
    from gi.repository import Gio
    Info = Gio.DesktopAppInfo
answers = {}
for name in sorted(os.listdir(sys.argv[1])):
    try:
        info = Info.new_from_filename(os.path.join(sys.argv[1], name))
    except TypeError:
        info = None
    shown = info and info.get_commandline() and not info.get_is_hidden() and info.should_show()
    answers[name] = info.get_name() if shown else None
json.dump(answers, sys.stdout)
"""
BASE = [b"[Desktop Entry]", b"Type=Application", b"Name=Base", b"Exec=true"]
ODD = [
    b"Name=A",
    b"Name=B\\sC\\q\\;\\\\",
    b"Name=E\\",
    b"Name=trailing  ",
    b"Name[de]=D",
    b"Name[de_AT]=DA",
    b"Name[de]=\xff",
    b"Name [de]=x",
    b"Name[de] =y",
    b"Name[de=",
    b"Name[de]x=",
    b"Name[]=z",
    b"name=lower",
    b"\tName=T",
    b"\x0bName=V",
    b"NoDisplay=true",
    b"NoDisplay=1",
    b"NoDisplay=True",
    b"NoDisplay = true\t",
    b"NoDisplay=\\strue",
    b"Hidden=true",
    b"Hidden=false",
    b"OnlyShowIn=XFCE;",
    b"OnlyShowIn=GNOME",
    b"OnlyShowIn=",
    b"OnlyShowIn=;",
    b"OnlyShowIn=\xff",
    b"OnlyShowIn=XFCE\\;GNOME;",
    b"OnlyShowIn=XFCE; GNOME;",
    b"NotShowIn=XFCE",
    b"NotShowIn=",
    b"NotShowIn=GNOME;XFCE;",
    b"TryExec=true",
    b"TryExec=no-such-program-zz",
    b"TryExec=/bin/sh",
    b"TryExec=true ",
    b"TryExec=",
    b"Exec=true 'a",
    b'Exec=true "a\\\\"b"',
    b"Exec=true \\\\",
    b"Exec=\\s",
    b"Exec=",
    b"Type=Link",
    b"Type=Application ",
    b"Encoding=utf-8",
    b"Encoding=latin1",
    b"Comment=\xfe",
    b"Foo Bar=1",
    b"X.y/z=1",
    b"=x",
    b" =x",
    b"junk",
    b"; no comment",
    b"  # comment",
    b"#Name=Q",
    b"",
    b"  ",
    b"[X]",
    b"[Desktop Entry] ",
    b"[Desktop Entry]]",
    b"[Desktop Entry] x",
    b"[a[b]",
    b"[]",
    b"[b=c",
    b"[b=c]",
    b"[tab\tbed]",
    b"X=\0x",
    b"Na\0me=x",
    b"\0x",
]


def files() -> dict[str, bytes]:
    """Each odd line at each place, and each two of them one after the other."""
    found = [[*BASE[:place], line, *BASE[place:]] for line in ODD for place in range(5)]
    found += [[*BASE, one, two] for one, two in itertools.permutations(ODD, 2)]
    found += [[line for line in BASE if line is not left_out] for left_out in BASE if not left_out.startswith(b"Name")]
    return {
        f"{number:05}.desktop": (b"\r\n" if number % 3 == 0 else b"\n").join(lines) + (b"\n" if number % 2 else b"")
        for number, lines in enumerate(found)
    }


@pytest.mark.parametrize("locale", ["de_AT.UTF-8", "fr_FR.UTF-8"])
def test_same_as_glib(tmp_path: Path, locale: str) -> None:
    if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import gi"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no GLib bindings for /usr/bin/python3 (Debian: python3-gi)")
    data = files()
    for name, content in data.items():
        (tmp_path / name).write_bytes(content)
    env = {"LC_ALL": locale, "XDG_CURRENT_DESKTOP": "XFCE", "PATH": "/usr/bin:/bin"}
    asked = subprocess.run([PYTHON, "-c", ASK, str(tmp_path)], env=env, stdout=subprocess.PIPE, timeout=120, check=True)
    wanted = json.loads(asked.stdout)
    differ = {}
    for name, content in data.items():
        try:
            entry = applications.read_entry(str(tmp_path / name), name, env)
            ours = entry.name if entry.listed else None
        except BrokenEntry:
            ours = None
        if ours != wanted[name]:
            differ[content] = (ours, wanted[name])
    assert len(wanted) > 4000
    assert differ == {}
