"""Many who connect at once, as the trials of one process do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.slow
CODE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from deskhand.fleet.ray.cluster import connect
with ThreadPoolExecutor(8) as threads:
    list(threads.map(connect, [sys.argv[1]] * 8))
print("connected")
"""


def test_they_connect_once(cluster: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, cluster.address],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).resolve().parents[3] / "src")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "connected\n", done.stderr[-2000:]
