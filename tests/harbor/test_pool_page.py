"""The configuration of a trial on a fleet's desktop, as it stands in both pages, run."""

from __future__ import annotations

import asyncio
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harbor.pooled import make_pooled_task
from tests.harbor.scripted import SOLUTION, Scripted
from tests.harbor.test_page import clean, rewards
from tests.harbor.trials import needs_sandbox
from tests.standins.server import serving

pytestmark = [pytest.mark.slow, needs_sandbox]
DOCS = Path(__file__).parents[2] / "docs" / "how-to"


@pytest.fixture(scope="module")
def fleet() -> Iterator[str]:
    from deskhand.fleet.options import Options
    from deskhand.fleet.starting import end_service, start_service

    name = f"page-{uuid.uuid4().hex[:8]}"
    start_service(name, Options(size=1, spares=1, screen=(1024, 768), isolation="bwrap"))
    yield name
    asyncio.run(end_service(name))


@pytest.mark.parametrize("page", ["harbor.md", "fleet.md"])
def test_the_environment_in_a_jobs_configuration(fleet: str, tmp_path: Path, page: str) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "PoolEnvironment" in block]
    task = make_pooled_task(tmp_path / "task")
    with serving(Scripted(SOLUTION)) as server:
        rest = f"""
jobs_dir: {tmp_path}/jobs
agents:
  - import_path: deskhand.harbor:ExistingDesktop
    model_name: openai/scripted
    kwargs: {{api_base: "{server.url}"}}
tasks: [{{path: {task}}}]
"""
        (tmp_path / "job.yaml").write_text(block.replace("pool: default", f"pool: {fleet}") + rest)
        command = ["harbor", "run", "--config", str(tmp_path / "job.yaml"), "--yes", "--quiet"]
        ran = subprocess.run(command, env=clean(), capture_output=True, text=True, timeout=300, check=False)
    assert rewards(tmp_path) == [1.0], ran.stdout[-1500:] + ran.stderr[-1500:]
