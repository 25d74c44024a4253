#!/usr/bin/env python3
"""Run the conformance suite on every backend and write ``docs/reference/conformance.md``: checks by backends.

python3 tools/conformance_table.py                    # run it (half an hour), and write the table
python3 tools/conformance_table.py --from RESULTS.xml # write it from the JUnit report of a run; of several, the last
                                                      # that has a backend counts for it
python3 tools/conformance_table.py --check            # exit 1 when the table lacks a check or a backend
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs/reference/conformance.md"
SUITE = "tests/backends/test_conformance.py"
#: What a class of the suite's tests is called in the table; else its name without ``Test``.
NAMES = {
    "GuestSubprocess": "Guest, subprocess",
    "GuestPython39": "Guest, Python 3.9",
    "GuestResident": "Guest, resident",
    "GuestBubblewrap": "Guest, bubblewrap",
    "GuestBubblewrapResident": "Guest, bubblewrap, resident",
    "GuestSsh": "Guest, ssh",
    "GuestSshResident": "Guest, ssh, resident",
    "GuestFunction": "Guest, function",
    "E2BOneCommandABatch": "E2B, not resident",
    "DaemonUnixSocket": "Daemon, unix socket",
}
HEAD = """\
# Conformance

Written by `tools/conformance_table.py` from a run of `deskhand.testing.conformance` on every backend of ours
(`tests/backends/test_conformance.py`). A number is how many cases of a check passed; **bold**: some failed; –: the
check does not apply there, or was skipped. E2B is run through its own SDK against a stand-in for its API.

"""

#: Backend and check to its cases: passed, failed, skipped.
Table = dict[tuple[str, str], list[int]]


def run() -> list[Path]:
    """Run the suite; the reports."""
    report = Path(tempfile.mkdtemp(prefix="deskhand-")) / "results.xml"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", SUITE]
    subprocess.run(words, cwd=ROOT, check=False)
    return [report]


def read(reports: Iterable[Path]) -> Table:
    whole: Table = {}
    for report in reports:
        table: Table = {}
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            module, _, group = case.get("classname", "").rpartition(".")
            if not module.endswith("test_conformance"):
                continue
            check = case.get("name", "").partition("[")[0]
            kinds = {child.tag for child in case}
            place = 2 if "skipped" in kinds else 1 if kinds & {"failure", "error"} else 0
            table.setdefault((group, check), [0, 0, 0])[place] += 1
        fresh = {backend for backend, _ in table}
        whole = {where: cases for where, cases in whole.items() if where[0] not in fresh} | table
    return whole


def collected() -> list[tuple[str, str]]:
    """The classes and checks of the suite, in its order."""
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", SUITE]
    listing = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\S+test_conformance\.py::(\w+)::(\w+)", listing, flags=re.MULTILINE)
    return list(dict.fromkeys(found))


def reference(table: Table, order: Sequence[tuple[str, str]] = ()) -> str:
    """The page; ``order`` is that of the suite."""
    backends = list(dict.fromkeys(backend for backend, _ in [*(w for w in order if w in table), *table]))
    checks = list(dict.fromkeys(check for _, check in [*(w for w in order if w in table), *table]))
    lines = ["| | " + " | ".join(map(backend_name, backends)) + " |", "|---" * (len(backends) + 1) + "|"]
    for check in checks:
        cells = [_cell(table.get((backend, check))) for backend in backends]
        lines.append(f"| {check_name(check)} | " + " | ".join(cells) + " |")
    return HEAD + "\n".join(lines) + "\n"


def backend_name(group: str) -> str:
    bare = group.removeprefix("Test")
    return NAMES.get(bare, bare)


def check_name(check: str) -> str:
    return check.removeprefix("test_").replace("_", " ").replace("position 0 0", "position (0, 0)")


def _cell(cases: Sequence[int] | None) -> str:
    passed, failed, _ = cases or (0, 0, 0)
    if failed:
        return f"**{passed} of {passed + failed}**"
    return str(passed) if passed else "–"


def missing(text: str, found: Iterable[tuple[str, str]]) -> list[str]:
    """The backends and checks that a table lacks."""
    lines = text.splitlines()
    heads = next((line for line in lines if line.startswith("| | ")), "").split(" | ")
    rows = {line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")}
    columns = {head.strip("| ") for head in heads}
    lacking = [backend_name(backend) for backend, _ in found if backend_name(backend) not in columns]
    lacking += [check_name(check) for _, check in found if check_name(check) not in rows]
    return list(dict.fromkeys(lacking))


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        lacking = missing(TARGET.read_text("utf-8") if TARGET.exists() else "", collected())
        if lacking:
            print(f"{TARGET.name} lacks {', '.join(lacking)}; run tools/conformance_table.py")
        return bool(lacking)
    if arguments and (len(arguments) % 2 or set(arguments[::2]) != {"--from"}):
        print(__doc__)
        return 2
    table = read([Path(name) for name in arguments[1::2]] or run())
    if not table:
        print("the reports hold no test of the conformance suite")
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(reference(table, collected()), "utf-8")
    return int(any(failed for _, failed, _ in table.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
