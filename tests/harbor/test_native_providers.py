"""Harbor's Gemini, Bedrock and Tinker providers on an existing desktop, and what each offers its model.

Gemini and Bedrock against stand-ins for their servers. Tinker's SDK brings a whole training stack: its provider class
is Harbor's own here, with a renderer and a client that are pretended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.harbor.fakes import FakeSandbox
from tests.harbor.test_providers import message
from tests.standins.server import Answer, Request, Server, serving

Make = Callable[..., Any]
OURS = "deskhand.harbor:ExistingDesktop"
TOOLS: dict[str, Any] = {"driver": "tools", "settle": "fixed", "settle_sec": 0}
pytest.importorskip("harbor", reason="Harbor is not installed here: it needs Python 3.12 (.setup/harbor-newest has it)")
pytest.importorskip("google.genai", reason="Harbor's native providers need harbor[computer-1]")


def gemini_2() -> bool:
    """Whether this Harbor's Gemini is of ``generateContent``; newer ones' is of Interactions."""
    from harbor.agents.computer_1.providers import gemini

    return hasattr(gemini, "GEMINI_COMPUTER_USE_HINT")


def gemini(number: int, *said: Any) -> Answer:
    """One of Gemini's answers: a call of (name, arguments), or a text that ends the run."""
    if gemini_2():
        part = (
            {"text": said[0]}
            if isinstance(said[0], str)
            else {"functionCall": {"name": said[0][0], "args": said[0][1]}}
        )
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        return Answer({"candidates": [candidate], "usageMetadata": usage, "responseId": f"r{number}"})
    steps: list[dict[str, Any]] = []
    for place, one in enumerate(said):
        if isinstance(one, str):
            steps.append({"type": "model_output", "content": [{"type": "text", "text": one}]})
        else:
            steps.append({"type": "function_call", "id": f"c{number}_{place}", "name": one[0], "arguments": one[1]})
    body = {"id": f"i{number}", "object": "interaction", "status": "completed", "model": "stand-in", "steps": steps}
    return Answer({**body, "usage": {"total_input_tokens": 10, "total_output_tokens": 5, "total_tokens": 15}})


def run(agent: Any, sandbox: FakeSandbox) -> Any:
    from harbor.models.agent.context import AgentContext

    context = AgentContext()

    async def whole() -> None:
        await agent.setup(sandbox)
        await agent.run("Do it.", sandbox, context)

    asyncio.run(whole())
    return context


