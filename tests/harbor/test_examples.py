"""The ten tasks of ``examples/harbor``: each can be done, and none is done by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.harbor.scripted import DONE
from tests.harbor.trials import needs_sandbox, run_job

EXAMPLES = Path(__file__).parents[2] / "examples" / "harbor"
TASKS = EXAMPLES / "tasks"
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
    # The model says at once that it is done: the desktop is there then, and nobody has touched it.
    options = ("--n-concurrent", "2", "--n-attempts", "3")
    job = run_job(tmp_path, *options, task=TASKS, replies=[DONE, DONE], timeout=2400)
    assert Counter((trial.reward, trial.error) for trial in job.trials) == {(0.0, None): 30}


@pytest.mark.long
@needs_sandbox
@pytest.mark.skipif("DESKHAND_IMAGE" not in os.environ, reason="DESKHAND_IMAGE names the image that is built")
def test_the_replays_score_one_on_the_images_root(tmp_path: Path) -> None:
    """The same tasks on the programs of our image, and none of this machine's."""
    with tempfile.TemporaryDirectory(prefix="deskhand-image-") as folder:
        os.chmod(folder, 0o755)  # a sandbox's users are others than ours
        root = f"{folder}/root"
        subprocess.run([EXAMPLES / "unpack-image", root, os.environ["DESKHAND_IMAGE"]], check=True, timeout=600)
        agent = ["--agent", "deskhand.harbor.replay:Replay"]
        options = ("--n-concurrent", "2", "--ek", f"image={root}")
        job = run_job(tmp_path, *options, task=TASKS, agent=agent, timeout=1500)
    scores = {trial.result["task_name"]: (trial.reward, trial.error) for trial in job.trials}
    assert scores == dict.fromkeys(NAMES, (1.0, None))


def test_unpacking_says_what_is_wrong(tmp_path: Path) -> None:
    def said(*words: str) -> tuple[int, str]:
        ran = subprocess.run([EXAMPLES / "unpack-image", *words], capture_output=True, text=True, timeout=60)
        return ran.returncode, ran.stderr.strip()

    assert said() == (2, "usage: unpack-image DIRECTORY [IMAGE]")
    code, words = said(str(tmp_path))
    assert code == 1
    assert words.endswith("is there already: remove it, or name another")
