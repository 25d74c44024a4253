"""The simulation of a fleet: the same for the same seed, and right where the answer is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench.fleet_simulation import SWEEPS, Assumptions, Simulation, main
from PIL import Image

SMALL = Assumptions(machines=20, seconds=900.0, warm_up_s=300.0)


def test_a_seed_decides_everything() -> None:
    assert Simulation(SMALL).run() == Simulation(SMALL).run()
    assert Simulation(SMALL).run() != Simulation(replace(SMALL, seed=2)).run()


def test_what_can_be_reckoned_without_it() -> None:
    found = Simulation(replace(SMALL, mtbf_s=1e12)).run()
    # Every desktop but for the half second between two episodes: leases a second are in use over an episode's length.
    assert found.in_use == pytest.approx(150 / 150.5, abs=0.01)
    assert found.leases_a_second == pytest.approx(320 / 150.5, rel=0.05)
    assert found.steps_a_second == pytest.approx(found.in_use * 320 / 5)
    assert found.lost == 0


def test_a_manager_that_is_too_slow_is_the_limit() -> None:
    found = Simulation(replace(SMALL, manager_rate=1.0, bulk=1, seconds=2000.0, warm_up_s=1000.0)).run()
    assert found.leases_a_second == pytest.approx(1.0, rel=0.1)
    assert found.in_use == pytest.approx(150 / 320, rel=0.1)


def test_machines_that_fail_lose_what_runs_there() -> None:
    found = Simulation(replace(SMALL, mtbf_s=3600.0, seconds=7500.0)).run()
    # An episode lasts 150 s: of those that run, so much is lost.
    assert found.lost == pytest.approx(150 / 3600, rel=0.35)


def test_without_spares_one_waits_for_the_start() -> None:
    found = Simulation(replace(SMALL, spares=0, between_s=0.01, mtbf_s=1e12)).run()
    assert found.wait_p50_s == pytest.approx(SMALL.reset_s, rel=0.2)
    assert Simulation(replace(SMALL, between_s=0.01, mtbf_s=1e12)).run().wait_p50_s < 0.1


def test_the_command_writes_the_table_and_the_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart, data = tmp_path / "chart.png", tmp_path / "found.json"
    assert main(["--machines", "3", "--seconds", "60", "--chart", str(chart), "--json", str(data)]) == 0
    assert "| desktops in use | at least 95 % |" in capsys.readouterr().out
    found = json.loads(data.read_text())
    assert found["assumptions"]["machines"] == 3
    assert [len(sweep["points"]) for sweep in found["sweeps"]] == [len(values) for _, values, *_ in SWEEPS]
    with Image.open(chart) as image:
        assert image.size == (1400, 900)
