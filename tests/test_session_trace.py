"""What a session records in its trace: every batch, refused and cancelled ones too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from deskhand import (
    BatchRefused,
    BudgetSpent,
    DisplayLost,
    NoDisplay,
    Outcome,
    Session,
    SetupError,
    TraceRecorder,
    Unsupported,
)
from deskhand.backends.base import Envelope
from tests.told import Told, batch, lines, ok


def test_everything_is_recorded_refusals_too(tmp_path: Path) -> None:
    lost = DisplayLost("the X server is gone", answer={"ok": False, "sent": "unknown", "error": "the X server is gone",
        "results": [{"action": "click", "status": "failed", "error": "the X server is gone"}]})  # fmt: skip

    async def run() -> None:
        told = Told(
            ok("click", picture=1), BatchRefused("no such key", 0), NoDisplay("none"), Unsupported("8 bit"), lost
        )
        session = Session(told, max_actions=3, trace=TraceRecorder(tmp_path, goal="g"))
        await session.act(batch("click", picture=True))
        for error in (BatchRefused, NoDisplay, Unsupported, DisplayLost):
            with pytest.raises(error):
                await session.act(batch("click"))
        with pytest.raises(BudgetSpent):
            await session.act(batch("click", "click", "click"))
        await session.apps()

    asyncio.run(run())
    events = lines(tmp_path)[1:]
    assert [event["event"] for event in events] == ["batch"] * 6 + ["tool"]
    assert events[0]["after"] == "0001.png"
    assert [event["answer"]["sent"] for event in events[:6]] == ["all", "none", "none", "none", "unknown", "none"]
    assert [event["answer"].get("error", "")[:11] for event in events[1:6]] == [
        "no such key", "none", "8 bit", "the X serve", "the batch h",
    ]  # fmt: skip
    assert all(event["envelope"]["actions"] for event in events[:6])


def test_a_cancelled_batch_is_recorded(tmp_path: Path) -> None:
    class Waiting(Told):
        async def act(self, batch: Envelope) -> Outcome:
            await asyncio.Event().wait()
            raise AssertionError

    async def run() -> None:
        session = Session(Waiting(), trace=TraceRecorder(tmp_path, goal="g"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.act(batch("click")), 0.05)
        assert session.last_outcome is not None
        assert session.last_outcome["text"].startswith("cancelled")

    asyncio.run(run())
    assert lines(tmp_path)[1]["answer"]["sent"] == "unknown"


def test_a_trace_that_can_not_be_written_does_not_make_a_sent_batch_look_unsent(tmp_path: Path) -> None:
    class Full(TraceRecorder):
        def batch(self, *_: Any, **__: Any) -> None:
            raise SetupError("no space left")

    async def run() -> None:
        session = Session(Told(ok("click"), BatchRefused("no")), trace=Full(tmp_path, goal="g"), max_actions=9)
        with pytest.raises(SetupError, match="no space left") as caught:
            await session.act(batch("click"))
        assert caught.value.sent == "all"
        assert caught.value.facts["answer"]["ok"]
        assert session.actions_used == 1
        with pytest.raises(BatchRefused):
            await session.act(batch("click"))

    asyncio.run(run())


def test_a_list_of_applications_that_fails_is_told_and_stands_in_the_trace(tmp_path: Path) -> None:
    class WithoutLookup(Told):
        async def apps(self) -> list[dict[str, str]]:
            raise Unsupported("there is no lookup here")

    async def run() -> None:
        session = Session(WithoutLookup(), trace=TraceRecorder(tmp_path, goal="g"))
        with pytest.raises(Unsupported):
            await session.apps()
        assert session.last_outcome is not None
        assert (session.last_outcome["ok"], session.last_outcome["text"]) == (False, "there is no lookup here")

    asyncio.run(run())
    assert lines(tmp_path)[1]["answer"] == {"error": "there is no lookup here"}
