from __future__ import annotations

import asyncio
import base64
from importlib import import_module
from typing import Any

import pytest

from deskhand.errors import BatchRefused
from deskhand.vendors.anthropic import CONFIRM_REQUIRED, HALTED, NOT_SENT, Tool, Toolset
from deskhand.vendors.base import Ask
from deskhand.vendors.running import run_turn
from tests.vendors.examples import ANTHROPIC, SCREEN, older_tool_use, tool_use
from tests.vendors.outcomes import PNG, PretendSession, facts, outcome

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()},
}


def run(adapter: Any, reply: Any, session: PretendSession, approve: Any = None) -> list[dict[str, Any]]:
    session.approve = approve
    return asyncio.run(run_turn(adapter, reply, session))[0]


def text_of(block: dict[str, Any]) -> str:
    return " ".join(part["text"] for part in block["content"] if part["type"] == "text")


def test_several_calls_a_turn_are_one_batch_and_each_is_answered() -> None:
    session = PretendSession()
    reply = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I will save."},
            tool_use("left_click", {"coordinate": [1, 2]}, 0),
            tool_use("type", {"text": "x"}, 1),
            {"type": "tool_use", "id": "other", "name": "left_click", "input": {}},
            tool_use("key", {"text": "ctrl+s"}, 2),
        ],
    }
    blocks = run(Toolset(SCREEN), reply, session)

    assert [action["action"] for action in session.batches[0]["actions"]] == ["click", "type", "key"]
    assert len(session.batches) == 1
    assert [block["tool_use_id"] for block in blocks] == ["toolu_0", "toolu_1", "toolu_2"]
    assert all(block["toolset_name"] == "computer" and "is_error" not in block for block in blocks)
    assert [text_of(block) for block in blocks] == ["Clicked.", "Typed.", "Pressed ctrl+s."]
    assert blocks[2]["content"][-1] == IMAGE
    assert IMAGE not in blocks[0]["content"]


def test_screenshot_in_the_middle_gets_its_own_picture() -> None:
    session = PretendSession()
    reply = [tool_use("screenshot", {}, 0), tool_use("left_click", {"coordinate": [1, 2]}, 1)]
    blocks = run(Toolset(SCREEN), reply, session)
    assert len(session.batches) == 2
    assert blocks[0]["content"] == [IMAGE]
    assert blocks[1]["content"][-1] == IMAGE


def test_calls_after_a_failure_get_the_documented_text() -> None:
    session = PretendSession(outcome("ok", "failed", "skipped", error="no window"))
    names: list[tuple[str, dict[str, Any]]] = [
        ("mouse_move", {"coordinate": [1, 2]}),
        ("left_click", {}),
        ("type", {"text": "x"}),
        ("screenshot", {}),
    ]
    blocks = run(Toolset(SCREEN), [tool_use(name, given, n) for n, (name, given) in enumerate(names)], session)

    assert text_of(blocks[0]) == "Moved the mouse."
    assert blocks[1]["is_error"]
    assert text_of(blocks[1]) == "no window"
    for block in blocks[2:4]:
        assert block["is_error"]
        assert block["content"] == [{"type": "text", "text": HALTED}]
    assert HALTED == "Not executed: an earlier computer action in this turn failed."


def test_an_error_holds_text_only_and_its_picture_stands_beside_it() -> None:
    blocks = run(Toolset(SCREEN), [tool_use("left_click", {})], PretendSession(outcome("failed", error="grabbed")))
    assert blocks[0]["content"] == [{"type": "text", "text": "grabbed"}]
    assert blocks[1] == IMAGE


def test_a_refused_call_sends_nothing_and_every_call_is_answered() -> None:
    session = PretendSession()
    reply = [
        tool_use("left_click", {"coordinate": [1, 2]}, 0),
        tool_use("left_clik", {}, 1),
        tool_use("screenshot", {}, 2),
    ]
    blocks = run(Toolset(SCREEN), reply, session)
    assert session.batches == []
    assert [block["is_error"] for block in blocks] == [True] * 3
    assert text_of(blocks[0]) == NOT_SENT
    assert "did you mean 'left_click'?" in text_of(blocks[1])
    assert text_of(blocks[2]) == HALTED


def test_a_batch_refused_by_the_hand_names_the_right_call() -> None:
    session = PretendSession(BatchRefused("action 1 (click): it is not there", 1))
    blocks = run(Toolset(SCREEN), [tool_use("left_click", {}, 0), tool_use("left_click", {}, 1)], session)
    assert text_of(blocks[0]) == NOT_SENT
    assert text_of(blocks[1]) == "it is not there"


def test_confirm_asks_and_a_no_sends_nothing() -> None:
    asked: list[Ask] = []

    async def no(ask: Ask) -> bool:
        asked.append(ask)
        return False

    session = PretendSession()
    adapter = Toolset(SCREEN, confirm=CONFIRM_REQUIRED)
    blocks = run(adapter, [tool_use("type", {"text": "x"})], session, no)
    assert (asked[0].verb, asked[0].source) == ("type", "anthropic confirm")
    assert session.batches == []
    assert text_of(blocks[0]) == (
        "The user did not grant permission to run 'type'. Do not retry it unless the user asks you to."
    )

    async def yes(ask: Ask) -> bool:
        return True

    assert "is_error" not in run(adapter, [tool_use("type", {"text": "x"})], session, yes)[0]
    assert "is_error" not in run(adapter, [tool_use("screenshot", {})], session)[0]


