"""The ten tasks of ``examples/harbor``: each can be done, and none is done by itself."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.harbor.trials import needs_sandbox, run_job

TASKS = Path(__file__).parents[2] / "examples" / "harbor" / "tasks"
NAMES = sorted(task.name for task in TASKS.iterdir())
needs_desktop = pytest.mark.skipif(
    not all(shutil.which(program) for program in ("xfce4-session", "thunar", "mousepad", "xfce4-terminal")),
    reason="these tasks' desktop is XFCE",
)


def test_there_are_ten_and_each_is_whole() -> None:
    assert len(NAMES) == 10
    for name in NAMES:
        task = TASKS / name
        for part in ("task.toml", "instruction.md", "environment/Dockerfile", "tests/test.sh"):
            assert (task / part).is_file(), f"{name}/{part}"
        for line in (task / "solution" / "actions.jsonl").read_text().splitlines():
            json.loads(line)


def test_they_share_one_desktop() -> None:
    assert len({(TASKS / name / "environment" / "entrypoint.sh").read_bytes() for name in NAMES}) == 1


def test_solutions_are_batches() -> None:
    from deskhand.hand.envelope import parse_actions

    for name in NAMES:
        for line in (TASKS / name / "solution" / "actions.jsonl").read_text().splitlines():
            parse_actions(json.loads(line))


@pytest.mark.long
@needs_sandbox
@needs_desktop
def test_the_replays_score_one_on_all_ten(tmp_path: Path) -> None:
    agent = ["--agent", "deskhand.harbor.replay:Replay"]
    job = run_job(tmp_path, "--n-concurrent", "2", task=TASKS, agent=agent, timeout=1500)
    scores = {trial.result["task_name"]: (trial.reward, trial.error) for trial in job.trials}
    assert scores == dict.fromkeys(NAMES, (1.0, None))


@pytest.mark.long
@needs_sandbox
@needs_desktop
def test_an_untouched_desktop_scores_nothing_thirty_times(tmp_path: Path) -> None:
    job = run_job(
        tmp_path, "--n-concurrent", "2", "--n-attempts", "3", task=TASKS, agent=["--agent", "nop"], timeout=2400
    )
    assert Counter((trial.reward, trial.error) for trial in job.trials) == {(0.0, None): 30}
