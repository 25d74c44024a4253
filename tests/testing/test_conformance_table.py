"""The table of the conformance suite: what a report comes to, and that the committed one has every check."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPORT = """<testsuites><testsuite>
<testcase classname="tests.backends.test_conformance.TestGuestSsh" name="test_scrolling[3-0]"/>
<testcase classname="tests.backends.test_conformance.TestGuestSsh" name="test_scrolling[0-1]"><failure/></testcase>
<testcase classname="tests.backends.test_conformance.TestGuestSsh" name="test_the_position_0_0"/>
<testcase classname="tests.backends.test_conformance.TestMine" name="test_scrolling[3-0]"/>
<testcase classname="tests.backends.test_conformance.TestMine" name="test_the_position_0_0"><skipped/></testcase>
<testcase classname="tests.backends.test_guest.TestLease" name="test_other"/>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conformance_table", ROOT / "tools/conformance_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_report_becomes_a_table(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results.xml").write_text(REPORT)
    text = tool.reference(tool.read([tmp_path / "results.xml"]))
    assert text.splitlines()[-4:] == [
        "| | Guest, ssh | Mine |",
        "|---|---|---|",
        "| scrolling | **1 of 2** | 1 |",
        "| the position (0, 0) | 1 | – |",
    ]
    (tmp_path / "again.xml").write_text(REPORT.replace("<failure/>", "").replace("TestMine", "TestOther"))
    again = tool.read([tmp_path / "results.xml", tmp_path / "again.xml"])
    assert again["TestGuestSsh", "test_scrolling"] == [2, 0, 0]
    assert {backend for backend, _ in again} == {"TestGuestSsh", "TestMine", "TestOther"}
    found = [("TestMine", "test_scrolling"), ("TestGuestSsh", "test_the_position_0_0")]
    assert tool.missing(text, found) == []
    assert tool.missing(text, [*found, ("TestOther", "test_new")]) == ["Other", "new"]
    assert tool.missing("", found[:1]) == ["Mine", "scrolling"]


@pytest.mark.slow
def test_the_committed_table_has_every_backend_and_check() -> None:
    words = [sys.executable, "tools/conformance_table.py", "--check"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
