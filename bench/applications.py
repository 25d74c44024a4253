"""How long does listing applications take, and finding one, beside GLib (Gio.AppInfo) and pyxdg?

Each lists the same 1,000 entries in a process of its own, warm (the second listing on), in turns; and as a process.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.sides import SYSTEM_PYTHON, Answer, HeldPeer, in_turns, program, timed

WORDS = "the list of applications"

LOOKUP = Path(__file__).parents[1] / "src/deskhand/hand/applications.py"
LANGUAGES = (
    "ar bg ca cs da de el en_GB es et eu fi fr gl he hr hu id it ja ko lt lv nb nl pl pt pt_BR ro ru sk sr sv tr"
)

OURS = """
import importlib.util
spec = importlib.util.spec_from_file_location("applications", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
def listing():
    return len(module.list_applications(os.environ))
"""
GLIB = """
import gi
gi.require_version("Gio", "2.0")
from gi.repository import Gio
def listing():
    # GLib remembers a directory until it changes, so the files are read here one by one, as it does the first time.
    return sum(1 for path in PATHS if shown(path))
def shown(path):
    try:
        info = Gio.DesktopAppInfo.new_from_filename(path)
    except TypeError:  # how the binding says that there is no such application
        return False
    return info.should_show() and info.get_name()
"""
PYXDG = """
from xdg.DesktopEntry import DesktopEntry
def listing():
    entries = [DesktopEntry(path) for path in PATHS]
    return sum(1 for entry in entries if entry.getName() and not entry.getNoDisplay() and not entry.getHidden())
"""
# The others are given the paths; ours finds them too.
_PATHS = """
import glob, os, sys
PATHS = glob.glob(os.environ["XDG_DATA_DIRS"] + "/applications/*.desktop")
"""
_ACT = """
listing()
def act(given): return listing()
"""
_FIND = """
module.find("app0500", os.environ)
def act(given): return module.find("app0500", os.environ).name
"""


def make_entries(folder: Path, count: int = 1000) -> None:
    """Entries of the size that real ones have: about 140 lines, most of them translations."""
    for number in range(count):
        lines = ["[Desktop Entry]", "Type=Application", f"Name=Application {number}", "Exec=true %U", "Terminal=false"]
        for key in ("Name", "GenericName", "Comment", "Keywords"):
            lines += [f"{key}[{language}]={key} {language} {number} äöü" for language in LANGUAGES.split()]
        (folder / f"app{number:04}.desktop").write_text("\n".join(lines) + "\n", encoding="utf-8")


def ask(rounds: int) -> Answer:
    answer = Answer("apps", WORDS)
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as top:
        folder = Path(top, "applications")
        folder.mkdir()
        make_entries(folder)
        env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG"))},
            "XDG_DATA_HOME": top + "/none",
            "XDG_DATA_DIRS": top,
            "XDG_CURRENT_DESKTOP": "XFCE",
            "LANG": "de_DE.UTF-8",
        }
        bodies = {"ours": OURS, "GLib (Gio.AppInfo)": GLIB, "pyxdg": PYXDG}
        with ExitStack() as running:
            peers = {
                name: running.enter_context(
                    HeldPeer(
                        sys.executable if name == "ours" else SYSTEM_PYTHON, _PATHS + body + _ACT, env, str(LOOKUP)
                    )
                )
                for name, body in bodies.items()
            }
            finder = running.enter_context(HeldPeer(sys.executable, _PATHS + OURS + _FIND, env, str(LOOKUP)))
            taken = in_turns({name: peer.seconds for name, peer in peers.items()}, rounds, answer)
            answer.add("list 1,000 entries, warm", taken)
            answer.add("find one of 1,000, warm", in_turns({"ours": finder.seconds}, rounds, answer))
            answer.facts["listed"] = {name: peers[name].ask()[1] for name in taken}
        command = [sys.executable, "-I", "-S", str(LOOKUP), "list", "--json"]
        other = [SYSTEM_PYTHON, "-c", _PATHS + GLIB + "listing()"]
        sides = {"ours": timed(program(*command, env=env)), "GLib (Gio.AppInfo)": timed(program(*other, env=env))}
        answer.add("list 1,000 entries, a process", in_turns(sides, max(1, rounds // 3), answer))
    return answer