def test_disabled_verbs_are_not_offered_and_are_refused() -> None:
    adapter = Toolset(SCREEN, disabled=["zoom"])
    assert adapter.tools() == [{"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}}]
    blocks = run(adapter, [tool_use("zoom", {"region": [0, 0, 1, 1]})], PretendSession())
    assert "not permitted" in text_of(blocks[0])
    with pytest.raises(ValueError, match="no verb 'zooom'"):
        Toolset(SCREEN, disabled=["zooom"])


def test_cursor_position_is_in_pixels_of_the_picture() -> None:
    adapter = Toolset((2560, 1600))
    adapter.picture = (1280, 800)
    session = PretendSession(outcome(png=None, answer={"results": [{"status": "ok", "point": [2559, 800]}]}))
    assert text_of(run(adapter, [tool_use("cursor_position", {})], session)[0]) == "X=1279,Y=400"


def test_positions_follow_the_size_of_the_last_whole_picture() -> None:
    adapter = Toolset(SCREEN)
    adapter.saw(outcome("ok"))
    adapter.saw(outcome("ok", answer={"picture": facts(640, 400)}))
    assert adapter.space == {"picture": [640, 400]}
    adapter.saw(outcome("ok", answer={"picture": facts(300, 300, [0, 0, 300, 300])}))
    assert adapter.space == {"picture": [640, 400]}


def test_older_tools_and_their_declaration() -> None:
    adapter = Tool((3840, 2160), "20250124")
    width, height = adapter.picture
    assert adapter.tools() == [
        {"type": "computer_20250124", "name": "computer", "display_width_px": width, "display_height_px": height}
    ]
    assert adapter.betas == ["computer-use-2025-01-24"]
    assert Tool(SCREEN).tools()[0]["enable_zoom"]
    assert Tool(SCREEN).betas == ["computer-use-2025-11-24"]
    blocks = run(Tool(SCREEN), [older_tool_use("left_click", {"coordinate": [1, 2], "key": "shift"})], PretendSession())
    assert "toolset_name" not in blocks[0]
    with pytest.raises(BatchRefused, match="names no action"):
        Tool(SCREEN).read([{"type": "tool_use", "id": "x", "name": "computer", "input": {}}])
    with pytest.raises(BatchRefused, match="input must be an object"):
        Tool(SCREEN).read([{"type": "tool_use", "id": "x", "name": "computer", "input": None}])


def test_older_drag_without_a_start_is_from_the_pointer() -> None:
    turn = Tool(SCREEN).read([older_tool_use("left_click_drag", {"coordinate": [0, 9]})])
    actions = turn.parts[0].envelope["actions"]
    assert [action["action"] for action in actions] == ["mouse_down", "move", "move", "mouse_up"]
    assert (actions[2]["x"], actions[2]["y"]) == (0, 9)
    with pytest.raises(BatchRefused, match="text needs start_coordinate"):
        Tool(SCREEN).read([older_tool_use("left_click_drag", {"coordinate": [0, 9], "text": "ctrl"})])


def test_a_reply_without_calls_is_the_last_word() -> None:
    turn = Toolset(SCREEN).read({"content": [{"type": "text", "text": "Done."}]})
    assert (turn.calls, turn.parts, turn.say) == ([], [], "Done.")


def test_more_than_a_hundred_actions_are_several_batches() -> None:
    session = PretendSession()
    blocks = run(Toolset(SCREEN), [tool_use("left_click", {}, n) for n in range(150)], session)
    assert [len(batch["actions"]) for batch in session.batches] == [100, 50]
    assert len(blocks) == 150


def test_an_unsettled_screen_and_a_missing_picture_are_said() -> None:
    blocks = run(
        Toolset(SCREEN), [tool_use("left_click", {})], PretendSession(outcome("ok", answer={"settle": "animating"}))
    )
    assert "still changing" in text_of(blocks[0])
    lost = outcome("ok", png=None, answer={"ok": False, "error": "no picture: the screen is off"})
    blocks = run(Toolset(SCREEN), [tool_use("left_click", {})], PretendSession(lost))
    assert text_of(blocks[0]) == "The actions were carried out, but no picture: the screen is off."


def test_against_the_installed_sdk() -> None:
    pytest.importorskip("anthropic")
    from pydantic import TypeAdapter

    beta = import_module("anthropic.types.beta")
    names = import_module("anthropic.types.beta.beta_computer_member_name").BETA_COMPUTER_MEMBER_NAME_VALUES
    registry = import_module("anthropic.lib.tools._toolsets._computer_registry")
    runnable = import_module("anthropic.lib.tools._toolsets._runnable")

    assert set(Toolset.verbs) == set(names)
    assert runnable.HALT_TEXT["computer"] == HALTED
    assert registry.CONFIRM_REQUIRED == CONFIRM_REQUIRED
    parse = TypeAdapter(beta.BetaComputerToolUseBlock).validate_python
    for verb, (given, _) in ANTHROPIC.items():
        typed = parse(tool_use(verb, given))
        assert typed.name == verb
        fields = type(typed.input).model_fields
        takes = {word.rstrip("?") for word in Toolset.verbs[verb].takes.split()}
        assert set(fields) == takes, verb
        for word in Toolset.verbs[verb].takes.split():
            assert fields[word.rstrip("?")].is_required() != word.endswith("?"), (verb, word)
        (block, *_) = run(Toolset(SCREEN), [typed], PretendSession())
        TypeAdapter(beta.BetaToolResultBlockParam).validate_python(block)
        said = registry.ROWS[verb][1]
        if said and "{" not in said:
            assert text_of(block) == said
    TypeAdapter(beta.BetaComputerToolset20260801Param).validate_python(Toolset(SCREEN, disabled=["zoom"]).tools()[0])
    TypeAdapter(beta.BetaToolComputerUse20251124Param).validate_python(Tool(SCREEN).tools()[0])
