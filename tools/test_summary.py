"""The end of ./test: branch coverage against its floors, and one closing line that counts everything.

Usage: test_summary.py MODE RESULTS STATUS..., one for each of REPORTS. The exit status is 0 only when all passed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

#: Per cent of branches for each part; they only ever rise. A quick run measures none.
FLOORS = Path(__file__).with_name("coverage_floors.json")

REPORTS = ("pytest.xml", "pytest39.xml", "pytest-harbor-0.20.xml", "pytest-harbor-newest.xml")


def branch_coverage(results: Path) -> dict[str, tuple[int, int]]:
    """Part to (branches covered, branches), from the coverage data in the current directory."""
    report = results / "coverage.json"
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "--ignore-errors", "-o", str(report)]
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
        return {}
    files = json.loads(report.read_text())["files"]
    covered: dict[str, tuple[int, int]] = {}
    for part in json.loads(FLOORS.read_text()):
        chosen = [
            facts["summary"] for name, facts in files.items() if name.startswith(part + "/") or name == part + ".py"
        ]
        if chosen:
            covered[part] = (sum(s["covered_branches"] for s in chosen), sum(s["num_branches"] for s in chosen))
    return covered


def count_tests(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped tests of a JUnit report; a report that is missing is one failure."""
    try:
        suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return 0, 1, 0
    totals = {
        name: sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "failures", "errors", "skipped")
    }
    failed = totals["failures"] + totals["errors"]
    return max(0, totals["tests"] - failed - totals["skipped"]), failed, totals["skipped"]


def main() -> int:
    mode, results, statuses = sys.argv[1], Path(sys.argv[2]), [int(status) for status in sys.argv[3:]]
    passed = failed = skipped = 0
    for report, status in zip(REPORTS, statuses, strict=True):
        if status == 0 and not (results / report).exists():
            continue  # said above that it was skipped
        counts = count_tests(results / report)
        again = results / report.replace(".xml", "-again.xml")
        if again.exists():
            still = count_tests(again)[1]
            print(f"{counts[1] - still} of {counts[1]} tests that failed beside others passed alone")
            counts = counts[0] + counts[1] - still, still, counts[2]
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
        if status != 0 and counts[1] == 0:
            failed += 1  # it ended early, or found no test
    for check in results.glob("*.check"):
        if check.read_text().strip() == "passed":
            passed += 1
        else:
            failed += 1
    floors = json.loads(FLOORS.read_text()) if mode != "quick" else {}
    covered = branch_coverage(results) if floors else {}
    for part, floor in floors.items():
        hit, of = covered.get(part, (0, 0))
        percent = 100 * hit / of if of else 0.0
        low = percent < floor
        failed += low
        print(f"branch coverage of {part}: {percent:.1f} % (floor {floor} %){' TOO LOW' if low else ''}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
