"""``Memory``: what a pretend desktop does with actions. What it has in common with real ones: ``test_conformance``."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from PIL import Image

from deskhand import BatchRefused, DisplayLost, Memory, Outcome, Session
from deskhand.testing.batches import quick, run
from deskhand.tools import ComputerTools


def acted(*actions: dict[str, Any], **more: Any) -> tuple[Memory, Outcome]:
    desktop = Memory()
    return desktop, run(desktop.act({"actions": list(actions), **more}))


def test_an_application_is_a_window_that_shows_what_is_typed() -> None:
    typed = {"action": "type", "text": "Grüße\nEnde!"}
    keys: list[dict[str, Any]] = [
        {"action": "key", "keys": "BackSpace"},
        {"action": "key", "keys": "Return", "repeat": 2},
    ]
    desktop, outcome = acted({"action": "launch", "app": "text editor"}, typed, *keys)
    assert outcome.ok
    assert desktop.windows_open[-1].text == "Grüße\nEnde\n\n"
    assert outcome.results[0]["window"]["title"] == "Text Editor"
    assert [action["action"] for action in desktop.actions] == ["launch", "type", "key", "key"]
    assert desktop.actions[1] == typed
    assert (outcome.answer["settle"], outcome.answer["sent"]) == ("settled", "all")


def test_keys_go_nowhere_without_a_window() -> None:
    desktop, outcome = acted({"action": "type", "text": "x"})
    assert not outcome.ok
    assert (outcome.answer["sent"], outcome.error) == (
        "none",
        "no window has the keyboard focus: open or click one first",
    )
    assert desktop.actions == []


def test_the_applications_are_those_it_was_given() -> None:
    desktop = Memory(apps=["Mail (work)", "Schriften & Zeichen", "日本"])
    apps = run(desktop.apps())
    assert [app["name"] for app in apps] == ["Mail (work)", "Schriften & Zeichen", "日本"]
    assert run(desktop.act({"actions": [{"action": "launch", "app": app["name"]} for app in apps]})).ok
    with pytest.raises(BatchRefused, match=r"unknown application 'Mail'.*Mail \(work\)"):
        run(desktop.act({"actions": [{"action": "launch", "app": "Mail"}]}))


def test_windows_are_clicked_focused_resized_and_closed() -> None:
    desktop, _ = acted({"action": "launch", "app": "Terminal"}, {"action": "launch", "app": "Text Editor"})
    first, second = (window.id for window in desktop.windows_open)
    run(desktop.act(quick({"action": "resize", "window": second, "x": 600, "y": 400, "width": 50})))
    assert run(desktop.windows())[1]["rect"] == [600, 400, 50, 600]
    run(desktop.act(quick({"action": "click", "x": 50, "y": 50}, {"action": "type", "text": "a"})))
    run(desktop.act(quick({"action": "focus", "window": second}, {"action": "type", "text": "b"})))
    assert {window.id: window.text for window in desktop.windows_open} == {first: "a", second: "b"}
    assert [window["active"] for window in run(desktop.windows())] == [False, True]
    outcome = run(desktop.act(quick({"action": "quit", "app": "Terminal"}, {"action": "close", "window": second})))
    assert outcome.results[0]["outcome"] == "closed"
    assert run(desktop.windows()) == []
    for name in ("Terminal", "Terminol"):
        (result,) = run(desktop.act(quick({"action": "quit", "app": name}))).results
        assert result["outcome"] == "not_running"
        assert ("nearest are 'Terminal'" in result.get("unknown", "")) == (name == "Terminol")


def test_the_picture_changes_with_what_is_typed() -> None:
    desktop = Memory(size=(300, 200))

    def look() -> tuple[str, Any]:
        outcome = run(desktop.act({"actions": [{"action": "screenshot"}]}))
        assert outcome.picture is not None
        image = Image.open(io.BytesIO(outcome.picture)).convert("RGB")
        assert image.size == (300, 200)
        return outcome.answer["picture"]["hash"], image.getpixel((50, 50))

    seen = [look()]
    assert look() == seen[0]
    for action in ({"action": "launch", "app": "Terminal"}, {"action": "type", "text": "x"}):
        run(desktop.act(quick(action)))
        seen.append(look())
    assert len({hash for hash, _ in seen}) == len({colour for _, colour in seen}) == 3


def test_what_is_held_and_when_it_is_released() -> None:
    desktop, _ = acted({"action": "launch", "app": "Terminal"}, {"action": "key_down", "keys": "ctrl+shift"})
    run(desktop.act(quick({"action": "mouse_down"})))
    assert desktop.held == ["Control_L", "Shift_L", "left"]
    outcome = run(desktop.act(quick({"action": "focus", "window": 99})))
    assert outcome.answer["released"] == ["left", "Shift_L", "Control_L"]
    assert desktop.held == []

    async def cancelled() -> None:
        task = asyncio.create_task(desktop.act(quick({"action": "mouse_down"}, {"action": "wait", "seconds": 50})))
        while not desktop.held:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert desktop.held == []

    run(cancelled())


def test_errors_can_be_asked_for() -> None:
    desktop = Memory()
    desktop.errors.append(DisplayLost("the network is down"))
    with pytest.raises(DisplayLost):
        run(desktop.act(quick({"action": "move", "x": 1, "y": 1})))
    assert desktop.actions == []
    assert run(desktop.act(quick({"action": "move", "x": 1, "y": 1}))).ok


def test_guards_and_the_clipboard() -> None:
    desktop, _ = acted({"action": "launch", "app": "Terminal"}, {"action": "clipboard_set", "text": "ä"})
    wrong = run(desktop.act(quick({"action": "click", "x": 1, "y": 1}, expect={"window": 99})))
    assert not wrong.ok
    assert run(desktop.act(quick({"action": "clipboard_get"}, expect={"window": 99}))).results[0]["text"] == "ä"
    assert run(desktop.act(quick({"action": "click", "x": 1, "y": 1}, expect={"window": 1}))).ok


def test_an_agents_tools_work_on_it() -> None:
    async def work() -> None:
        desktop = Memory(size=(2000, 1000))
        async with Session(desktop, max_actions=5) as session:
            tools = await ComputerTools.open(session)
            actions = [{"action": "launch", "app": "Terminal"}, {"action": "wait_window", "title": "term"}]
            answer = await tools.call("computer_act", {"actions": actions})
            assert not answer.is_error
            assert answer.picture is not None
            assert "Terminal" in (await tools.call("computer_apps", {})).text
            assert (await tools.call("computer_act", {"actions": actions * 2})).is_error
        assert len(desktop.actions) == 2

    run(work())


@pytest.mark.parametrize("call", [lambda d: d.info(), lambda d: d.apps(), lambda d: d.windows()])
def test_nothing_is_answered_after_the_end(call: Callable[[Memory], Awaitable[Any]]) -> None:
    desktop = Memory()
    run(desktop.apps())
    run(desktop.aclose())
    with pytest.raises(RuntimeError, match="closed"):
        run(call(desktop))
