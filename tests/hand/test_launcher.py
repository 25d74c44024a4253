"""The launcher of a hand: this process, one that is given, or nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.x_windows import environment, make_entry

from deskhand.hand import state
from deskhand.hand.applications import Entry, UnknownApplication
from deskhand.hand.errors import Unsupported
from deskhand.hand.hand import Hand
from deskhand.hand.launcher import Launch, Launcher, Launching, NoLauncher
from deskhand.hand.own_launcher import OwnLauncher
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer


@pytest.mark.parametrize(
    "action",
    [
        {"action": "launch", "app": "anything"},
        {"action": "quit", "app": "anything"},
        {"action": "quit", "window": 4711},
        {"action": "quit", "app": "anything", "force": True},
    ],
)
def test_without_a_launcher_a_batch_is_refused_before_its_first_event(display: XServer, action: dict[str, Any]) -> None:
    with Hand(display.display, launcher=NoLauncher()) as hand:
        before = hand.display.pointer.position()
        with pytest.raises(Unsupported, match="open one as a person would, from the desktop's own menu") as refused:
            hand.act({"actions": [{"action": "move", "x": 7, "y": 9}, action]})
        assert refused.value.sent == "none"
        assert hand.display.pointer.position() == before != (7, 9)
        assert hand.act({"actions": [{"action": "move", "x": 7, "y": 9}], "picture": False})[0]["ok"] is True


def test_without_a_launcher_nothing_is_listed_or_found(display: XServer) -> None:
    with Hand(display.display, launcher=NoLauncher()) as hand:
        for ask in (hand.apps, lambda: hand.find("anything")):
            with pytest.raises(Unsupported) as refused:
                ask()
            assert str(refused.value) == NoLauncher.SENTENCE


class Told(Launcher):
    """A launcher that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def listing(self) -> dict[str, Any]:
        self.asked.append("list")
        return {"apps": [{"id": "x", "name": "X", "path": "/x"}], "searched": []}

    def find(self, name: str) -> Entry:
        self.asked.append(f"find {name}")
        if name == "gone":
            raise UnknownApplication("unknown application 'gone'", [])
        return Entry(name, "/x", "X", {}, True, True)

    def start(self, entry: Entry, keep_open: bool = False, session: str | None = None) -> Launching:
        self.asked.append(f"start {entry.id}")
        raise Unsupported("not today")

    def launches(self) -> list[Launch]:
        self.asked.append("launches")
        return []


def test_a_given_launcher_is_asked_for_everything(display: XServer) -> None:
    told = Told()
    with Hand(display.display, launcher=told) as hand:
        assert hand.apps() == [{"id": "x", "name": "X", "path": "/x"}]
        assert hand.find("x").id == "x"
        answer, _ = hand.act({"actions": [{"action": "quit", "app": "gone"}, {"action": "launch", "app": "x"}]})
    assert told.asked == ["list", "find x", "find gone", "find x", "launches", "start x"]
    assert [result.get("error") for result in answer["results"]] == [None, "not today"]
    assert answer["results"][0]["outcome"] == "not_running"
    assert answer["results"][0]["unknown"] == "unknown application 'gone'"


def test_our_own_launcher_lists_with_the_directories_it_searched(display: XServer, tmp_path: Path) -> None:
    folder = tmp_path / "applications"
    folder.mkdir()
    make_entry(folder, "one", "true")
    where = environment(display, None, XDG_DATA_HOME=str(tmp_path), XDG_DATA_DIRS="/nowhere")
    with Connection.open(display.display) as conn:
        launcher = OwnLauncher(conn, display.display, environment=where)
        listing = launcher.listing()
        assert [row["id"] for row in listing["apps"]] == ["one"]
        assert str(folder) in listing["searched"]
        assert launcher.find("ONE").path == str(folder / "one.desktop")


def test_a_record_is_replaced_without_a_gap(tmp_path: Path) -> None:
    (tmp_path / "launched").mkdir()
    directory = str(tmp_path)
    for window in (None, 5):
        state.record_launched(":71", {"id": "a", "pid": 1, "window": window}, directory, replace=True)
    state.record_launched(":71", {"id": "b", "pid": 2}, directory, replace=True)
    assert [(one["id"], one.get("window")) for one in state.launched(":71", [directory])] == [("a", 5), ("b", None)]
