"""The commands on a desktop elsewhere: ``--url`` and ``--token-file``, or their variables."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from deskhand.testing import XServer
from deskhand.testing.received import fixture_window, pressed
from tests.commands import deskhand, environment
from tests.computerd.daemons import RunningDaemon


def test_commands(running: RunningDaemon, server: XServer, tmp_path: Path) -> None:
    place = ("--url", running.url, "--token-file", str(running.token_file))
    with fixture_window(server) as window:
        window.forget()
        done = deskhand(None, "act", "click", "30", "40", *place)
        assert (done.status, done.error) == (0, "")
        assert window.all("press")[-1]["at"] == [30, 40]
        assert [one["title"] for one in deskhand(None, "windows", "--json", *place).json]
    for name, size in (("a.png", (1280, 800)), ("b.webp", (320, 200))):
        options = ("--max-edge", "320") if name == "b.webp" else ()
        assert deskhand(None, "screenshot", "-o", name, *options, *place, cwd=tmp_path).status == 0
        assert Image.open(tmp_path / name).size == size
    outside = deskhand(None, "act", "click", "5000", "1", *place)
    assert (outside.status, "outside the 1280x800 screen" in outside.error) == (2, True)
    for words in (("apps",), ("launch", "Firefox")):
        refused = deskhand(None, *words, *place)
        assert (refused.status, "no launcher" in refused.error) == (2, True)


def test_the_variables_and_what_is_missing(running: RunningDaemon, server: XServer, tmp_path: Path) -> None:
    there = environment(None, DESKHAND_URL=running.url, DESKHAND_TOKEN_FILE=str(running.token_file))
    picture = deskhand(there, "act", "--json", "screenshot").json["picture"]
    assert picture["screen"] == [1280, 800]
    without = environment(None, DESKHAND_URL=running.url)
    assert deskhand(without, "windows").status == 2
    both = deskhand(there, "windows", "--display", ":4711")  # a display that is named counts
    assert (both.status, ":4711" in both.error) == (5, True)
    assert deskhand(there, "windows", "--url", running.url, "--display", ":4711").status == 2
    nobody = deskhand({**there, "DESKHAND_URL": "http://127.0.0.1:9"}, "windows")
    assert (nobody.status, "no computerd" in nobody.error) == (5, True)
    wrong = tmp_path / "token"
    wrong.touch(0o600)
    wrong.write_text("x" * 43)
    refused = deskhand({**there, "DESKHAND_TOKEN_FILE": str(wrong)}, "windows")
    assert (refused.status, "token" in refused.error) == (1, True)
    wrong.chmod(0o644)
    assert "mode 600" in deskhand({**there, "DESKHAND_TOKEN_FILE": str(wrong)}, "windows").error


def test_a_named_session_keeps_what_it_holds(running: RunningDaemon, server: XServer) -> None:
    there = environment(None, DESKHAND_URL=running.url, DESKHAND_TOKEN_FILE=str(running.token_file))
    with fixture_window(server) as window:
        window.forget()
        assert deskhand(there, "act", "key_down", "shift", "--session", "mine").status == 0
        assert len(pressed(server)) == 1
        assert deskhand(there, "act", "click", "9", "9", "--session", "mine").status == 0
        assert window.all("press")[-1]["state"] & 1
        assert deskhand(there, "act", "key_up", "shift", "--session", "mine").status == 0
        assert deskhand(there, "act", "key_down", "shift").status == 0
        assert pressed(server) == []


def test_a_scripted_run(running: RunningDaemon, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    lines = [
        {"goal": "look"},
        {"actions": [{"action": "move", "x": 77, "y": 78}]},
    ]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    there = environment(None, DESKHAND_URL=running.url, DESKHAND_TOKEN_FILE=str(running.token_file))
    done = deskhand(there, "run", "look", "--model", f"scripted:{script}", cwd=tmp_path)
    assert done.status == 0, done
    assert running.act({"action": "cursor_position"}).json()["results"][0]["point"] == [77, 78]
    assert deskhand(there, "run", cwd=tmp_path).status == 2
