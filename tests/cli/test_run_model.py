"""``deskhand run`` with a model: its whole job, and how it ends when the model or a person does not go along."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deskhand.agents.models import default_model
from deskhand.desktop import DesktopState
from deskhand.testing import XServer
from tests.agents.test_vendors_own import checked_call
from tests.commands import PROGRAM, deskhand, environment, start
from tests.probes import pressed
from tests.standins import anthropic, chat, google, openai
from tests.standins.brain import NOTE, Do, Writer, told
from tests.standins.server import Server, Silence, serving
from tests.xservers import until

pytestmark = pytest.mark.slow

GOAL = "Write a note in the text editor and save it as hello.txt"
DONE = [Do("finish", {"success": True, "summary": "it is done"})]
VENDORS: list[Any] = [anthropic.StandIn, openai.StandIn, google.StandIn]
LOCAL: list[Any] = [chat.StandIn, chat.QwenStandIn]


def trace_of(text: str, directory: Path) -> Path:
    last = text.splitlines()[-1]
    assert last.startswith("trace: "), text
    return directory / Path(last.removeprefix("trace: ")).parent


def summary(trace: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((trace / "summary.json").read_text())
    return found


def asking(standin: Any, server: Server, display: Any) -> dict[str, str]:
    """The environment of a person who has that vendor's key; the address is taken from the SDK's own variable."""
    return {**environment(display), **standin.keys, standin.base: server.url}


@pytest.mark.slow
@pytest.mark.parametrize(
    "standin",
    [
        *VENDORS[:2],
        *(pytest.param(one, marks=pytest.mark.long) for one in (*VENDORS[2:], *LOCAL)),
    ],
    ids=lambda standin: standin.name,
)
def test_the_main_job(standin: Any, xfce: DesktopState, tmp_path: Path) -> None:
    note = Path(xfce.home) / "hello.txt"
    note.unlink(missing_ok=True)
    try:
        with serving(standin(Writer())) as server:
            words = ["run", GOAL, "--display", xfce.display, "--prices", "3,15"]
            if standin in LOCAL:
                words += ["--model", f"openai:{standin.model_name}", "--base-url", server.url]
            answer = deskhand(asking(standin, server, None), *words, cwd=tmp_path, verbose=True)
    finally:
        quit_it = {"actions": [{"action": "quit", "app": "Mousepad", "force": True}]}
        gone = deskhand(None, "act", "--json", "--display", xfce.display, stdin=quit_it, verbose=True)
    assert answer.status == 0, answer
    assert gone.status == 0, gone
    assert note.read_text("utf-8") == NOTE
    told = summary(trace_of(answer.text, tmp_path))
    assert told["outcome"] == "done"
    assert told["model"]["turns"] == len(server.requests)
    assert told["model"]["cost"] > 0
    assert "launched: 'Untitled 1 - Mousepad'" in answer.text


@pytest.mark.slow
def test_the_demos_goal_by_a_model_on_a_desktop_of_its_own(tmp_path: Path) -> None:
    with serving(anthropic.StandIn(Writer())) as server:
        answer = deskhand(asking(anthropic.StandIn, server, None), "run", cwd=tmp_path)
    assert answer.status == 0, answer
    assert "check ok: the file hello.txt holds a note" in answer.text
    with serving(anthropic.StandIn(told(DONE))) as server:
        answer = deskhand(
            asking(anthropic.StandIn, server, None), "run", "--session", "openbox", cwd=tmp_path, verbose=True
        )
    assert answer.status == 3
    assert "a file that is not empty" in answer.text


@pytest.mark.parametrize("standin", VENDORS, ids=lambda standin: standin.name)
def test_a_key_alone_asks_that_vendors_default_model(standin: Any, display: XServer, tmp_path: Path) -> None:
    with serving(standin(told(DONE))) as server:
        answer = deskhand(asking(standin, server, display), "run", "a goal", "--display", display.display, cwd=tmp_path)
    assert answer.status == 0, answer
    assert "done: it is done" in answer.text
    asked = server.requests[0]
    name = str(default_model(standin.keys)).partition(":")[2]
    assert name in asked.path or asked.body["model"] == name
    assert "a goal" in str(asked.body)
    assert "cost" not in answer.text


def test_a_server_of_ones_own_needs_no_key(display: XServer, tmp_path: Path) -> None:
    words = ["run", "a goal", "--display", display.display, "--model", "openai:llama"]
    with serving(chat.StandIn(told(DONE))) as server:
        answer = deskhand(display, *words, "--base-url", server.url, cwd=tmp_path)
    assert answer.status == 0, answer
    assert server.bodies[0]["model"] == "llama"
    gone = deskhand(display, *words, "--base-url", server.url, cwd=tmp_path)
    assert gone.status == 1
    assert f"no answer from the server at {server.url}" in gone.error
    assert summary(trace_of(gone.text, tmp_path))["outcome"] == "failed"


def test_a_key_that_is_refused_is_status_1(display: XServer, tmp_path: Path) -> None:
    with serving(lambda request: anthropic.StandIn.wrong_key) as server:
        env = asking(anthropic.StandIn, server, display)
        answer = deskhand(env, "run", "a goal", "--display", display.display, cwd=tmp_path)
    assert answer.status == 1
    assert "refuses the key in ANTHROPIC_API_KEY" in answer.error


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "anthropic:x"],
        ["--model", "mistral:x"],
        ["--base-url", "http://127.0.0.1:1"],
        ["--model", "openai:x", "--base-url", "http://127.0.0.1:1", "--adapter", "nothing"],
        ["--model", "openai:x", "--base-url", "http://127.0.0.1:1", "--prices", "free"],
        ["--pictures", "0"],
        ["--max-turns", "0"],
    ],
)
def test_what_can_not_be_asked_is_status_2_and_starts_nothing(tmp_path: Path, words: list[str]) -> None:
    answer = deskhand(None, "run", "a goal", *words, cwd=tmp_path)
    assert (answer.status, answer.output) == (2, b"")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("standin", VENDORS, ids=lambda standin: standin.name)
def test_ctrl_c_while_the_model_thinks(standin: Any, display: XServer, tmp_path: Path) -> None:
    with serving(lambda request: Silence()) as server:
        env = asking(standin, server, display)
        process = start(env, "run", "a goal", "--display", display.display, cwd=tmp_path)
        assert server.asked.wait(30)
        process.send_signal(signal.SIGINT)
        output, error = process.communicate(timeout=30)
    assert (process.returncode, error.decode()) == (130, "deskhand: stopped by SIGINT\n")
    assert summary(trace_of(output.decode(), tmp_path))["outcome"] == "stopped"


def test_ctrl_c_while_a_model_holds_a_button(display: XServer, tmp_path: Path) -> None:
    actions = [{"action": "mouse_down", "x": 1, "y": 1}, {"action": "wait", "seconds": 50}]
    holding = chat.completion({"tool_calls": [chat.tool_call("computer_act", {"actions": actions})]}, "tool_calls")
    with serving(lambda request: holding) as server:
        words = ["run", "a goal", "--display", display.display, "--model", "openai:x", "--base-url", server.url]
        process = start(display, *words, cwd=tmp_path)
        until(lambda: pressed(display))
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert pressed(display) == []


@contextmanager
def at_a_terminal(env: dict[str, str], *words: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command with a terminal as its input and output; gives the other end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, *words], env=env, cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield process, ours
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        os.close(ours)


def read_until(terminal: int, text: bytes) -> bytes:
    """What the terminal shows, until ``text`` is there."""
    shown = b""
    while text not in shown:
        shown += os.read(terminal, 4096)
    return shown


@pytest.mark.parametrize(("said", "clicks"), [(b"y\n", 1), (b"n\n", 0), (b"\n", 0), (b"\x04", 0)])
def test_a_person_at_the_terminal_is_asked(said: bytes, clicks: int, display: XServer, tmp_path: Path) -> None:
    with serving(openai.StandIn(told(checked_call(), DONE))) as server:
        words = ["run", "a goal", "--display", display.display]
        with at_a_terminal(asking(openai.StandIn, server, display), *words, cwd=tmp_path) as (process, terminal):
            shown = read_until(terminal, b"[y/N] ")
            assert b"the page wants something" in shown
            os.write(terminal, said)
            shown += read_until(terminal, b"index.html")
            assert process.wait(30) == 0, shown
    assert ("acknowledged_safety_checks" in str(server.bodies[1])) == bool(clicks)


@pytest.mark.parametrize("approve", [True, False])
def test_without_a_terminal_it_is_declined_unless_allowed(approve: bool, display: XServer, tmp_path: Path) -> None:
    with serving(openai.StandIn(told(checked_call(), DONE))) as server:
        words = ["run", "a goal", "--display", display.display, *(["--approve"] if approve else [])]
        answer = deskhand(asking(openai.StandIn, server, display), *words, cwd=tmp_path)
    assert answer.status == 0, answer
    assert ("acknowledged_safety_checks" in str(server.bodies[1])) == approve


@pytest.mark.parametrize(("said", "outcome"), [(b"y\n", "allowed"), (b"n\n", "declined")])
def test_what_is_named_with_ask_is_asked_with_the_action(
    said: bytes, outcome: str, display: XServer, tmp_path: Path
) -> None:
    click = [Do("click", {"x": 100, "y": 50})]
    with serving(openai.StandIn(told(click, click if outcome == "allowed" else DONE, DONE))) as server:
        words = ["run", "a goal", "--display", display.display, "--ask", "input", "--trace", "t"]
        with at_a_terminal(asking(openai.StandIn, server, display), *words, cwd=tmp_path) as (process, terminal):
            shown = read_until(terminal, b"[y/N] ")
            assert b"Allow click (100, 50)? policy: input:" in shown
            os.write(terminal, said)
            shown += read_until(terminal, b"index.html")
            assert process.wait(30) == 0, shown
    lines = [json.loads(line) for line in (tmp_path / "t" / "trace.jsonl").read_text("utf-8").splitlines()]
    assert [line["outcome"] for line in lines if line["event"] == "approval"] == [outcome]  # once a run


@pytest.mark.parametrize("command", ["run", "mcp"])
def test_a_rule_that_is_none(command: str, display: XServer, tmp_path: Path) -> None:
    answer = deskhand(display, command, "--ask", "everything", cwd=tmp_path)
    assert answer.status == 2
    assert "none of launch, forced-quit, secret, input, window:NAME" in " ".join(answer.error.replace("│", "").split())
