"""The conformance suite finds what it is there to find: backends with one fault each, and the check that must fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_MINE = """
import asyncio
import pytest
from deskhand import DisplayLost, LocalDisplay, Outcome
from deskhand.testing.conformance import DesktopConformance

class Faulty(LocalDisplay):
    async def act(self, batch):
{act}

class TestFaulty(DesktopConformance):
    @pytest.fixture
    def make_backend(self):
        return lambda server: Faulty(server.display, server.xauthority)

    @pytest.fixture
    def make_lossy(self):
        def make(server):
            backend = Faulty(server.display, server.xauthority)
            return backend, lambda: setattr(backend, "lose", True)
        return make
"""
_EACH = "batch = {**batch, 'actions': [{**a, **%s} for a in batch['actions']]}\nreturn await super().act(batch)"
FAULTS = {
    "test_text_arrives_exactly[de]": _EACH % "({'text': a['text'][:-1]} if 'text' in a else {})",
    "test_the_position_0_0": _EACH % "({'x': max(1, a['x'])} if 'x' in a else {})",
    "test_a_drag_of_several_points": _EACH % "({'path': [a['path'][0], a['path'][-1]]} if 'path' in a else {})",
    "test_scrolling[3-0-buttons0]": _EACH % "({'dx': a['dx'] - 1} if 'dx' in a else {})",
    "test_a_refused_batch_sends_nothing": (
        "await super().act({'actions': [{'action': 'move', 'x': 1, 'y': 1}]})\nreturn await super().act(batch)"
    ),
    "test_the_picture_is_of_now": (
        "outcome = await super().act(batch)\nself.old = getattr(self, 'old', None) or outcome.picture\n"
        "return Outcome(outcome.answer, self.old)"
    ),
    "test_cancelling_leaves_nothing_pressed[button]": (
        "task = asyncio.create_task(super().act(batch))\nreturn await asyncio.shield(task)"
    ),
    "test_what_is_held_stays_for_the_next_batch": (
        "outcome = await super().act(batch)\nself._release()\nreturn outcome"
    ),
    "test_a_lost_answer_is_unknown_and_never_sent_again": (
        "outcome = await super().act(batch)\n"
        "if not getattr(self, 'lose', False):\n    return outcome\n"
        "self.lose = False\nawait super().act(batch)\nraise DisplayLost('lost')"
    ),
    "test_a_wrong_batch_is_refused[3]": (
        "try:\n    return await super().act(batch)\nexcept Exception as error:\n    error.sent = 'part'\n    raise"
    ),
    "test_the_answer_has_the_shape_of_every_answer": (
        "outcome = await super().act(batch)\nreturn Outcome({**outcome.answer, 'wire': 7}, outcome.picture)"
    ),
}

#: What the check waits for never comes, for most of a minute.
LONG = ("test_cancelling_leaves_nothing_pressed[button]",)


def outcome_of(directory: Path, act: str, check: str) -> str:
    body = "".join(f"        {line}\n" for line in act.splitlines())
    (directory / "test_mine.py").write_text(_MINE.replace("{act}", body))
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_mine.py::TestFaulty::{check}"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    done = subprocess.run(words, cwd=directory, env=env, capture_output=True, text=True, timeout=120)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "check", [pytest.param(check, marks=pytest.mark.long) if check in LONG else check for check in FAULTS]
)
def test_a_fault_is_found(tmp_path: Path, check: str) -> None:
    said = outcome_of(tmp_path, FAULTS[check], check)
    assert "1 failed" in said, said
    assert "assert" in said or "DID NOT RAISE" in said, "the failure does not say what was compared"


@pytest.mark.slow
def test_without_a_fault_it_passes(tmp_path: Path) -> None:
    said = outcome_of(tmp_path, "return await super().act(batch)", "test_the_position_0_0")
    assert "1 passed" in said, said
