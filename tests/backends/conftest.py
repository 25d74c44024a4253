"""Fixtures of the backends' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deskhand.testing import window_manager
from deskhand.testing.received import Received, fixture_window
from tests.own_screens import Shared, screen_with_a_person


@pytest.fixture
def shared() -> Iterator[Shared]:
    with screen_with_a_person() as (server, person):
        yield server, person


@pytest.fixture
def window(shared: Shared) -> Iterator[Received]:
    with window_manager(shared[0]), fixture_window(shared[0]) as received:
        received.forget()
        yield received
