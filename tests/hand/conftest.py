"""Fixtures of the hand's tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a resident hand's socket is to be."""
    return tmp_path / "hand"
