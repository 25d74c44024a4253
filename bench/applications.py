"""How long does listing applications take, beside GLib (Gio.AppInfo) and pyxdg?

Each lists the same 1,000 entries in a process of its own, warm (the second listing on), in turns. Prints medians, and
how many times as long as ours the others take. The entries are made here; a folder with real ones can be given.

    python -m bench.applications [FOLDER]
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.sides import NotInstalled, compare

LOOKUP = Path(__file__).parents[1] / "src/deskhand/hand/applications.py"
LANGUAGES = (
    "ar bg ca cs da de el en_GB es et eu fi fr gl he hr hu id it ja ko lt lv nb nl pl pt pt_BR ro ru sk sr sv tr"
)

OURS = """
import importlib.util, os, sys
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
FRAME = """
import glob, os, sys, time
PATHS = glob.glob(os.environ["XDG_DATA_DIRS"] + "/applications/*.desktop")
{body}
listing()
for line in sys.stdin:
    start = time.perf_counter()
    count = listing()
    print((time.perf_counter() - start) * 1000, count, flush=True)
"""


def make_entries(folder: Path) -> None:
    """1,000 entries of the size that real ones have: about 140 lines, most of them translations."""
    for number in range(1000):
        lines = ["[Desktop Entry]", "Type=Application", f"Name=Application {number}", "Exec=true %U", "Terminal=false"]
        for key in ("Name", "GenericName", "Comment", "Keywords"):
            lines += [f"{key}[{language}]={key} {language} {number} äöü" for language in LANGUAGES.split()]
        (folder / f"app{number:04}.desktop").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(given: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as top:
        folder = Path(top, "applications")
        folder.mkdir()
        if given:
            for path in sorted(Path(given[0]).glob("*.desktop")):
                (folder / path.name).write_bytes(path.read_bytes())
        else:
            make_entries(folder)
        env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG"))},
            "XDG_DATA_HOME": top + "/none",
            "XDG_DATA_DIRS": top,
            "XDG_CURRENT_DESKTOP": "XFCE",
            "LANG": "de_DE.UTF-8",
        }
        running: dict[str, subprocess.Popen[str]] = {}
        for name, body in (("ours", OURS), ("GLib", GLIB), ("pyxdg", PYXDG)):
            python = sys.executable if name == "ours" else "/usr/bin/python3"
            process = subprocess.Popen(
                [python, "-c", FRAME.format(body=body), str(LOOKUP)],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            running[name] = process
        counts: dict[str, int] = {}

        def asked(name: str, process: subprocess.Popen[str]) -> float:
            assert process.stdin
            assert process.stdout
            try:
                process.stdin.write("again\n")
                process.stdin.flush()
                taken, count = process.stdout.readline().split()
            except (BrokenPipeError, ValueError):
                raise NotInstalled(name) from None
            counts[name] = int(count)
            return float(taken) / 1000

        compare("applications", {name: functools.partial(asked, name, process) for name, process in running.items()})
        for process in running.values():
            process.communicate()
    print("listed:", ", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
