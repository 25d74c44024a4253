"""Harbor's Anthropic and OpenAI providers on an existing desktop, against stand-ins for their servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.harbor.fakes import FakeSandbox
from tests.standins.server import Answer, Request, Server, serving

Make = Callable[..., Any]
OURS = "deskhand.harbor:ExistingDesktop"
pytest.importorskip("anthropic", reason="Harbor's native providers need harbor[computer-1]")
pytest.importorskip("openai", reason="Harbor's native providers need harbor[computer-1]")


def message(number: int, *content: Any) -> Answer:
    """One of Anthropic's messages: calls of the computer tool, or a text that ends the run."""
    blocks = [
        {"type": "text", "text": item}
        if isinstance(item, str)
        else {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": "computer", "input": item}
        for place, item in enumerate(content)
    ]
    stop = "end_turn" if isinstance(content[0], str) else "tool_use"
    body = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "stand-in", "content": blocks}
    return Answer({**body, "stop_reason": stop, "usage": {"input_tokens": 10, "output_tokens": 5}})


def response(number: int, *actions: Any) -> Answer:
    """One of OpenAI's responses: a computer call of these actions, or a text that ends the run."""
    if isinstance(actions[0], str):
        text = {"type": "output_text", "text": actions[0], "annotations": []}
        output = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    else:
        output = {"type": "computer_call", "id": f"cu_{number}", "call_id": f"call_{number}", "status": "completed"}
        output |= {"actions": list(actions), "pending_safety_checks": []}
    body = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "model": "stand-in"}
    body |= {"output": [output], "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    return Answer({**body, "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}})


def go(
    agent: Make,
    sandbox: FakeSandbox,
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    replies: list[tuple[Any, ...]],
    name: str = OURS,
    **kwargs: Any,
) -> tuple[Server, Any, Any]:
    from harbor.models.agent.context import AgentContext

    make = message if vendor == "anthropic" else response

    def answers(request: Request) -> Answer:
        return make(request.number, *replies[min(request.number, len(replies) - 1)])

    context = AgentContext()
    with serving(answers) as server:
        # Versions of Harbor differ in where they take these from.
        for variable in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
            monkeypatch.setenv(variable, server.url)
        for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
            monkeypatch.setenv(variable, "none")
        model = "anthropic/claude-sonnet-4-5" if vendor == "anthropic" else "openai/gpt-5.4"
        made = agent(name, model=model, provider=vendor, api_base=server.url, **kwargs)

        async def whole() -> None:
            await made.setup(sandbox)
            await made.run("Do it.", sandbox, context)

        asyncio.run(whole())
    return server, made, context


def test_anthropic(agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[tuple[Any, ...]] = [
        ({"action": "left_click", "coordinate": [100, 200]},),
        ({"action": "type", "text": "Grüße"},),
        ({"action": "left_mouse_down"},),
        ("It is done.",),
    ]
    server, _, context = go(agent, sandbox, monkeypatch, "anthropic", replies)
    acted = [request["actions"][0] for request in sandbox.requests if "actions" in request]
    assert acted[1] == {"action": "click", "x": 100, "y": 200, "button": "left", "count": 1}
    assert acted[2] == {"action": "type", "text": "Grüße"}
    assert acted[3] == {"action": "mouse_down"}, "at the pointer: Anthropic's has no position"
    assert len(acted) == 4, "the first picture, and one exec a step"
    for body in server.bodies:
        text = json.dumps(body["messages"])
        assert '"image/png"' in text
        assert '"image/webp"' not in text
    assert context.metadata["early_termination_reason"] == "task_complete"


def test_anthropics_refused_actions_are_answered(
    agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: list[tuple[Any, ...]] = [({"action": "zoom", "region": [0, 0, 100, 100]},), ("It is done.",)]
    server, _, _ = go(agent, sandbox, monkeypatch, "anthropic", replies, driver="tools", settle="fixed", settle_sec=0)
    assert "can not be cropped" in json.dumps(server.bodies[1]["messages"])


def test_openai(agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[tuple[Any, ...]] = [
        ({"type": "click", "x": 511, "y": 449, "button": "left"}, {"type": "type", "text": "a"}),
        ({"type": "keypress", "keys": ["CTRL", "S"]},),
        ("It is done.",),
    ]
    server, _, context = go(agent, sandbox, monkeypatch, "openai", replies, screenshot_size="512x450")
    acted = [request["actions"][0] for request in sandbox.requests if "actions" in request]
    assert acted[1] == {"action": "click", "x": 1023, "y": 899, "button": "left", "count": 1}, "scaled back"
    assert acted[3] == {"action": "key", "keys": "ctrl+S"}
    assert len(acted) == 4, "the first picture, and one exec an action"
    shown = server.bodies[1]["input"][0]["output"]["image_url"]
    assert shown.startswith("data:image/png;base64,")
    assert not [command for command in sandbox.commands if command.startswith("base64 -w0")]
    assert context.metadata["early_termination_reason"] == "task_complete"


def test_a_dead_display_ends_openais_own_loop(
    agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = sandbox._hand
    dead = {"ok": False, "results": [], "kind": "lost", "error": "the connection broke"}
    sandbox._hand = lambda request: {**dead} if sandbox.requests[1:] else original(request)  # type: ignore
    _, _, context = go(agent, sandbox, monkeypatch, "openai", [({"type": "click", "x": 1, "y": 1},)])
    assert context.metadata["early_termination_reason"] == "runtime_session_dead"


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
def test_the_patch_makes_them_png_too(
    patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    patched(DRIVER="hand", SETTLE_SEC="0")
    click = (
        {"action": "left_click", "coordinate": [1, 2]} if vendor == "anthropic" else {"type": "click", "x": 1, "y": 2}
    )
    _, made, context = go(agent, sandbox, monkeypatch, vendor, [(click,), ("It is done.",)], "computer-1")
    assert made._screenshot_suffix == "png"
    assert context.metadata["early_termination_reason"] == "task_complete"
    assert [request["actions"][0]["action"] for request in sandbox.requests] == ["wait", "click"]
