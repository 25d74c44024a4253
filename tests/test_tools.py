"""The three tools: what a model is told, the schema it fills in, and what its calls come to on real X servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from deskhand import BatchRefused, LocalDisplay, Memory, Session, TraceRecorder
from deskhand.agents.own_tools import OwnTools
from deskhand.approvals import Policy
from deskhand.hand.envelope import parse_action, parse_batch
from deskhand.pictures import ANTHROPIC, GOOGLE, OPENAI_PREVIEW, QWEN, Limits
from deskhand.testing import XServer, xvfb
from deskhand.tool_schema import act_parameters
from deskhand.tools import ComputerTools, ToolAnswer, instructions, launching_at, limits_for, tools
from tests.probes import RawWindow
from tests.told import Told, ok

CLICK = {"action": "click", "x": 10, "y": 20}
ACTIONS = act_parameters()["properties"]["actions"]["items"]["anyOf"]


def on(server: XServer, work: Callable[[ComputerTools], Awaitable[None]], limits: Limits = ANTHROPIC) -> None:
    async def main() -> None:
        async with Session(LocalDisplay(server.display)) as session:
            await work(await ComputerTools.open(session, limits))

    asyncio.run(main())


# ---- what a model is told


def test_the_instructions_fit_the_desktop() -> None:
    assert "open applications with the launch action" in instructions("unknown")
    assert "Open applications with the launch action" in instructions("by_name")
    assert "Neither launch nor computer_apps works" in instructions("not_here")
    assert "Super key" not in instructions("by_name")
    assert len({instructions("by_name"), instructions("not_here"), instructions("unknown")}) == 3


def test_a_backend_that_knows_of_launching_is_believed(display: XServer) -> None:
    class Own(LocalDisplay):
        async def info(self) -> dict[str, Any]:
            return {**await super().info(), "launching": "not_here"}

    async def work() -> None:
        for kind, expected in ((LocalDisplay, "by_name"), (Own, "not_here")):
            backend = kind(display.display)
            assert await launching_at(backend) == (expected, (1280, 800))
            await backend.aclose()

    asyncio.run(work())


def test_the_schema_is_short_plain_and_closed() -> None:
    text = json.dumps([tool.parameters for tool in tools()], separators=(",", ":"))
    assert len(text) < 8500  # a model reads it at every turn
    assert "$ref" not in text
    assert '"const"' not in text
    assert '"title":"' not in text

    def closed(value: Any) -> None:
        if isinstance(value, dict):
            assert value.get("type") != "object" or value.get("additionalProperties") is False
            for inner in value.values():
                closed(inner)
        elif isinstance(value, list):
            for inner in value:
                closed(inner)

    closed([tool.parameters for tool in tools()])


def test_the_schema_names_every_action_with_its_limits() -> None:
    from deskhand.hand.actions import KINDS

    by_name = {action["properties"]["action"]["enum"][0]: action for action in ACTIONS}
    assert list(by_name) == list(KINDS)
    assert all(action["description"] for action in ACTIONS)
    assert by_name["click"]["properties"]["count"] == {"type": "integer", "minimum": 1, "maximum": 3, "default": 1}
    assert by_name["launch"]["properties"]["app"] == {"type": "string", "minLength": 1, "maxLength": 255}
    assert by_name["wait"]["properties"]["seconds"]["maximum"] == 60
    assert by_name["launch"]["required"] == ["action", "app"]
    assert "minimum" not in by_name["move"]["properties"]["x"]


@pytest.mark.parametrize("schema", ACTIONS, ids=lambda schema: schema["properties"]["action"]["enum"][0])
def test_what_the_schema_allows_is_taken_and_what_it_does_not_is_refused(schema: dict[str, Any]) -> None:
    """The least and the most of every field, and one beyond."""
    least = {name: _value(field, "least") for name, field in schema["properties"].items() if name in schema["required"]}
    name = least["action"]
    # These need one of several fields, which a schema says only at length.
    one_of: dict[str, dict[str, Any]] = {
        "wait_window": {"title": "x"}, "quit": {"window": 1}, "resize": {"width": 1}, "scroll": {"dy": 1}
    }  # fmt: skip
    least.update(one_of.get(name, {}))
    parse_action(least)
    for key, field in schema["properties"].items():
        if key in ("action", "x", "y", "app", "window") or (name, key) in (("scroll", "dx"), ("scroll", "dy")):
            continue
        for which in ("least", "most"):
            parse_action({**least, key: _value(field, which)})
        if "maximum" in field:
            with pytest.raises(BatchRefused):
                parse_action({**least, key: field["maximum"] + 1})
    with pytest.raises(BatchRefused):
        parse_action({**least, "unknown": 1})


def _value(field: dict[str, Any], which: str) -> Any:
    most = which == "most"
    if "enum" in field:
        return field["enum"][-1 if most else 0]
    if field["type"] in ("number", "integer"):
        return field.get("maximum", 5) if most else field.get("minimum", 1)
    if field["type"] == "string":
        return "a" * (min(field.get("maxLength", 9), 255) if most else max(1, field.get("minLength", 1)))
    if field["type"] == "boolean":
        return most
    return [_value(field["items"], which)] * max(field.get("minItems", 0), 1 if most else 0)


# ---- what calls come to


def test_the_space_is_the_last_whole_picture_and_a_region_does_not_change_it() -> None:
    async def work(computer: ComputerTools) -> None:
        with RawWindow(server) as window:
            before = await computer.call("computer_act", {"actions": [{**CLICK, "x": 699, "y": 393}]})
            assert not before.is_error  # the first picture's size is known before there is one
            looked = await computer.call("computer_screenshot", {"region": [0, 0, 350, 197]})
            assert looked.data["picture"]["region"] == [0, 0, 1280, 720]
            assert looked.data["picture"]["width"] == 700
            after = await computer.call("computer_act", {"actions": [{**CLICK, "x": 0, "y": 0}]})
            assert "the whole screen, 700x394" in after.text
            assert [event.at for event in window.all("press")] == [(2559, 1439), (0, 0)]
            outside = await computer.call("computer_act", {"actions": [{**CLICK, "x": 700}]})
            assert "outside the 700x394 picture" in outside.text

    with xvfb(2560, 1440) as server:
        on(server, work, Limits(max_edge=700))


def test_a_screen_that_was_resized_is_seen_in_the_next_picture(display: XServer) -> None:
    from deskhand.hand.x11 import Connection
    from tests.xservers import resize

    async def work(computer: ComputerTools) -> None:
        assert "1280x800" in (await computer.call("computer_screenshot", {})).text
        with Connection.open(display.display) as conn:
            resize(conn, 640, 480)
        assert "640x480" in (await computer.call("computer_screenshot", {})).text
        refused = await computer.call("computer_act", {"actions": [{**CLICK, "x": 641}]})
        assert "outside the 640x480 picture" in refused.text

    on(display, work)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("computer_act", {}, "a batch needs a list of actions"),
        ("computer_act", {"actions": [CLICK], "space": "screen"}, "has no argument 'space': it takes actions, expect"),
        ("computer_act", {"actions": [CLICK], "expect": {"sequence": 7}}, "the picture 7 is not the newest"),
        ("computer_act", {"actions": [{"action": "launch", "app": "../x"}]}, "action 0 (launch)"),
        ("computer_screenshot", {"region": [0, 0, 5000, 5]}, "is not inside the 1280x800 picture"),
        ("computer_screenshot", {"region": [0, 0, 5]}, "region must"),
        ("computer_screenshot", {"region": "all"}, "region must"),
        ("computer_apps", {"all": True}, "has no argument 'all': it takes none"),
        ("x" * 500, {}, "there is no tool"),
    ],
)
def test_a_refusal_says_what_to_do_and_that_nothing_was_sent(
    display: XServer, name: str, arguments: dict[str, Any], words: str
) -> None:
    async def work(computer: ComputerTools) -> None:
        answer = await computer.call(name, arguments)
        assert answer.is_error
        assert words in answer.text
        assert "nothing was sent" in answer.text
        assert len(answer.text) < 400
        assert answer.data["sent"] == "none"
        assert answer.picture is None

    on(display, work)


def test_a_failure_tells_each_action_and_shows_the_screen(display: XServer) -> None:
    async def work(computer: ComputerTools) -> None:
        actions = [CLICK, {"action": "wait_window", "title": "no such", "timeout": 0}, CLICK]
        answer = await computer.call("computer_act", {"actions": actions})
        lines = answer.text.splitlines()
        assert lines[0].startswith("0 click ok")
        assert lines[1].startswith("1 wait_window failed: ")
        assert lines[2] == "2 click skipped"
        assert lines[3] == "sent: part"
        assert lines[-1].startswith("picture ")
        assert answer.is_error
        assert answer.picture is not None

    on(display, work)


def test_a_display_that_is_not_there_is_an_answer_too() -> None:
    async def work() -> None:
        async with Session(LocalDisplay(":987")) as session:
            answer = await ComputerTools(session).call("computer_screenshot", {})
            assert answer.is_error
            assert "no X server listens on display :987" in answer.text

    asyncio.run(work())


def test_what_is_for_programs_is_not_told_to_the_model() -> None:
    launched = {"action": "launch", "status": "ok", "window": {"id": 5, "title": "Notes"}, "focused": True}
    launched.update(pid=4242, group=4242, opener="exo-open", elapsed_ms=812, id="notes")
    picture = {"format": "png", "width": 2, "height": 1, "sequence": 3, "region": [0, 0, 2, 1], "screen": [2, 1]}
    outcome = ok("launch")
    outcome.answer.update(results=[launched], picture=picture)

    async def work() -> ToolAnswer:
        return await ComputerTools(Session(Told(outcome)), screen=(2, 1)).act([{"action": "launch", "app": "Notes"}])

    answer = asyncio.run(work())
    assert "4242" not in answer.text
    assert "exo-open" not in answer.text
    assert '"title": "Notes"' in answer.text
    assert answer.data["results"][0]["pid"] == 4242


def test_the_batch_is_an_envelope(display: XServer) -> None:
    async def work(computer: ComputerTools) -> None:
        parsed = parse_batch(await computer.batch([CLICK], {"window": 5}))
        assert parsed.space == {"picture": [1280, 800]}
        assert parsed.expect.window == 5

    on(display, work)


def test_pictures_by_the_name_of_the_model() -> None:
    assert limits_for("claude-sonnet-5") is ANTHROPIC
    assert limits_for(None, "openai") is OPENAI_PREVIEW
    assert limits_for("gpt-6", "anthropic") is OPENAI_PREVIEW
    assert limits_for("codex-mcp-client") is OPENAI_PREVIEW
    assert limits_for("models/gemini-4") is GOOGLE
    assert limits_for("Qwen3-VL") is QWEN
    assert limits_for("something", "else") is limits_for() is ANTHROPIC


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("computer_act", {"actions": [CLICK], "space": "screen"}),
        ("computer_screenshot", {"size": 1}),
        ("computer_apps", {"name": "x"}),
        ("computer_look", {}),
    ],
)
@pytest.mark.parametrize("policy", [Policy(), Policy(launch=True)], ids=["asks nothing", "asks"])
def test_a_refusal_is_told_and_recorded_whoever_refuses(
    name: str, arguments: dict[str, Any], policy: Policy, tmp_path: Path
) -> None:
    async def main() -> None:
        trace = TraceRecorder(tmp_path, goal="g")
        async with Session(Memory(), trace=trace, policy=policy) as session:
            computer = await ComputerTools.open(session)
            if name == "computer_act" and not policy.asks_nothing:
                with pytest.raises(BatchRefused):
                    await computer.asks(name, arguments)
            else:
                assert (await computer.call(name, arguments)).is_error
            assert session.last_outcome is not None
            assert not session.last_outcome["ok"]
        events = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
        assert session.last_outcome["text"] in (event.get("answer", {}).get("error") for event in events)

    asyncio.run(main())


def test_the_first_wish_keeps_the_limits_where_the_screen_is_not_known_yet() -> None:
    async def main() -> None:
        async with Session(Memory((3840, 2160))) as session:
            own = OwnTools(session, None)
            facts = (await own.look()).answer["picture"]
            assert ANTHROPIC.allow((facts["width"], facts["height"]))
            assert (await own.call("computer_act", {"actions": [CLICK]})).data["picture"]["width"] == facts["width"]

    asyncio.run(main())
