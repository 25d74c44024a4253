"""The tools for Inspect AI: a whole evaluation with its mock model, its own local sandbox and a real X server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deskhand.testing import XServer
from tests.probes import RawWindow

pytest.importorskip("inspect_ai")
from inspect_ai import Task, eval
from inspect_ai.approval import Approval, ApprovalPolicy, Approver, approver, auto_approver
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageTool, ContentImage, ModelAPI, ModelOutput, get_model
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolCall

from deskhand.approvals import Ask, Policy
from deskhand.inspect_ai import desktop_tools

CLICK = {"action": "click", "x": 10, "y": 20}


@pytest.fixture(autouse=True)
def no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock model counts its tokens with a table that Inspect fetches from the internet."""

    async def count(self: ModelAPI, text: str) -> int:
        return len(text) // 4

    monkeypatch.setattr(ModelAPI, "count_text_tokens", count)


def evaluate(
    directory: Path, samples: int, *calls: tuple[str, dict[str, Any]], approval: Any = None, **options: Any
) -> list[Any]:
    """The samples after a model has made these calls in each."""
    script = [ModelOutput.for_tool_call("mockllm/model", name, arguments) for name, arguments in calls]
    done = ModelOutput.from_content("mockllm/model", "done")
    model = get_model("mockllm/model", custom_outputs=[*script, done] * samples)
    task = Task(
        dataset=[Sample(input=f"sample {number}") for number in range(samples)],
        solver=[use_tools(desktop_tools(**options)), generate()],
        sandbox="local",
    )
    (log,) = eval(
        task, model=model, log_dir=str(directory), display="none", max_samples=1, log_level="warning", approval=approval
    )
    assert log.status == "success", log.error
    assert log.samples is not None
    return list(log.samples)


def results(sample: Any) -> list[ChatMessageTool]:
    return [message for message in sample.messages if isinstance(message, ChatMessageTool)]


@pytest.mark.slow
def test_an_evaluation_uses_the_desktop_of_its_sandbox(display: XServer, tmp_path: Path) -> None:
    with RawWindow(display) as window:
        samples = evaluate(
            tmp_path,
            2,
            ("computer_screenshot", {}),
            ("computer_act", {"actions": [{**CLICK, "x": 1280}]}),
            ("computer_act", {"actions": [CLICK]}),
            ("computer_act", {"actions": [CLICK]}),
            display=display.display,
            max_actions=1,
        )
        assert [event.at for event in window.all("press")] == [(10, 20)] * 2  # each sample has a budget of its own
    for sample in samples:
        looked, refused, clicked, spent = results(sample)
        assert isinstance(looked.content, list)
        assert isinstance(looked.content[1], ContentImage)
        assert "1280x800" in looked.text
        assert refused.error is not None
        assert "outside the 1280x800 picture" in refused.error.message
        assert clicked.error is None
        assert "0 click ok" in clicked.text
        assert spent.error is not None
        assert "0 of 1 left" in spent.error.message


@pytest.mark.slow
def test_a_sandbox_without_the_display_says_so(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no X server listens on display :987"):
        evaluate(tmp_path, 1, ("computer_screenshot", {}), display=":987")


@approver(name="no_clicks")
def no_clicks() -> Approver:
    async def approve(message: str, call: ToolCall, view: Any, history: Any) -> Approval:
        return Approval(decision="reject", explanation="not this one")

    return approve


@pytest.mark.slow
def test_inspects_own_approval_comes_before_ours(display: XServer, tmp_path: Path) -> None:
    """Its policies name our tools; ours are asked beside them, and both can say no."""
    asked: list[Ask] = []

    async def no(ask: Ask) -> bool:
        asked.append(ask)
        return False

    act = ("computer_act", {"actions": [CLICK]})
    with RawWindow(display) as window:
        policies = [ApprovalPolicy(no_clicks(), "computer_act"), ApprovalPolicy(auto_approver(), "*")]
        (sample,) = evaluate(tmp_path, 1, act, ("computer_screenshot", {}), approval=policies, display=display.display)
        rejected, looked = results(sample)
        assert rejected.error is not None
        assert "not this one" in rejected.error.message
        assert looked.error is None
        ours = {"policy": Policy(input=True), "approve": no}
        (sample,) = evaluate(tmp_path, 1, act, display=display.display, **ours)
        (declined,) = results(sample)
        assert declined.error is not None
        assert "did not grant permission to run 'click'" in declined.error.message
        assert [ask.source for ask in asked] == ["policy: input"]
        assert window.all("press") == []
