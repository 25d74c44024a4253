"""The study's tables; where the full recordings are, they are the ones that the design notes give."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from bench.settle import study
from bench.settle.adapted import Adapted
from bench.settle.crossvalidation import Scores, cross_validate
from bench.settle.measures import FIXED, against_fixed, clairvoyant, cosmetic, near, steady
from bench.settle.policies import S150, Fixed
from bench.settle.simulator import replay
from bench.settle.traces import FOLDER_VARIABLE, Trace, by_kind, folder, pooled, read

from .settle_traces import DATA, Box, frame, recorded, trace

WINDOW: Box = (200, 200, 400, 300)


@pytest.fixture(scope="module")
def stock() -> list[Trace]:
    where = folder()
    path = where / "traces_main.json.xz" if where else None
    if path is None or not path.exists():
        pytest.skip(f"{FOLDER_VARIABLE} names no folder with the full recordings")
    return pooled(read(path))


@pytest.mark.parametrize(
    ("seconds", "is_near", "is_cosmetic"), [(0.5, 71, 77), (1.0, 89, 95), (1.5, 95, 101), (2.0, 101, 101)]
)
def test_fixed_waits_on_the_full_recordings(stock: list[Trace], seconds: float, is_near: int, is_cosmetic: int) -> None:
    row = study.evaluate(Fixed(seconds), stock)
    assert (len(stock), row.near, row.cosmetic) == (102, is_near, is_cosmetic)


def test_the_clairvoyant_on_the_full_recordings(stock: list[Trace]) -> None:
    lucky = [clairvoyant(trace) for trace in stock]
    assert round(statistics.mean(lucky) * 1000) == 319
    assert round(statistics.median(lucky) * 1000) == 137
    assert round(against_fixed(lucky), 2) == 5.96
    assert round(statistics.mean(clairvoyant(trace, "near") for trace in stock) * 1000) == 401


def test_s150_on_the_full_recordings(stock: list[Trace]) -> None:
    row = study.evaluate(S150, stock)
    assert (row.near, row.cosmetic, row.lost) == (95, 101, [])
    assert row.mean == pytest.approx(0.521, abs=0.010)


def test_the_adapted_policy_on_the_full_recordings(stock: list[Trace]) -> None:
    """As right as the fixed wait in each kind, also with every quiet cut to 0.8, and shorter than S150."""
    for policy in (Adapted(), Adapted(margin=0.8)):
        for kind, group in by_kind(stock).items():
            assert study.evaluate(policy, group).lost == [], kind
    assert study.evaluate(Adapted(), stock).mean < study.evaluate(S150, stock).mean - 0.040
    assert statistics.mean(map(steady, stock)) < study.evaluate(Adapted(), stock).mean


def test_the_study_prints_its_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "traces_few.json.xz").write_bytes((DATA / "submenu.json.xz").read_bytes())
    assert study.main(["--traces", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "traces_few.json.xz (1 traces)" in text
    assert "no kind below the fixed wait: met" in text
    assert "without one rule" in text


def test_without_traces_it_says_what_to_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    assert study.main([]) == 2
    assert study.main(["--traces", str(tmp_path)]) == 2
    assert "give their folder with --traces" in capsys.readouterr().err


def test_a_file_that_holds_no_traces(tmp_path: Path) -> None:
    (tmp_path / "traces_bad.json.xz").write_bytes(b"not xz")
    with pytest.raises(ValueError, match="holds no traces"):
        read(tmp_path / "traces_bad.json.xz")


def test_a_row_names_what_is_lost() -> None:
    late = trace([frame(0.02, WINDOW), frame(0.9, WINDOW)])
    row = study.evaluate(Adapted(), [late, recorded("submenu")])
    assert row.lost == ["made/0"]
    assert (row.near, row.cosmetic) == (1, 1)


def test_values_are_judged_on_what_they_were_not_fitted_to() -> None:
    """Only the kind with the long pause asks for a long quiet; fitted without it, the policy is wrong there."""
    short = trace([frame(0.02, WINDOW)], kind="short", pings=[(0.0, 0.001)])
    pause = trace([frame(0.02, WINDOW), frame(0.13, WINDOW)], kind="pause", pings=[(0.0, 0.001)])
    grid = [Adapted(least=0.070), Adapted(least=0.200)]
    scores = Scores([short, pause], grid)
    assert grid[scores.fit([0])].least == 0.070
    assert grid[scores.fit([0, 1])].least == 0.200
    by_kind_left_out, *_ = cross_validate([short, pause], grid)
    assert by_kind_left_out.wrong == ["pause/0"]
    assert by_kind_left_out.mean > 0


def test_a_margin_is_kept() -> None:
    """0.120 s of quiet passes a pause of 0.110 s, but not when it is cut to 0.8."""
    pause = trace([frame(0.02, WINDOW), frame(0.13, WINDOW)], kind="pause", pings=[(0.0, 0.001)])
    grid = [Adapted(least=0.120), Adapted(least=0.200)]
    assert grid[Scores([pause], grid, margin=1.0).fit([0])].least == 0.120
    assert grid[Scores([pause], grid, margin=0.8).fit([0])].least == 0.200


def test_what_no_policy_gets_right_forbids_none() -> None:
    hopeless = trace([frame(0.02, WINDOW), frame(1.5, WINDOW)], kind="hopeless", pings=[(0.0, 0.001)])
    assert cosmetic(hopeless, FIXED)
    assert near(hopeless, FIXED)
    grid = [Adapted()]
    assert not cosmetic(hopeless, replay(grid[0], hopeless).waited)
    held, *_ = cross_validate([hopeless, recorded("submenu")], grid)
    assert held.wrong == []
    assert held.hopeless == ["hopeless/0"]
