"""``deskhand run`` with scripts, and ``deskhand desktop``: how they end, and what they leave."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from deskhand.backends.lease import DisplayLease
from deskhand.desktop import list_desktops
from deskhand.testing import XServer
from tests.commands import Answer, deskhand, environment, start
from tests.probes import pressed

pytestmark = pytest.mark.slow

WAIT = {"actions": [{"action": "wait", "seconds": 0}], "picture": True}
FAILS = {"actions": [{"action": "wait_window", "title": "no such", "timeout": 0.1}, {"action": "click"}]}


def script(tmp_path: Path, *lines: Any) -> str:
    path = tmp_path / "script.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in ({"goal": "the goal"}, *lines)))
    return f"scripted:{path}"


@pytest.fixture
def mark() -> Iterator[dict[str, str]]:
    """An environment variable that reaches every process of a desktop; none that carries it is left at the end.

    Others may start and stop desktops on this machine meanwhile.
    """
    name, value = "LC_DESKHAND_TEST", uuid.uuid4().hex
    yield {**environment(None), name: value}
    left = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                if value.encode() in Path(f"/proc/{entry}/environ").read_bytes():
                    left.append(Path(f"/proc/{entry}/cmdline").read_bytes())
    assert left == []
    assert [facts for facts in list_desktops() if facts["env"].get(name) == value] == []


def page_of(text: str) -> Path:
    last = text.splitlines()[-1]
    assert last.startswith("trace: ")
    return Path(last.removeprefix("trace: "))


def test_done(display: XServer, tmp_path: Path) -> None:
    answer = deskhand(
        display, "run", "--display", display.display, "--model", script(tmp_path, WAIT, {"apps": True}), cwd=tmp_path
    )
    assert answer.status == 0, answer
    page = tmp_path / page_of(answer.text)
    assert page.name == "index.html"
    assert page.parent.parent == tmp_path / "traces"
    assert "the goal" in page.read_text()
    assert json.loads((page.parent / "summary.json").read_text())["outcome"] == "done"
    assert "done: Done." in answer.text
    again = deskhand(
        display, "run", " the goal ", "--display", display.display, "--model", script(tmp_path, WAIT), cwd=tmp_path
    )
    assert page_of(again.text) != page_of(answer.text)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([FAILS, WAIT], "no window"),
        ([{"actions": [{"action": "move", "x": 5000, "y": 0}]}], "outside the 1280x800 screen"),
        ([{"actions": [{"action": "launch", "app": "no such application"}]}], "unknown application"),
        ([WAIT, WAIT, WAIT], "the run has 1 of 3 left"),
    ],
)
def test_what_fails_is_status_3_with_a_trace(display: XServer, tmp_path: Path, lines: list[Any], why: str) -> None:
    if lines == [WAIT, WAIT, WAIT]:
        lines = [WAIT, WAIT, {"actions": WAIT["actions"] * 2}]  # type: ignore[operator]
    words = ["run", "--display", display.display, "--model", script(tmp_path, *lines), "--max-actions", "3"]
    answer = deskhand(display, *words, "--trace", str(tmp_path / "t"), verbose=True)
    assert answer.status == 3, answer
    assert page_of(answer.text) == tmp_path / "t" / "index.html"
    assert why in answer.text
    assert json.loads((tmp_path / "t" / "summary.json").read_text())["outcome"] == "failed"


def test_a_check_that_does_not_hold_is_status_3(display: XServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "there").write_text("right")
    for equals, status in (("right", 0), ("wrong", 3)):
        lines = [WAIT, {"check": {"file": "there", "equals": equals}}]
        words = ["run", "--display", display.display, "--model", script(tmp_path, *lines)]
        answer = deskhand({**display.env, "HOME": str(home)}, *words, cwd=tmp_path, verbose=True)
        assert answer.status == status
        page = tmp_path / page_of(answer.text)
        assert json.loads((page.parent / "summary.json").read_text())["outcome"] == ("done" if not status else "failed")


def test_what_can_not_be_run_is_status_2_and_starts_nothing(mark: dict[str, str], tmp_path: Path) -> None:
    good = script(tmp_path, WAIT)
    (tmp_path / "bad.jsonl").write_text('{"actions": [{"action": "fly"}]}\n')
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "trace.jsonl").touch()
    for words in (
        ["--model", f"scripted:{tmp_path}/bad.jsonl"],
        ["--model", f"scripted:{tmp_path}/none.jsonl"],
        ["--model", "scripted:"],
        ["--model", good, "another goal"],
        ["another goal"],
        ["--model", "openai:x"],
        ["--model", good, "--trace", str(tmp_path / "old")],
    ):
        answer = deskhand(mark, "run", *words, cwd=tmp_path)
        assert (answer.status, answer.output) == (2, b""), words
    assert "ANTHROPIC_API_KEY" in deskhand(mark, "run", "another goal", cwd=tmp_path).error
    assert sorted(os.listdir(tmp_path)) == ["bad.jsonl", "old", "script.jsonl"]


def test_no_display_is_status_5_with_a_trace(tmp_path: Path) -> None:
    answer = deskhand(None, "run", "--display", ":987", "--model", script(tmp_path, WAIT), cwd=tmp_path)
    assert answer.status == 5
    assert (tmp_path / page_of(answer.text)).exists()


def test_a_display_that_dies_is_status_5_with_a_trace(display: XServer, tmp_path: Path) -> None:
    hold = {"actions": [{"action": "mouse_down", "x": 1, "y": 1}, {"action": "wait", "seconds": 50}]}
    process = start(display, "run", "--display", display.display, "--model", script(tmp_path, hold), cwd=tmp_path)
    assert wait_pressed(display, process)
    os.kill(display.pid, signal.SIGKILL)
    output, error = process.communicate(timeout=30)
    assert process.returncode == 5, error
    assert len(error.splitlines()) == 1
    page = tmp_path / page_of(output.decode())
    assert '"sent":"unknown"' in (page.parent / "trace.jsonl").read_text()


def wait_pressed(display: XServer, process: subprocess.Popen[bytes]) -> bool:
    import time

    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        if pressed(display):
            return True
        time.sleep(0.02)  # the X server tells nobody that a button went down elsewhere
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_run(display: XServer, tmp_path: Path, number: signal.Signals) -> None:
    hold = {"actions": [{"action": "mouse_down", "x": 1, "y": 1}, {"action": "wait", "seconds": 50}]}
    process = start(display, "run", "--display", display.display, "--model", script(tmp_path, hold), cwd=tmp_path)
    assert wait_pressed(display, process)
    process.send_signal(number)
    output, error = process.communicate(timeout=30)
    assert (process.returncode, error.decode()) == (128 + number, f"deskhand: stopped by {number.name}\n")
    assert pressed(display) == []
    page = tmp_path / page_of(output.decode())
    assert json.loads((page.parent / "summary.json").read_text())["outcome"] == "stopped"


@pytest.mark.slow
def test_a_run_on_a_desktop_of_its_own_leaves_only_the_trace(mark: dict[str, str], tmp_path: Path) -> None:
    lines = [WAIT, {"check": {"file": "there", "equals": "x"}}]
    model = script(tmp_path, *lines)
    answer = deskhand(
        None, "run", "--session", "openbox", "--size", "640x480", "--model", model, cwd=tmp_path, verbose=True
    )
    assert answer.status == 3
    assert "No such file" in answer.text
    assert (tmp_path / page_of(answer.text)).exists()
    assert sorted(os.listdir(tmp_path)) == ["script.jsonl", "traces"]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["Starting a desktop", "It is ", "launched nothing"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_takes_the_desktop_down(
    mark: dict[str, str], tmp_path: Path, moment: str, number: signal.Signals
) -> None:
    lines = [{"say": "launched nothing", "actions": [{"action": "wait", "seconds": 50}]}]
    process = start(mark, "run", "--session", "openbox", "--model", script(tmp_path, *lines), cwd=tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if line.decode().startswith(moment):
            break
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + number, error
    assert error.decode() == f"deskhand: stopped by {number.name}\n"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="computerd gets an account of its own, which takes root")
def test_a_run_that_is_watched_goes_by_computerd_and_leaves_only_the_trace(
    mark: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("fastapi")
    model = script(tmp_path, {"apps": True}, WAIT, {"actions": [{"action": "move", "x": 5, "y": 5}]})
    process = start(mark, "run", "--watch", "--session", "openbox", "--model", model, cwd=tmp_path)
    text, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (0, b"")
    address = re.search(rb"^Live view: (http://127\.0\.0\.1:\d+/live\?ticket=\S+)$", text, re.MULTILINE)
    assert address is not None
    assert page_of(text.decode()).is_file()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address[1].decode(), timeout=10)


def test_desktop_up_status_down(mark: dict[str, str], tmp_path: Path) -> None:
    up = deskhand(mark, "desktop", "up", "--session", "openbox", "--size", "800x600", "--json")
    assert up.status == 0, up
    told = up.json
    assert {"display", "xauthority", "session", "size", "user"} <= set(told)
    assert (told["session"], told["size"]) == ("openbox", [800, 600])
    try:
        status = {facts["display"]: facts for facts in deskhand(mark, "desktop", "status", "--json").json}
        assert status[told["display"]]["env"]["LC_DESKHAND_TEST"], "the mark reaches the desktop"
        assert (status[told["display"]]["alive"], status[told["display"]]["size"]) == (True, [800, 600])
        assert told["display"] in deskhand(mark, "desktop", "status").text
        # Its cookie is found without being named.
        assert deskhand(mark, "act", "--display", told["display"], "move", "799", "599").status == 0
        assert deskhand(mark, "act", "--display", told["display"], "move", "800", "599").status == 2
        assert deskhand(mark, "doctor", "--display", told["display"], "--json").status == 0
    finally:
        down = deskhand(mark, "desktop", "down", told["display"], "--json")
    assert down.json == {"display": told["display"], "stopped": True}
    # Another number: by now somebody else's desktop may have the first.
    again = deskhand(mark, "desktop", "down", ":987")
    assert (again.status, again.output) == (1, b"")


def test_a_desktop_that_another_session_has_is_left_alone(display: XServer, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    words = ["run", "--display", display.display, "--model", script(tmp_path, WAIT), "--trace", str(trace)]

    async def work() -> Answer:
        lease = DisplayLease(display.display, display.xauthority, "the other one")
        await lease.take(60)
        try:
            return await asyncio.to_thread(lambda: deskhand(display, *words))
        finally:
            await lease.release()

    ran = asyncio.run(work())
    assert ran.status == 1
    assert "'the other one'" in ran.error
    assert '"batch"' not in (trace / "trace.jsonl").read_text()