def go(
    make: Make,
    sandbox: FakeSandbox,
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    replies: Sequence[Sequence[Any]],
    name: str = OURS,
    **kwargs: Any,
) -> tuple[Server, Any, Any]:
    """A whole run whose model says ``replies``, the last again and again."""
    say = gemini if vendor == "gemini" else message

    def answers(request: Request) -> Answer:
        return say(request.number, *replies[min(request.number, len(replies) - 1)])

    models = {
        "gemini": "gemini/gemini-2.5-computer-use-preview-10-2025" if gemini_2() else "gemini/gemini-3.8-flash",
        "bedrock": "bedrock/anthropic.claude-opus-4-7",
        "anthropic": "anthropic/claude-opus-4-7",
    }
    with serving(answers) as server:
        # Versions of Harbor differ in where they take these from.
        for variable in ("GOOGLE_GEMINI_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BASE_URL"):
            monkeypatch.setenv(variable, server.url)
        for variable in ("GEMINI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(variable, "none")
        monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
        monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        extra: dict[str, Any] = {"llm_kwargs": {}} if vendor == "bedrock" else {}
        agent = make(name, model=models[vendor], provider=vendor, api_base=server.url, **extra, **kwargs)
        context = run(agent, sandbox)
    return server, agent, context


def acted(sandbox: FakeSandbox) -> list[dict[str, Any]]:
    """The hand's actions, but that of the first picture."""
    return [request["actions"][0] for request in sandbox.requests if "actions" in request][1:]


CLICK = ("click_at", {"x": 500, "y": 999}) if gemini_2() else ("click", {"x": 500, "y": 999})
NAVIGATE = ("navigate", {"url": "http://example.com"})
ZOOM = ("zoom_region", {"x1": 0, "y1": 0, "x2": 500, "y2": 500})


@pytest.mark.parametrize("driver", ["hand", "tools"])
def test_gemini(agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    settings: dict[str, Any] = TOOLS if driver == "tools" else {}
    server, made, context = go(
        agent, sandbox, monkeypatch, "gemini", [[CLICK], [NAVIGATE], ["It is done."]], **settings
    )
    assert made._screenshot_suffix == "png"
    assert context.metadata["early_termination_reason"] == "task_complete"
    first = json.dumps(server.bodies[0])
    assert '"image/png"' in first
    assert '"image/webp"' not in first
    excluded = offered(server.bodies[0], "excluded")
    assert {"navigate", "go_back", "go_forward"} <= set(excluded)
    assert ("zoom_region" in first) is (driver == "hand"), "its tool, and what is said of it"
    assert "no navigate on this desktop" in json.dumps(server.bodies[2]), "asked for all the same"
    if driver == "hand":
        assert acted(sandbox)[0] == {"action": "click", "x": 512, "y": 899, "button": "left", "count": 1}
        assert not [command for command in sandbox.commands if command.startswith("base64 -w0")]
    else:
        assert any("xdotool mousemove 512 899 click" in command for command in sandbox.commands)


def offered(body: dict[str, Any], what: str) -> list[str]:
    for tool in body["tools"]:
        use = (
            tool.get("computerUse") or tool.get("computer_use") or (tool if tool.get("type") == "computer_use" else {})
        )
        found = use.get("excludedPredefinedFunctions") or use.get("excluded_predefined_functions")
        if found:
            return list(found)
    raise AssertionError(f"nothing is {what}: {body['tools']}")


def test_gemini_zooms_with_the_hand(agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    go(agent, sandbox, monkeypatch, "gemini", [[ZOOM], ["It is done."]])
    assert sandbox.requests[-1]["picture"]["region"] == [0, 0, 512, 450]


def test_gemini_without_zoom_is_told_so(agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    server, _, context = go(agent, sandbox, monkeypatch, "gemini", [[ZOOM], ["It is done."]], **TOOLS)
    assert "can not be cropped" in json.dumps(server.bodies[1])
    assert context.metadata["early_termination_reason"] == "task_complete"


@pytest.mark.parametrize("vendor", ["bedrock", "anthropic"])
@pytest.mark.parametrize("driver", ["hand", "tools"])
def test_claude(agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch, vendor: str, driver: str) -> None:
    settings: dict[str, Any] = TOOLS if driver == "tools" else {}
    replies: list[list[Any]] = [
        [{"action": "left_click", "coordinate": [100, 200]}],
        [{"action": "zoom", "region": [0, 0, 100, 100]}],
        ["It is done."],
    ]
    server, made, context = go(agent, sandbox, monkeypatch, vendor, replies, **settings)
    assert made._screenshot_suffix == "png"
    assert context.metadata["early_termination_reason"] == "task_complete"
    for body in server.bodies:
        (tool,) = body["tools"]
        assert bool(tool.get("enable_zoom")) is (driver == "hand")
        assert '"image/webp"' not in json.dumps(body["messages"])
    said = json.dumps(server.bodies[2]["messages"])
    assert ("can not be cropped" in said) is (driver == "tools")
    if driver == "hand":
        assert acted(sandbox)[0] == {"action": "click", "x": 100, "y": 200, "button": "left", "count": 1}
        assert sandbox.requests[-1]["picture"]["region"] == [0, 0, 100, 100]
    if vendor == "bedrock":
        assert "/model/anthropic.claude-opus-4-7/invoke" in server.requests[0].path


@pytest.mark.parametrize("vendor", ["gemini", "bedrock"])
@pytest.mark.parametrize("driver", ["hand", "tools"])
def test_the_patch(
    patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch, vendor: str, driver: str
) -> None:
    patched(DRIVER=driver, SETTLE_SEC="0")
    click: Any = CLICK if vendor == "gemini" else {"action": "left_click", "coordinate": [1, 2]}
    server, made, context = go(agent, sandbox, monkeypatch, vendor, [[click], ["It is done."]], "computer-1")
    assert made._screenshot_suffix == "png"
    assert context.metadata["early_termination_reason"] == "task_complete"
    text = json.dumps(server.bodies[0])
    assert ("zoom" in text) is (driver == "hand")
    assert "image/webp" not in text


@pytest.mark.parametrize("vendor", ["gemini", "anthropic"])
def test_a_dead_display_ends_the_step_loop(
    agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch, vendor: str
) -> None:
    original = sandbox._hand
    dead = {"ok": False, "results": [], "kind": "lost", "error": "the connection broke"}
    sandbox._hand = lambda request: {**dead} if sandbox.requests[1:] else original(request)  # type: ignore[method-assign]
    click: Any = CLICK if vendor == "gemini" else {"action": "left_click", "coordinate": [1, 2]}
    _, _, context = go(agent, sandbox, monkeypatch, vendor, [[click], ["It is done."]])
    assert context.metadata["early_termination_reason"] == "runtime_session_dead"


def test_words_of_another_harbor_stop_the_run(
    agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor.agents.computer_1.providers import gemini as module

    from deskhand.harbor.settings import BadSetting

    constant = "GEMINI_COMPUTER_USE_HINT" if gemini_2() else "_COMPUTER_USE_NOTE"
    monkeypatch.setattr(module, constant, "Other words.")
    with pytest.raises(BadSetting, match="driver=hand"):
        go(agent, sandbox, monkeypatch, "gemini", [["It is done."]], **TOOLS)


# -- Tinker


class PretendedRenderer:
    """As much of the renderer as Harbor's provider uses: the model's tokens are a number, its reply is a script."""

    def __init__(self, replies: Sequence[Any]) -> None:
        self._replies = list(replies)
        self.tools: list[str] = []
        self.words = ""
        self.conversations: list[list[Any]] = []

    def create_conversation_prefix_with_tools(self, tools: Any, system_prompt: str = "") -> list[Any]:
        self.tools = [tool["name"] for tool in tools]
        self.words = system_prompt
        return [{"role": "system", "content": system_prompt}]

    def build_generation_prompt(self, messages: Any, effort: float) -> Any:
        self.conversations.append(list(messages))
        return SimpleNamespace(length=10)

    def get_stop_sequences(self) -> list[str]:
        return []

    def parse_response(self, tokens: Any) -> tuple[Any, Any]:
        reply = self._replies.pop(0)
        if isinstance(reply, str):
            said: dict[str, Any] = {"role": "assistant", "content": reply}
        else:
            said = {"role": "assistant", "content": "", "tool_calls": [PretendedCall(*reply)]}
        return said, SimpleNamespace(is_clean=True)


class PretendedCall:
    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.id = ""
        self.function = SimpleNamespace(name=name, arguments=json.dumps(arguments))

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"id": self.id, "name": self.function.name, "arguments": self.function.arguments}

    def model_copy(self, update: dict[str, Any]) -> PretendedCall:
        copied = PretendedCall(self.function.name, json.loads(self.function.arguments))
        copied.id = update["id"]
        return copied


class PretendedClient:
    async def sample(self, **named: Any) -> Any:
        sequence = SimpleNamespace(tokens=[1], logprobs=None, stop_reason="stop")
        return SimpleNamespace(sequences=[sequence], prompt_cache_hit_tokens=0)


def tinker(monkeypatch: pytest.MonkeyPatch, replies: Sequence[Any]) -> PretendedRenderer:
    """Have Harbor's Tinker provider use a pretended renderer and client."""
    module = pytest.importorskip("harbor.agents.computer_1.providers.tinker", reason="this Harbor has no Tinker")
    sdk, renderers = ModuleType("tinker"), ModuleType("tinker_cookbook.renderers")
    sdk.SamplingParams = lambda **named: named  # type: ignore[attr-defined]
    renderers.get_text_content = lambda said: said["content"]  # type: ignore[attr-defined]
    for name, one in {
        "tinker": sdk,
        "tinker_cookbook": ModuleType("c"),
        "tinker_cookbook.renderers": renderers,
    }.items():
        monkeypatch.setitem(sys.modules, name, one)
    renderer = PretendedRenderer(replies)

    async def initialize(self: Any) -> None:
        self.renderer, self.client, self.context_window = renderer, PretendedClient(), 1 << 20

    monkeypatch.setattr(module.TinkerProvider, "_initialize_dependencies", initialize)
    return renderer


@pytest.mark.parametrize("name", [OURS, "computer-1"])
@pytest.mark.parametrize("driver", ["hand", "tools"])
def test_tinker(
    patched: Make, agent: Make, sandbox: FakeSandbox, monkeypatch: pytest.MonkeyPatch, name: str, driver: str
) -> None:
    replies = [
        ("click", {"x": 10, "y": 20}),
        ("zoom", {"zoom_region": [0, 0, 100, 100]}),
        ("navigate", {"url": "http://example.com"}),
        "It is done.",
    ]
    renderer = tinker(monkeypatch, replies)
    settings: dict[str, Any] = {}
    if name == "computer-1":
        patched(DRIVER=driver, SETTLE_SEC="0")
    else:
        settings = TOOLS if driver == "tools" else {"driver": "hand"}
    made = agent(name, model="tinker/thinkingmachines/Inkling", llm_kwargs={}, **settings)
    context = run(made, sandbox)
    assert context.metadata["early_termination_reason"] == "task_complete"
    assert made._screenshot_suffix == "png"
    assert "click" in renderer.tools
    assert not {"navigate", "go_back", "go_forward"} & set(renderer.tools)
    assert ("zoom" in renderer.tools) is (driver == "hand")
    assert ("zoom" in renderer.words) is (driver == "hand")
    said = json.dumps(renderer.conversations[-1], default=str)
    assert "no navigate on this desktop" in said
    assert ("can not be cropped" in said) is (driver == "tools")
    if driver == "hand":
        assert acted(sandbox)[0] == {"action": "click", "x": 10, "y": 20, "button": "left", "count": 1}
        regions = [request["picture"].get("region") for request in sandbox.requests if "picture" in request]
        assert [region for region in regions if region] == [[0, 0, 100, 100]]


def test_tinker_takes_no_other_size(agent: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from deskhand.harbor.settings import BadSetting

    tinker(monkeypatch, [])
    with pytest.raises(BadSetting, match="the screen's pixels"):
        agent(OURS, model="tinker/thinkingmachines/Inkling", screenshot_size="512x450")
