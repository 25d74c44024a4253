"""The configurations of docs/how-to/harbor.md, each two lines, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harbor.scripted import SOLUTION, Scripted
from tests.harbor.tasks import make_task
from tests.harbor.trials import ENVIRONMENT, needs_sandbox
from tests.standins.server import serving

pytestmark = [pytest.mark.slow, needs_sandbox]
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "harbor.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def rewards(place: Path) -> list[float]:
    results = [json.loads(file.read_text()) for file in place.glob("jobs/*/*/result.json")]
    return [result["verifier_result"]["rewards"]["reward"] for result in results]


def clean() -> dict[str, str]:
    """An environment with nothing of ours, and this Python's programs first."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none"}


def test_the_agent_in_a_jobs_configuration(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("yaml") if "ExistingDesktop" in block]
    task = make_task(tmp_path / "task")
    with serving(Scripted(SOLUTION)) as server:
        rest = f"""    kwargs: {{api_base: "{server.url}"}}
jobs_dir: {tmp_path}/jobs
environment: {{import_path: "{ENVIRONMENT}"}}
tasks: [{{path: {task}}}]
"""
        (tmp_path / "job.yaml").write_text(block.replace("your-model", "scripted") + rest)
        command = ["harbor", "run", "--config", str(tmp_path / "job.yaml"), "--yes", "--quiet"]
        ran = subprocess.run(command, env=clean(), capture_output=True, text=True, timeout=300, check=False)
    assert rewards(tmp_path) == [1.0], ran.stdout[-1500:] + ran.stderr[-1500:]


@pytest.mark.parametrize("number", [0, 1])
def test_the_command_lines(tmp_path: Path, number: int) -> None:
    (block,) = [block for block in blocks("sh") if ("ExistingDesktop", "computer-1")[number] in block]
    task = make_task(tmp_path / "task", size="1024x900")  # computer-1's own size
    with serving(Scripted(SOLUTION)) as server:
        script = block.replace("your-model", "scripted").replace("your-task", str(task)).rstrip()
        script += f" --ak api_base={server.url} --env {ENVIRONMENT} --jobs-dir {tmp_path}/jobs --yes --quiet"
        ran = subprocess.run(
            ["bash", "-c", script], env=clean(), capture_output=True, text=True, timeout=300, check=False
        )
    assert rewards(tmp_path) == [1.0], ran.stdout[-1500:] + ran.stderr[-1500:]
