"""Desktops that are only pretended, and names of fleets."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest


@pytest.fixture
def not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Displays that do not exist can not be looked at; what a desktop is like is for other tests."""
    monkeypatch.setattr("deskhand.fleet.fingerprint.take_template", lambda made: {})
    monkeypatch.setattr("deskhand.fleet.fingerprint.differences", lambda made, template: [])


@pytest.fixture
def name() -> Iterator[str]:
    """Of a fleet with a status page, whose token is removed afterwards."""
    from deskhand.fleet.page.token import token_file

    name = f"page-{uuid.uuid4().hex[:8]}"
    yield name
    with suppress(FileNotFoundError):
        os.unlink(token_file(name))
