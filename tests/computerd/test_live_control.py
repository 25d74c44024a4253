"""A person takes over: what they may do, what agents are told meanwhile, and that nothing stays pressed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.computerd.live.control import Control
from deskhand.computerd.served import TAKEN_OVER, ServedDesktop
from deskhand.hand import windows
from deskhand.hand.x11 import Connection, core
from deskhand.testing import XServer
from tests.computerd.daemons import RunningDaemon, daemon
from tests.computerd.viewers import Closed, RawViewer, cookie
from tests.x_windows import x_window
from tests.xservers import until

BUTTON_1 = 1 << 8


@pytest.fixture
def running(openbox_display: XServer, tmp_path: Path) -> Iterator[RunningDaemon]:
    with daemon(openbox_display, tmp_path, "--control", "--trace", str(tmp_path / "trace")) as it:
        yield it


@pytest.fixture
def conn(openbox_display: XServer) -> Iterator[Connection]:
    with Connection.open(openbox_display.display, openbox_display.xauthority) as it:
        yield it


def ask(viewer: RawViewer, what: dict[str, Any]) -> str | None:
    """Ask for something, and what came of it: the error, or None."""
    before = len(viewer.did)
    viewer.say(what)
    viewer.until(lambda: len(viewer.did) > before)
    error: str | None = viewer.did[-1]["error"]
    return error


def pointer(conn: Connection) -> core.Pointer:
    return core.query_pointer(conn)


def test_without_control_nobody_takes_over(openbox_display: XServer, tmp_path: Path, conn: Connection) -> None:
    with daemon(openbox_display, tmp_path) as running:
        before = pointer(conn)
        for said in ({"take": True}, {"act": [{"action": "move", "x": 1, "y": 1}], "id": 1}, {"give_back": True}):
            with RawViewer(running, cookie(running, control=True)) as viewer:
                viewer.turn()
                assert viewer.hello["may_take_over"] is False
                viewer.say(said)
                with pytest.raises(Closed) as caught:
                    viewer.until_quiet(10.0)
                assert caught.value.code == 4403
        assert pointer(conn) == before


def test_a_ticket_to_see_only_lets_nobody_take_over(running: RunningDaemon) -> None:
    with RawViewer(running, cookie(running, control=False)) as viewer:
        viewer.turn()
        assert viewer.hello["may_take_over"] is False
        viewer.say({"take": True})
        with pytest.raises(Closed):
            viewer.until_quiet(10.0)


def test_who_has_not_taken_over_does_nothing(running: RunningDaemon, conn: Connection) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        viewer.turn()
        before = pointer(conn)
        error = ask(viewer, {"act": [{"action": "move", "x": 1, "y": 1}], "id": 1})
        assert error is not None
        assert "taken over" in error
        assert pointer(conn) == before


def test_a_person_acts_and_agents_are_told_to_wait(running: RunningDaemon, conn: Connection) -> None:
    mine = cookie(running)
    with RawViewer(running, mine) as viewer, RawViewer(running, mine) as other:
        viewer.until(lambda: viewer.hello)
        assert ask(viewer, {"take": True}) is None
        viewer.until(lambda: viewer.state["control"] == viewer.hello["you"])
        other.until(lambda: other.state.get("control") == viewer.hello["you"])
        refused = ask(other, {"take": True})
        assert refused is not None
        assert "somebody else" in refused

        answer = running.act({"action": "move", "x": 700, "y": 700})
        assert answer.status_code == 409
        assert answer.json()["detail"] == TAKEN_OVER
        assert answer.json()["sent"] == "none"
        assert ask(viewer, {"act": [{"action": "click", "x": 300, "y": 200}], "id": 5}) is None
        assert viewer.did[-1]["id"] == 5
        assert (pointer(conn).root_x, pointer(conn).root_y) == (300, 200)
        viewer.until(lambda: any(outcome["person"] for outcome in viewer.outcomes))
        assert viewer.outcomes[-1]["actions"] == [{"words": "click (300, 200)", "status": "ok"}]

        assert ask(viewer, {"give_back": True}) is None
        viewer.until(lambda: viewer.state["control"] is None)
        assert running.act({"action": "move", "x": 700, "y": 700}).json()["ok"]


def test_a_person_acts_also_while_an_agent_has_the_lease(running: RunningDaemon, conn: Connection) -> None:
    with running.client() as client:
        client.post("/lease", json={"holder": "agent", "ttl": 600})
    with RawViewer(running, cookie(running)) as viewer:
        assert ask(viewer, {"take": True}) is None
        assert ask(viewer, {"act": [{"action": "move", "x": 44, "y": 55}], "id": 1}) is None
        assert (pointer(conn).root_x, pointer(conn).root_y) == (44, 55)


def test_a_batch_that_runs_stops_at_its_next_action(running: RunningDaemon, conn: Connection) -> None:
    answers: list[dict[str, Any]] = []
    actions = [
        {"action": "move", "x": 10, "y": 10},
        {"action": "wait", "seconds": 50},
        {"action": "move", "x": 1, "y": 1},
    ]
    acting = threading.Thread(target=lambda: answers.append(running.act(*actions).json()))
    acting.start()
    until(lambda: pointer(conn).root_x == 10)
    with RawViewer(running, cookie(running)) as viewer:
        assert ask(viewer, {"take": True}) is None
        acting.join(20)
        assert answers[0]["sent"] in ("part", "all")
        assert [result["status"] for result in answers[0]["results"]] == ["ok", "failed", "skipped"]
        assert TAKEN_OVER in answers[0]["results"][1]["error"]
        assert ask(viewer, {"act": [{"action": "move", "x": 20, "y": 20}], "id": 1}) is None


@pytest.mark.parametrize("how", ["give back", "leave"])
def test_what_is_held_is_released_when_the_person_goes(running: RunningDaemon, conn: Connection, how: str) -> None:
    with RawViewer(running, cookie(running)) as viewer:
        assert ask(viewer, {"take": True}) is None
        assert ask(viewer, {"act": [{"action": "mouse_down", "x": 60, "y": 60}], "id": 1}) is None
        assert ask(viewer, {"act": [{"action": "move", "x": 90, "y": 90}], "id": 2}) is None
        assert pointer(conn).mask & BUTTON_1
        if how == "give back":
            assert ask(viewer, {"give_back": True}) is None
    until(lambda: not pointer(conn).mask & BUTTON_1)
    until(lambda: running.act({"action": "move", "x": 5, "y": 5}).json()["ok"])


def test_what_a_person_can_not_do_is_refused(running: RunningDaemon) -> None:
    wrong: list[Any] = [
        {"action": "launch", "app": "xterm"},
        {"action": "quit", "window": 1},
        {"action": "clipboard_get"},
        {"action": "screenshot"},
        {"action": "click", "x": -5, "y": 1},
        {"action": "click", "colour": "red"},
        {"action": 7},
        "click",
        None,
    ]
    with RawViewer(running, cookie(running)) as viewer:
        assert ask(viewer, {"take": True}) is None
        for action in wrong:
            assert ask(viewer, {"act": [action], "id": 1}) is not None, action
        broken: tuple[Any, ...] = ([], [wrong[0]] * 51, {}, None)
        for actions in broken:
            assert ask(viewer, {"act": actions, "id": 1}) is not None
        assert ask(viewer, {"act": [{"action": "move", "x": 3, "y": 3}], "id": 2}) is None


def test_what_a_person_does_is_in_the_trace_and_what_they_type_is_not(
    running: RunningDaemon, conn: Connection, openbox_display: XServer, tmp_path: Path
) -> None:
    with x_window(conn, openbox_display, "A form"), RawViewer(running, cookie(running)) as viewer:
        x, y, width, height = windows.wait_window(conn, title="A form")["rect"]
        at = {"x": x + width // 2, "y": y + height // 2}
        running.act({"action": "move", **at}, headers={"Deskhand-Session": "bot"})
        assert ask(viewer, {"take": True}) is None
        assert ask(viewer, {"act": [{"action": "click", **at}], "id": 1}) is None
        assert ask(viewer, {"act": [{"action": "type", "text": "hunter2"}], "id": 2}) is None
        assert ask(viewer, {"act": [{"action": "key", "keys": "ctrl+a"}], "id": 3}) is None
        viewer.until(lambda: len(viewer.outcomes) == 4)
        assert "hunter2" not in json.dumps(viewer.outcomes)
    assert running.stop() == 0
    (trace,) = (tmp_path / "trace").glob("*/trace.jsonl")
    text = trace.read_text()
    assert "hunter2" not in text
    events = [json.loads(line) for line in text.splitlines()]
    batches = [event["envelope"]["actions"][0]["action"] for event in events if event["event"] == "batch"]
    assert batches == ["move", "click", "type", "key"]
    said = [event["text"] for event in events if event["event"] == "say"]
    assert said == ["By bot:", *["By a person at the live view:"] * 3]
    assert events[-1]["event"] == "finish"
    page = (trace.parent / "index.html").read_text()
    assert "a person at the live view" in page
    assert "hunter2" not in page


def test_who_falls_silent_gives_back(openbox_display: XServer, conn: Connection) -> None:
    async def scenario() -> None:
        async with ServedDesktop(openbox_display.display, openbox_display.xauthority) as served:
            control = Control(served, silence=0.3)
            gave_back = asyncio.Event()
            assert await control.take(1) is None
            control.changed = gave_back.set
            assert await control.act(1, [{"action": "mouse_down", "x": 70, "y": 70}]) is None
            assert pointer(conn).mask & BUTTON_1
            await asyncio.wait_for(gave_back.wait(), 20)
            assert control.holder is None
            assert served.person is None
            assert not pointer(conn).mask & BUTTON_1
            assert await control.take(2) is None

    asyncio.run(scenario())


def test_a_viewer_who_leaves_while_the_silence_ends_it_does_not_keep_what_is_held_down(
    openbox_display: XServer, conn: Connection
) -> None:
    async def work() -> None:
        async with ServedDesktop(openbox_display.display) as served:
            control = Control(served, silence=0.2)
            assert await control.take(1) is None
            assert await control.act(1, [{"action": "mouse_down", "x": 5, "y": 5}]) is None
            assert pointer(conn).mask & BUTTON_1
            busy = threading.Event()
            working = asyncio.create_task(served._acting.with_hand(lambda hand: busy.wait(20)))
            async with asyncio.timeout(20):
                while control._ending is None:  # the end waits for the hand
                    await asyncio.sleep(0.01)
                taking = asyncio.create_task(control.take(1))
                await asyncio.sleep(0)
                taking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await taking
                busy.set()
                await working
                while control.holder is not None:
                    await asyncio.sleep(0.01)
            assert not pointer(conn).mask & BUTTON_1

    asyncio.run(work())
