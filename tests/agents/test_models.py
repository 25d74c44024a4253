"""Every model's way of being asked, through the vendors' own SDKs, at a real display: what goes right and wrong."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deskhand import LocalDisplay, Session, SetupError
from deskhand.agents.asking import ModelRun
from deskhand.agents.history import LEFT_OUT
from deskhand.agents.usage import Prices, Usage
from deskhand.errors import ModelUnavailable
from deskhand.testing import XServer
from tests.agents.running import Ran, run
from tests.standins import anthropic, chat, google, openai
from tests.standins.brain import Do, told
from tests.standins.every import STANDINS
from tests.standins.server import Answer, Cut, Silence, serving

pytestmark = pytest.mark.slow

CLICK = Do("click", {"x": 100, "y": 50})
WAIT = Do("wait", {"seconds": 0})
DONE = Do("finish", {"success": True, "summary": "it is done"})

every = pytest.mark.parametrize("standin", STANDINS, ids=lambda standin: standin.name)
with_tools = pytest.mark.parametrize("standin", STANDINS[:5], ids=lambda standin: standin.name)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "a-very-secret-key")


def pointer(display: str) -> tuple[int, int]:
    command = ["xdotool", "getmouselocation", "--shell"]
    said = subprocess.run(command, env={"DISPLAY": display, "PATH": "/usr/bin:/bin"}, capture_output=True, check=True)
    values = dict(line.split("=") for line in said.stdout.decode().split())
    return int(values["X"]), int(values["Y"])


def errors_of(standin: Any, ran: Ran, number: int) -> list[str]:
    """The errors that the request of that number told the model of."""
    module = {"anthropic": anthropic, "openai": openai, "google": google}.get(standin.name, chat)
    errors: list[str] = module.seen(ran.bodies[number]).errors
    return errors


@every
def test_a_reply_is_done_and_the_model_sees_what_came_of_it(standin: Any, display: XServer, tmp_path: Path) -> None:
    ran = run(standin, told([CLICK], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.result
    assert len(ran.bodies) == 2
    assert [standin.pictures(body) for body in ran.bodies] == [1, 2]
    grid = {"google": 999, "qwen": 1000}.get(standin.name)
    x, y = (100, 50) if grid is None else (round(100 * 1279 / grid), round(50 * 799 / grid))
    assert abs(pointer(display.display)[0] - x) <= 1
    assert abs(pointer(display.display)[1] - y) <= 1
    assert b"a-very-secret-key" not in (tmp_path / "trace.jsonl").read_bytes()


@every
def test_what_each_turn_took_is_in_the_trace(standin: Any, display: XServer, tmp_path: Path) -> None:
    prices = Prices.parse("3,15,0.3,3.75")
    ran = run(standin, told([CLICK], [DONE]), display.display, tmp_path, prices=prices)
    turns = [event for event in ran.events if event["event"] == "model"]
    assert len(turns) == 2
    for turn in turns:
        tokens = turn["facts"]["tokens"]
        assert sum(tokens.values()) == 1170
        assert tokens["cache_read"] == 1000
        assert turn["elapsed_s"] > 0
        assert turn["facts"]["cost"] == pytest.approx(prices.cost(Usage(**tokens)))
    assert "the goal" in turns[0]["given"][0]
    assert "100" in str(turns[0]["reply"])
    assert "(picture)" in str(turns[1]["given"])
    assert "2 turns, 2,300 tokens read (2,000 of them cached), 40 written, cost 0.00" in ran.told[-1]


@every
def test_several_calls_in_a_reply_run_in_order(standin: Any, display: XServer, tmp_path: Path) -> None:
    second = Do("click", {"x": 300, "y": 400})
    ran = run(standin, told([CLICK, second, WAIT], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert [(action["x"], action["y"]) for action in ran.batches("click")] == [(100, 50), (300, 400)]


@with_tools
def test_tools_of_ours_between_the_vendors_are_answered_in_order(
    standin: Any, display: XServer, tmp_path: Path
) -> None:
    second = Do("click", {"x": 300, "y": 400})
    ran = run(standin, told([CLICK, Do("computer_apps"), second], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert errors_of(standin, ran, 1) == []
    happened = [e["event"] for e in ran.events if e["event"] in ("batch", "tool")]
    assert happened == ["batch", "batch", "tool", "batch"]


@every
def test_a_refused_action_is_shown_and_nothing_of_its_reply_is_done(
    standin: Any, display: XServer, tmp_path: Path
) -> None:
    wrong = Do("key", {"keys": "ctrl+nosuchkey"})
    ran = run(standin, told([CLICK, wrong], [CLICK], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert "nosuchkey" in str(errors_of(standin, ran, 1))
    done = [e for e in ran.events if e["event"] == "batch" and e["answer"]["sent"] != "none"]
    assert sum(action["action"] == "click" for e in done for action in e["envelope"]["actions"]) == 1


@with_tools
def test_a_failed_launch_stops_the_rest_of_the_reply(standin: Any, display: XServer, tmp_path: Path) -> None:
    launch = Do("launch", {"app": "No Such Application"})
    ran = run(standin, told([launch, CLICK], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert "No Such Application" in str(errors_of(standin, ran, 1))
    assert pointer(display.display) != (100, 50)


@with_tools
def test_a_tool_that_is_not_there_is_refused(standin: Any, display: XServer, tmp_path: Path) -> None:
    wrong = Do("computer_apps", {"colour": "red"})
    ran = run(standin, told([CLICK, wrong], [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert "colour" in str(errors_of(standin, ran, 1))
    assert not ran.batches("click")


@every
def test_a_rate_limit_is_waited_for_and_told(standin: Any, display: XServer, tmp_path: Path) -> None:
    ran = run(standin, told([CLICK], [DONE]), display.display, tmp_path, faults={1: standin.limited})
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert len(ran.bodies) == 3
    assert ran.bodies[1] == ran.bodies[2]
    assert "asked again in" in ran.text
    assert [e["facts"]["retries"] for e in ran.events if e["event"] == "model"] == [0, 1]
    assert len(ran.batches("click")) == 1


@every
def test_a_cut_connection_is_asked_again_and_the_desktop_is_not(standin: Any, display: XServer, tmp_path: Path) -> None:
    ran = run(standin, told([CLICK], [DONE]), display.display, tmp_path, faults={1: Cut()})
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert "asked again in" in ran.text
    assert len(ran.batches("click")) == 1


@pytest.mark.slow
@every
def test_a_connection_that_stays_cut_ends_the_run(standin: Any, display: XServer, tmp_path: Path) -> None:
    cuts = {number: Cut(b'{"id": ' if number % 2 else b"") for number in range(1, 9)}
    ran = run(standin, told([CLICK], [DONE]), display.display, tmp_path, faults=cuts)
    assert isinstance(ran.error, ModelUnavailable)
    assert "no answer from" in str(ran.error)
    assert "127.0.0.1" in str(ran.error) or standin is google.StandIn
    assert len(ran.batches("click")) == 1
    assert ran.events[-1]["event"] == "finish"


@every
def test_a_server_that_never_answers(
    standin: Any, display: XServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("anthropic", "openai", "google", "compatible"):
        monkeypatch.setattr(f"deskhand.agents.{module}.REPLY_SECONDS", 0.5)
    ran = run(standin, told([CLICK]), display.display, tmp_path, faults={0: Silence()})
    assert isinstance(ran.error, ModelUnavailable)
    assert "nothing whole came within" in str(ran.error)


@pytest.mark.parametrize(
    ("what", "why"), [("wrong_key", "refuses the key in"), ("no_model", "knows no model")], ids=["key", "model"]
)
@every
def test_what_a_person_can_put_right_is_said(
    standin: Any, display: XServer, tmp_path: Path, what: str, why: str
) -> None:
    ran = run(standin, told([CLICK]), display.display, tmp_path, faults={0: getattr(standin, what)})
    assert isinstance(ran.error, ModelUnavailable)
    assert why in str(ran.error)
    assert len(ran.bodies) == 1
    assert "\n" not in str(ran.error)


@pytest.mark.parametrize("body", [b"<html>It works!</html>", {"hello": 1}, []], ids=["page", "object", "list"])
@every
def test_what_speaks_another_protocol(standin: Any, display: XServer, tmp_path: Path, body: Any) -> None:
    ran = run(standin, told([CLICK]), display.display, tmp_path, faults={0: Answer(body)})
    assert isinstance(ran.error, ModelUnavailable), ran.error
    assert not ran.batches("click")


@every
def test_a_reply_that_runs_out_of_tokens_is_not_done(standin: Any, display: XServer, tmp_path: Path) -> None:
    ran = run(standin, told([DONE]), display.display, tmp_path, faults={0: standin.out_of_tokens})
    assert ran.result is not None
    assert ran.result.ok, ran.told
    assert not ran.batches("type")
    assert "ran out of tokens" in str(ran.bodies[1])
    assert "rm -r" not in str(ran.bodies[1])
    every_reply = dict.fromkeys(range(9), standin.out_of_tokens)
    ran = run(standin, told([DONE]), display.display, tmp_path / "again", faults=every_reply)
    assert ran.result is not None
    assert not ran.result.ok
    assert len(ran.bodies) == 3


@every
def test_a_refusal_ends_the_run(standin: Any, display: XServer, tmp_path: Path) -> None:
    ran = run(standin, told([CLICK]), display.display, tmp_path, faults={0: standin.refuses})
    assert ran.result is not None
    assert not ran.result.ok
    assert "the model refused: " in ran.result.text
    assert ("SAFETY" if standin is google.StandIn else "no harm") in ran.result.text


@with_tools
def test_words_alone_are_not_taken_for_success(standin: Any, display: XServer, tmp_path: Path) -> None:
    ran = run(standin, told("All is well.", [DONE]), display.display, tmp_path)
    assert ran.result is not None
    assert ran.result.ok
    assert "If the goal is reached" in str(ran.bodies[1])
    ran = run(standin, told("All is well."), display.display, tmp_path / "again")
    assert ran.result is not None
    assert not ran.result.ok
    assert "without saying whether" in ran.result.text
    assert len(ran.bodies) == 2
    ran = run(standin, told(""), display.display, tmp_path / "nothing")
    assert ran.result is not None
    assert not ran.result.ok


@every
def test_the_model_may_say_that_it_can_not(standin: Any, display: XServer, tmp_path: Path) -> None:
    given_up = Do("finish", {"success": False, "summary": "there is no editor"})
    ran = run(standin, told([given_up]), display.display, tmp_path)
    assert ran.result is not None
    assert not ran.result.ok


@every
def test_turns_and_actions_have_an_end(standin: Any, display: XServer, tmp_path: Path) -> None:
    ran = run(standin, told([CLICK]), display.display, tmp_path, max_turns=3)
    assert ran.result is not None
    assert (ran.result.ok, len(ran.bodies)) == (False, 3)
    assert "not done after 3 turns" in ran.result.text
    ran = run(standin, told([CLICK]), display.display, tmp_path / "budget", max_actions=2)
    assert ran.result is not None
    assert not ran.result.ok
    assert "2 actions are used up" in ran.result.text
    assert len(ran.bodies) == 3
    assert "the run has 0 of 2 left" in ran.text


@every
def test_old_pictures_go_and_the_beginning_changes_rarely(standin: Any, display: XServer, tmp_path: Path) -> None:
    keep, turns = 3, 16
    ran = run(standin, told(*[[CLICK]] * turns, [DONE]), display.display, tmp_path, keep=keep)
    assert ran.result is not None
    assert ran.result.ok
    counts = [standin.pictures(body) for body in ran.bodies]
    assert max(counts) == 2 * keep - 1
    assert min(counts[keep:]) == keep
    talks = [standin.conversation(body) for body in ran.bodies]
    breaks = sum(later[: len(sooner)] != sooner for sooner, later in itertools.pairwise(talks))
    assert breaks == (turns + 1 - keep) // keep
    assert [e["facts"]["pictures"] for e in ran.events if e["event"] == "model"] == counts
    if standin.name in ("anthropic", "tools", "qwen", "ui_tars"):
        assert LEFT_OUT in str(ran.bodies[-1])


@pytest.mark.parametrize("standin", STANDINS[:1], ids=["anthropic"])
def test_a_model_that_has_had_a_run_is_not_taken_for_another(standin: Any, display: XServer) -> None:
    async def go(url: str) -> None:
        model = standin.model(url)
        async with Session(LocalDisplay(display.display)) as session:
            assert (await ModelRun("the goal", model, session).run()).ok
            with pytest.raises(SetupError, match="make another one"):
                await ModelRun("another goal", model, session).run()
        await model.aclose()

    with serving(standin(told([Do("finish", {"success": True, "summary": "it is done"})]))) as server:
        asyncio.run(go(server.url))
        assert len(server.bodies) == 1


def _odd(name: str) -> list[Any]:
    """Answers with status 200 whose inside has another form than the vendor's API gives."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn"}
    response = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "x"}

    def calls(given: Any) -> dict[str, Any]:
        return {"choices": [{"message": {"tool_calls": given}}]}

    bodies: dict[str, list[Any]] = {
        "anthropic": [
            {**message, "content": ["x"]},
            {**message, "content": [{"type": "text"}]},
            {**message, "content": [], "usage": {"output_tokens": "3"}},
        ],
        "openai": [
            {**response, "output": [None]},
            {**response, "output": [{"type": "message", "id": "m", "role": "assistant", "content": "x"}]},
            {**response, "output": [], "usage": "x"},
        ],
        "google": [[], {"candidates": []}],
    }
    return bodies.get(name) or [
        {"choices": ["x"]},
        {},
        *([] if name == "ui_tars" else [calls(["x"]), calls([{"id": "1", "function": "x"}])]),
        {"choices": [{"message": {"content": "x"}}], "usage": "lots"},
        {"choices": [{"message": {"content": "x"}}], "usage": {"completion_tokens": "3"}},
    ]


@every
def test_a_reply_of_another_form_is_no_fault_of_ours(standin: Any, display: XServer, tmp_path: Path) -> None:
    for number, body in enumerate(_odd(standin.name)):
        ran = run(standin, told([DONE]), display.display, tmp_path / str(number), faults={0: Answer(body)})
        assert isinstance(ran.error, ModelUnavailable), (body, ran.result)
        assert "protocol" in str(ran.error)


def test_an_item_that_the_sdk_does_not_know_makes_no_noise(
    display: XServer, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    response = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "x"}
    new = Answer({**response, "output": [{"type": "of_next_year", "id": "q"}]})
    ran = run(openai.StandIn, told([DONE]), display.display, tmp_path, faults={0: new})
    assert ran.result is not None
    assert not [warning for warning in recwarn if "Pydantic" in str(warning.message)]
