"""Real trials, with no Docker: both ways in, both drivers, in the Harbor that is installed here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harbor.scripted import DONE, SOLUTION
from tests.harbor.tasks import make_task
from tests.harbor.trials import needs_sandbox, run_job

pytestmark = [pytest.mark.slow, needs_sandbox]
#: None of these is Harbor's to start: the task's own desktop has one Xvfb.
BROUGHT = ("startxfce4", "xfce4-session", "x11vnc", "websockify", "chromium")


@pytest.mark.parametrize(
    ("way", "driver"), [("import", "hand"), ("import", "tools"), ("patch", "hand"), ("patch", "tools")]
)
def test_a_trial_is_won(tmp_path: Path, way: str, driver: str) -> None:
    if way == "import":
        job = run_job(tmp_path, "--ak", f"driver={driver}")
    else:
        job = run_job(tmp_path, patch={"DRIVER": driver, "SETTLE_SEC": "1"})
    (trial,) = job.trials
    assert (trial.reward, trial.error) == (1.0, None), job.output[-2000:]
    assert job.pictures == [1, 2, 3, 4, 5, 6]
    assert sum(line.startswith("Xvfb ") for line in trial.processes) == 1
    for name in BROUGHT:
        assert not any(name in line for line in trial.processes), name
    facts = trial.metadata["deskhand"]
    assert facts["driver"] == driver
    assert facts["size"] == [1024, 768]
    assert facts["blank"] is False
    saved = sorted(file.name for file in (trial.place / "agent").glob("*.png"))
    assert saved == ["screenshot_ep0.png", *(f"screenshot_ep{n}.png" for n in range(1, 6)), "screenshot_init.png"]


def test_one_exec_a_step_with_the_hand(tmp_path: Path) -> None:
    more = [{"type": "mouse_move", "x": n, "y": n} for n in range(100, 110)]
    execs = []
    for number, replies in enumerate((SOLUTION, [*more, *SOLUTION])):
        place = tmp_path / str(number)
        place.mkdir()
        (trial,) = run_job(place, "--ak", "driver=hand", replies=replies).trials
        assert trial.reward == 1.0
        execs.append(trial.metadata["deskhand"]["execs"])
    assert execs[1] - execs[0] == len(more)


def test_four_at_once_and_a_bounded_history(tmp_path: Path) -> None:
    job = run_job(tmp_path, "--n-attempts", "4", "--n-concurrent", "4", "--ak", "keep_screenshots=2")
    assert [trial.reward for trial in job.trials] == [1.0] * 4, job.output[-2000:]
    assert max(job.pictures) == 2
    assert len(job.pictures) == 4 * 6


def test_a_desktop_that_was_not_touched_scores_nothing(tmp_path: Path) -> None:
    (trial,) = run_job(tmp_path, replies=[DONE, DONE]).trials
    assert (trial.reward, trial.error) == (0.0, None)


@pytest.mark.skipif(
    not all(shutil.which(program) for program in ("startxfce4", "chromium", "wmctrl", "xdotool")),
    reason="stock computer-1 needs xfce4, chromium, wmctrl and xdotool",
)
def test_stock_runs_in_the_same_environment(tmp_path: Path) -> None:
    """What ours is measured against (``bench.harbor --desktop browser``): it starts everything itself."""
    task = make_task(tmp_path / "task", desktop="#!/bin/bash\nsleep infinity\n")
    agent = ["--agent", "computer-1", "--model", "openai/scripted", "--ak", "enable_images=true"]
    job = run_job(tmp_path, task=task, agent=agent, replies=[{"type": "click", "x": 500, "y": 500}, DONE, DONE])
    (trial,) = job.trials
    assert (trial.reward, trial.error) == (0.0, None), job.output[-2000:]
    assert job.pictures == [1, 2, 3]
    for name in ("Xvfb :1", "xfce4-session", "chromium"):
        assert any(name in line for line in trial.processes), name


def test_a_bad_variable_stops_before_a_trial(tmp_path: Path) -> None:
    job = run_job(tmp_path, patch={"SETTLE": "soon"})
    assert job.code == 2
    assert job.trials == []
    assert job.output.strip().splitlines()[-1].startswith("deskhand.harbor: HARBOR_CUA_SETTLE='soon'")
    assert "Traceback" not in job.output
