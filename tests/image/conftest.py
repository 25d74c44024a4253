"""One computer from the image for the tests that only look and launch; those that break it start their own.

``deploy/computer/check`` runs these and names the image in DESKHAND_IMAGE; without it there is nothing to run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.image.computers import Computer, started
from tests.image.entries import Entries

collect_ignore_glob = [] if os.environ.get("DESKHAND_IMAGE") else ["test_*.py"]

Start = Callable[..., Computer]


@pytest.fixture(scope="session")
def computer() -> Iterator[Computer]:
    """A healthy computer, run as compose.yaml says."""
    with started() as computer:
        computer.wait_until_healthy()
        yield computer


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts computers of the test's own; they are gone after it."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(started(**options))


@pytest.fixture
def entries(computer: Computer) -> Iterator[Entries]:
    """Desktop entries of the test's own in the shared computer."""
    made = Entries(computer)
    yield made
    made.remove()
