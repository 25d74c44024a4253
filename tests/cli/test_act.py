"""``deskhand act``: JSON in and out, words, files, holds across calls, exit statuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from deskhand.cli.act import in_json
from deskhand.errors import BatchRefused
from deskhand.hand.envelope import parse_batch
from deskhand.testing import XServer
from tests.commands import act, deskhand, environment, start
from tests.probes import RawWindow, pressed
from tests.toolkits import toolkit_window

SHAPE = {"ok", "sent", "results", "settled", "settle", "settle_ms", "moving"}


def test_the_fixed_shape_of_an_answer(display: XServer) -> None:
    answer = act(
        display, {"action": "click", "x": 0, "y": 0}, {"action": "cursor_position"}, space="screen", picture=False
    )
    assert answer.status == 0
    told = answer.json
    assert set(told) == SHAPE
    assert (told["ok"], told["sent"], told["settled"], told["moving"]) == (True, "all", True, [])
    assert told["settle"] in ("settled", "none")
    assert [(r["action"], r["status"]) for r in told["results"]] == [("click", "ok"), ("cursor_position", "ok")]
    assert told["results"][1]["point"] == [0, 0]


def test_a_picture_in_the_answer(display: XServer) -> None:
    import base64

    picture = act(display, {"action": "screenshot"}).json["picture"]
    assert {"format", "width", "height", "scale", "sequence", "time", "hash", "base64"} <= set(picture)
    assert (picture["format"], picture["width"], picture["height"], picture["scale"]) == ("png", 1280, 800, 1)
    assert base64.b64decode(picture["base64"]).startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_",
    [
        {"actions": []},
        {"actions": [{"action": "wait", "seconds": 0}] * 10_000},
        {"actions": [{"action": "move", "x": 1280, "y": 0}]},
        {"actions": [{"action": "move", "x": -1, "y": 0}]},
        {"actions": [{"action": "move", "x": float("nan"), "y": 0}]},
        {"actions": [{"action": "move", "x": float("inf"), "y": 0}]},
        {"actions": [{"action": "move", "x": 10**400, "y": 0}]},
        {"actions": [{"action": "move", "x": "1", "y": 0}]},
        {"actions": [{"action": "move", "x": 1, "y": 0}, {"action": "fly"}]},
        {"actions": [{"action": "move", "x": 1, "y": 0}, {"action": "key", "keys": "ctrl+nosuch"}]},
        {"actions": [{"action": "move", "x": 1, "y": 0, "z": 0}]},
        {"actions": [{"action": "move", "x": 1, "y": 0}, {"action": "launch", "app": "x" * 256}]},
        {"actions": [{"action": "move", "x": 1, "y": 0}, {"action": "launch", "app": "../x"}]},
        {"actions": [{"action": "move", "x": 1, "y": 0}, {"action": "launch", "app": "--help"}]},
        {"actions": [{"action": "move", "x": 1, "y": 0}, {"action": "launch", "app": "no-such-application"}]},
        {"actions": [{"action": "move", "x": 1, "y": 0}], "colour": 1},
        {"actions": [{"action": "move", "x": 1, "y": 0}], "expect": {"sequence": 99}},
        {"actions": [{"action": "move", "x": 1, "y": 0}], "space": "window"},
        {"actions": [{"action": "move", "x": 1, "y": 0}], "picture": {"region": [0, 0, 9999, 1]}},
        {"actions": [{"action": {}}]},
        {"actions": ["x"]},
        {"actions": {"action": "wait"}},
        {"request": "nothing"},
        {"request": ["act"]},
        {"request": "find"},
        [],
        None,
        "x",
    ],
)
def test_what_is_refused_sends_nothing(display: XServer, request_: Any) -> None:
    answer = deskhand(display, "act", "--json", stdin=request_)
    assert answer.status == 2, answer
    told = answer.json
    assert (told["ok"], told["sent"]) == (False, "none")
    assert set(told) >= SHAPE | {"error", "kind"}
    assert [r["status"] for r in told["results"] if r["status"] == "failed"] in ([], ["failed"])
    assert act(display, {"action": "cursor_position"}).json["results"][0]["point"] == [640, 400]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"actions": 1e99999}', b"9" * 9999, b"NaN", b'{"actions": []}{}']
)
def test_what_is_no_json_is_refused(display: XServer, data: bytes) -> None:
    answer = deskhand(display, "act", "--json", stdin=data)
    assert (answer.status, answer.json["sent"]) == (2, "none")


def test_a_failed_action_is_status_3_and_the_rest_is_skipped(display: XServer) -> None:
    answer = act(
        display,
        {"action": "move", "x": 9, "y": 9},
        {"action": "wait_window", "title": "no such window", "timeout": 0.1},
        {"action": "move", "x": 1, "y": 1},
    )
    assert answer.status == 3
    told = answer.json
    assert (told["ok"], told["sent"]) == (False, "part")
    assert [r["status"] for r in told["results"]] == ["ok", "failed", "skipped"]
    assert told["results"][1]["error"] == answer.error
    assert act(display, {"action": "cursor_position"}).json["results"][0]["point"] == [9, 9]


def test_a_display_that_dies_in_the_middle_is_status_5(display: XServer) -> None:
    actions = [
        {"action": "move", "x": 3, "y": 3},
        {"action": "mouse_down"},
        {"action": "wait", "seconds": 50},
        {"action": "click"},
    ]
    with RawWindow(display) as window:
        process = start(display, "act", "--json", stdin={"actions": actions})
        assert window.conn.wait(lambda: any(event.kind == "press" for event in window.received), 20)
    os.kill(display.pid, 9)
    output, error = process.communicate(timeout=30)
    told = json.loads(output)
    assert process.returncode == 5
    assert told["sent"] == "unknown"
    assert [r["status"] for r in told["results"]] in (
        ["ok", "ok", "failed", "skipped"],
        ["ok", "failed", "skipped", "skipped"],  # the press was seen before its reply
    )
    assert len(error.splitlines()) == 1


# ---- words


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("click", {}),
        ("click 0 0", {"x": 0, "y": 0}),
        ("click 1 2 button=right count=2", {"x": 1, "y": 2, "button": "right", "count": 2}),
        ('click modifiers=["ctrl"]', {"modifiers": ["ctrl"]}),
        ("move 1.5 2", {"x": 1.5, "y": 2}),
        ("drag 1,2 3,4 5,6 button=left", {"path": [[1, 2], [3, 4], [5, 6]], "button": "left"}),
        ("scroll 3", {"dy": 3}),
        ("scroll dx=-2 x=5 y=6", {"dx": -2, "x": 5, "y": 6}),
        ("scroll -3 2", {"dy": -3, "dx": 2}),
        ("type 12", {"text": "12"}),
        ("type text=a=b", {"text": "text=a=b"}),
        ("type --help", {"text": "--help"}),
        ("type x method=paste", {"text": "x", "method": "paste"}),
        ("key ctrl+=", {"keys": "ctrl+="}),
        ("key ctrl++ repeat=3", {"keys": "ctrl++", "repeat": 3}),
        ("key 5", {"keys": "5"}),
        ("hold_key a 1.5", {"keys": "a", "seconds": 1.5}),
        ("wait 0", {"seconds": 0}),
        ("wait_window Title focused=true", {"title": "Title", "focused": True}),
        ("launch 7zip", {"app": "7zip"}),
        ("launch 7 keep_open=true", {"app": "7", "keep_open": True}),
        ("quit window=12", {"window": 12}),
        ("focus 12", {"window": 12}),
        ("resize 12 640 480 x=0", {"window": 12, "width": 640, "height": 480, "x": 0}),
        ("zoom 0 0 10 10", {"region": [0, 0, 10, 10]}),
        ("clipboard_set 12", {"text": "12"}),
        ("screenshot", {}),
        ("cursor_position", {}),
    ],
)
def test_words(words: str, action: dict[str, Any]) -> None:
    name, *rest = words.split()
    envelope = in_json([name, *rest])
    assert envelope == {"actions": [{"action": name, **action}]}
    parse_batch(envelope)


@pytest.mark.parametrize(
    "words",
    ["click 1 2 3", "screenshot x", "wait 1 2", "key a b", "fly", "click x=", "move 1", "wait NaN", "click colour=1"],
)
def test_words_that_are_no_action(words: str) -> None:
    with pytest.raises(BatchRefused):
        parse_batch(in_json(words.split()))


def test_words_act_and_text_is_for_people(display: XServer) -> None:
    assert deskhand(display, "act", "move", "7", "8").text.startswith("move at (7, 8)")
    assert deskhand(display, "act", "cursor_position").text == "7 8"
    assert deskhand(display, "act", "move", "9", "9", "--json").json["ok"]
    assert deskhand(display, "act", "move", "99999", "9").output == b""


@pytest.mark.slow
def test_text_that_looks_like_an_option(openbox_display: XServer, tmp_path: Path) -> None:
    with toolkit_window(openbox_display, "gtk", tmp_path / "log", "--entry") as window:
        typed = ""
        for text in ("--help", "-1.5 x", "-o", "--", "$(id)`x`"):
            assert deskhand(openbox_display, "act", "--", "type", text).status == 0
            typed += text
        assert window.shows(typed)


# ---- the picture as a file


@pytest.mark.slow
def test_the_picture_goes_to_the_file_and_an_old_one_does_not_stay(display: XServer, tmp_path: Path) -> None:
    for name, start_bytes in (("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8"), ("a.webp", b"RIFF")):
        path = tmp_path / name
        path.write_bytes(b"old")
        answer = deskhand(display, "act", "-o", str(path), "--json", "move", "1", "1")
        assert answer.status == 0
        assert path.read_bytes().startswith(start_bytes)
        assert answer.json["picture"]["path"] == str(path)
        assert "base64" not in answer.json["picture"]
    path.write_bytes(b"old")
    said_no = {"actions": [{"action": "wait", "seconds": 0}], "picture": False}
    assert deskhand(display, "act", "-o", str(path), "--json", stdin=said_no).status == 0
    assert path.read_bytes() != b"old"


def test_a_file_that_can_not_be_written_does_not_hide_what_was_done(display: XServer, tmp_path: Path) -> None:
    answer = deskhand(display, "act", "-o", str(tmp_path / "none" / "a.png"), "--json", "move", "5", "5")
    assert answer.status == 3
    told = answer.json
    assert (told["ok"], told["sent"], told["results"][0]["status"]) == (False, "all", "ok")
    assert "can not be written" in answer.error


# ---- holds across calls


def test_a_named_session_keeps_its_holds_and_nobody_else_does(display: XServer) -> None:
    down, up = {"action": "mouse_down", "x": 5, "y": 5}, {"action": "mouse_up"}
    for name, held in ((("--session", "mine"), ["button 1"]), ((), [])):
        assert deskhand(display, "act", "--json", *name, stdin={"actions": [down]}).status == 0
        assert pressed(display) == held
        if name:
            assert deskhand(display, "act", "--session", "other", "move", "9", "9").status == 0
            assert deskhand(display, "windows").status == 0
            assert pressed(display) == held
            assert deskhand(display, "act", "--json", *name, stdin={"actions": [up]}).status == 0
            assert pressed(display) == []


def test_a_failure_in_a_named_session_releases_its_holds(display: XServer) -> None:
    hold = {"actions": [{"action": "mouse_down", "x": 5, "y": 5}]}
    fail = {"actions": [{"action": "wait_window", "title": "none", "timeout": 0.05}]}
    assert deskhand(display, "act", "--json", "--session", "s", stdin=hold).status == 0
    assert pressed(display)
    assert deskhand(display, "act", "--json", "--session", "s", stdin=fail).status == 3
    assert pressed(display) == []


def test_a_terminal_that_can_not_show_a_letter_is_no_traceback(display: XServer) -> None:
    for encoding in ("ascii", "latin-1", "utf-8"):
        env = environment(display, PYTHONIOENCODING=encoding)
        answer = deskhand(env, "act", "--json", stdin={"actions": [{"action": "\udcff日本"}]})
        assert answer.status == 2
        assert "日本" in answer.json["error"] or "\\u" in answer.json["error"]
