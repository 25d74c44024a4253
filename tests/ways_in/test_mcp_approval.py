"""What needs a person, over MCP: asked through the official client, in both forms of the protocol, or refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from deskhand import DesktopInUse
from deskhand.backends.lease import DisplayLease
from deskhand.testing import XServer
from tests.commands import PROGRAM, environment
from tests.probes import RawWindow, pressed
from tests.ways_in.test_mcp import run, text, until

pytest.importorskip("mcp")
from mcp import Client, MCPError, StdioServerParameters, types

pytestmark = pytest.mark.slow

CLICK = {"action": "click", "x": 10, "y": 10}
SECRET: dict[str, Any] = {"action": "type", "text": "hunter-2-hunter", "secret": True}
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


class Person:
    """The user of a client: answers with one word after another, and remembers what was asked."""

    def __init__(self, *words: Any, holds: asyncio.Event | None = None) -> None:
        self.words = list(words)
        self.asked: list[str] = []
        self.holds = holds

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        self.asked.append(params.message)
        assert params.requested_schema == {"type": "object", "properties": {}}
        if self.holds is not None:
            await self.holds.wait()
        word = self.words.pop(0)
        if isinstance(word, types.ErrorData):
            return word
        return types.ElicitResult(action=word, content={} if word == "accept" else None)


@asynccontextmanager
async def client(server: XServer, person: Person | None, mode: str, *options: str) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=PROGRAM, args=["mcp", "--display", server.display, *options], env=environment(server)
    )
    async with Client(parameters, elicitation_callback=person, read_timeout_seconds=60, mode=mode) as connected:
        yield connected


def recorded(directory: Path) -> list[tuple[str, str]]:
    lines = (directory / "trace.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [(event["ask"]["source"], event["outcome"]) for event in events if event["event"] == "approval"]


@MODES
def test_accept_decline_and_cancel(display: XServer, tmp_path: Path, mode: str) -> None:
    person = Person("decline", "cancel", "accept")
    options = ("--ask", "window:never there", "--ask", "secret", "--trace", str(tmp_path / "trace"))

    async def work() -> None:
        async with client(display, person, mode, *options) as connected:
            with RawWindow(display) as window:
                act = {"actions": [CLICK, SECRET]}
                declined = await connected.call_tool("computer_act", act)
                assert declined.is_error
                assert "did not grant permission to run 'type'" in text(declined)
                assert "nothing was sent" in text(declined)
                cancelled = await connected.call_tool("computer_act", act)
                assert cancelled.is_error
                assert "gave no answer: speak with the user" in text(cancelled)
                assert window.all("press") == []
                allowed = await connected.call_tool("computer_act", act)
                assert "0 click ok" in text(allowed)
                assert len(window.all("press")) == 1
                # What needs nobody is not asked about.
                assert not (await connected.call_tool("computer_act", {"actions": [CLICK]})).is_error
                assert not (await connected.call_tool("computer_screenshot")).is_error

    run(work())
    assert person.asked == ["The agent wants to use your desktop: type a secret text. Allow it?"] * 3
    assert recorded(tmp_path / "trace") == [
        ("policy: secret", "declined"),
        ("policy: secret", "no answer"),
        ("policy: secret", "allowed"),
    ]
    for path in (tmp_path / "trace").iterdir():
        assert SECRET["text"].encode() not in path.read_bytes(), path


@MODES
def test_a_yes_for_the_session_is_asked_once(display: XServer, mode: str) -> None:
    person = Person("accept")

    async def work() -> None:
        async with client(display, person, mode, "--ask", "input") as connected:
            for _ in range(3):
                assert not (await connected.call_tool("computer_act", {"actions": [CLICK, CLICK]})).is_error

    run(work())
    assert len(person.asked) == 1


@MODES
def test_a_client_that_can_not_ask(display: XServer, tmp_path: Path, mode: str) -> None:
    async def work() -> None:
        options = ("--ask", "input", "--trace", str(tmp_path / "trace"))
        async with client(display, None, mode, *options) as connected:
            with RawWindow(display) as window:
                refused = await connected.call_tool("computer_act", {"actions": [CLICK]})
                assert refused.is_error
                for words in ("needs a person to allow it (click on this screen", "no elicitation", "--approve"):
                    assert words in text(refused)
                assert refused.structured_content["sent"] == "none"
                assert window.all("press") == []
                assert not (await connected.call_tool("computer_screenshot")).is_error
        async with client(display, None, mode, "--ask", "input", "--approve") as connected:
            assert not (await connected.call_tool("computer_act", {"actions": [CLICK]})).is_error

    run(work())
    assert recorded(tmp_path / "trace") == [("policy: input", "nobody")]


def test_a_client_that_says_it_can_ask_and_then_does_not(display: XServer) -> None:
    person = Person(types.ErrorData(code=types.INVALID_REQUEST, message="no"))

    async def work() -> None:
        async with client(display, person, "legacy", "--ask", "input") as connected:
            refused = await connected.call_tool("computer_act", {"actions": [CLICK]})
            assert refused.is_error
            assert "gave no answer" in text(refused)

    run(work())


@MODES
def test_the_desktop_is_kept_while_the_person_thinks(display: XServer, mode: str) -> None:
    """And who waits hears of it."""

    async def work() -> None:
        answer = asyncio.Event()
        person = Person("accept", holds=answer)
        told: list[str | None] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)

        async with client(display, person, mode, "--ask", "input", "--name", "thinking") as connected:
            arguments = {"actions": [CLICK]}
            call = asyncio.create_task(connected.call_tool("computer_act", arguments, progress_callback=note))
            await until(lambda: person.asked)
            lease = DisplayLease(display.display, None, "another")
            with pytest.raises(DesktopInUse, match="'thinking'"):
                await lease.take(1)
            if mode == "legacy":
                await until(lambda: any("waits for a person" in str(message) for message in told))
            answer.set()
            assert not (await call).is_error
            await lease.release()

    run(work())


@MODES
def test_a_call_that_is_cancelled_while_the_person_thinks(display: XServer, mode: str) -> None:
    async def work() -> None:
        person = Person("accept", holds=asyncio.Event())
        async with client(display, person, mode, "--ask", "input") as connected:
            with RawWindow(display) as window:
                call = asyncio.create_task(connected.call_tool("computer_act", {"actions": [CLICK]}))
                await until(lambda: person.asked)
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                assert not (await connected.call_tool("computer_screenshot")).is_error
                assert window.all("press") == []
                assert pressed(display) == []

    run(work())


def test_nobody_is_asked_about_what_will_be_refused(display: XServer) -> None:
    person = Person()

    async def work() -> None:
        async with client(display, person, "auto", "--ask", "input", "--max-actions", "1") as connected:
            for wrong in ([{"action": "clik"}], [], [CLICK, CLICK], "x"):
                assert (await connected.call_tool("computer_act", {"actions": wrong})).is_error

    run(work())
    assert person.asked == []


def test_an_answer_holds_for_the_call_it_was_given_for_and_once(display: XServer) -> None:
    """A client that drives the round trips by hand, and not as it should."""

    async def work() -> None:
        async with client(display, Person(), "auto", "--ask", "secret") as connected:
            yes = {"allow": types.ElicitResult(action="accept", content={})}

            async def call(actions: list[Any], **more: Any) -> Any:
                given = {"actions": actions}
                return await connected.session.call_tool("computer_act", given, allow_input_required=True, **more)

            asked = await call([SECRET])
            assert isinstance(asked, types.InputRequiredResult)
            other = await call([SECRET, SECRET], input_responses=yes, request_state=asked.request_state)
            assert other.is_error
            assert "belongs to another call" in text(other)
            for state in (asked.request_state, "made up"):  # spent, and never given
                again = await call([SECRET], input_responses=yes, request_state=state)
                assert isinstance(again, types.InputRequiredResult)
            without = await call([SECRET], request_state=again.request_state)
            assert without.is_error
            assert "gave no answer" in text(without)
            asked = await call([SECRET])
            done = await call([SECRET], input_responses=yes, request_state=asked.request_state)
            assert text(done).startswith("0 type "), text(done)  # it got to the desktop, where nothing takes keys

    run(work())


def test_questions_that_nobody_answers_are_few(display: XServer, tmp_path: Path) -> None:
    async def work() -> None:
        options = ("--ask", "secret", "--trace", str(tmp_path / "trace"))
        async with client(display, Person(), "auto", *options) as connected:
            for _ in range(20):
                arguments = {"actions": [SECRET]}
                asked = await connected.session.call_tool("computer_act", arguments, allow_input_required=True)
                assert isinstance(asked, types.InputRequiredResult)
            assert len(recorded(tmp_path / "trace")) == 4

    run(work())
    assert recorded(tmp_path / "trace") == [("policy: secret", "no answer")] * 20


def test_a_rule_that_is_none(display: XServer) -> None:
    async def work() -> None:
        with pytest.raises((MCPError, ExceptionGroup)):
            async with client(display, None, "legacy", "--ask", "everything"):
                pass

    run(work())
