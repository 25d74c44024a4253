"""Every example of ``docs/how-to/agents.md`` is run as it stands, on a real X server, with a stand-in for the model."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deskhand.testing import XServer
from tests.commands import PROGRAM, environment

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "agents.md"

#: What stands in the page's example for what has to be there to run it: the text, and what the test puts in its place.
STAND_INS: dict[str, list[tuple[str, str]]] = {
    "Pydantic AI": [
        (
            "from pydantic_ai import Agent\n",
            "from pydantic_ai import Agent\nfrom pydantic_ai.models.test import TestModel\n"
            'MODEL = TestModel(call_tools=["computer_screenshot"])\n',
        ),
        ('"anthropic:claude-sonnet-5-5"', "MODEL"),
    ],
    "OpenAI Agents": [
        (
            "from agents import Agent, Runner\n",
            "from agents import Agent, Runner, set_tracing_disabled\n"
            "from agents.testing import ScriptedModel, assistant_message\n"
            "from openai.types.responses import ResponseComputerToolCall\n"
            "set_tracing_disabled(True)\n"
            'CALL = ResponseComputerToolCall(id="i", call_id="c", type="computer_call", status="completed",\n'
            '    actions=[{"type": "screenshot"}], pending_safety_checks=[])\n'
            'MODEL = ScriptedModel([[CALL], [assistant_message("an empty screen")]])\n',
        ),
        ('model="gpt-6.2-sol"', "model=MODEL"),
    ],
    "Inspect AI": [
        (
            "from inspect_ai import Task, eval\n",
            "import os\nos.environ['INSPECT_DISPLAY'] = 'none'\nfrom inspect_ai import Task, eval\n"
            "from inspect_ai.model import ModelAPI, ModelOutput, get_model\n"
            "async def count(self, text): return len(text)\n"  # the mock's own table comes from the internet
            "ModelAPI.count_text_tokens = count\n"
            'CALL = ModelOutput.for_tool_call("mockllm/model", "computer_screenshot", {})\n'
            'MODEL = get_model("mockllm/model", custom_outputs=[CALL, ModelOutput.from_content("m", "nothing")])\n',
        ),
        ('model="openai/gpt-6.2-sol"', "model=MODEL"),
        ('sandbox="docker"', 'sandbox="local"'),
    ],
}
#: What each example prints last, or a part of it.
PRINTS = {
    "Python, any model": "image/png",
    "MCP": "['text', 'image'] 1280",
    "Pydantic AI": "computer_screenshot",
    "OpenAI Agents": "an empty screen",
    "Inspect AI": "success",
    "What needs a person": "",
}
NEEDS = {"MCP": "mcp", "Pydantic AI": "pydantic_ai", "OpenAI Agents": "agents", "Inspect AI": "inspect_ai"}


def blocks(language: str) -> dict[str, str]:
    """The page's code of that language, by the heading it stands under."""
    found = {}
    for section in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        codes = re.findall(rf"^```{language}\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
        assert len(codes) <= 1, f"two examples under {title}"
        found.update(dict.fromkeys([title], codes[0]) if codes else {})
    return found


def test_every_example_is_run() -> None:
    assert set(blocks("python")) == set(PRINTS)
    assert set(blocks("console")) == {"MCP"}


@pytest.mark.slow
@pytest.mark.parametrize("title", PRINTS)
def test_an_example(display: XServer, tmp_path: Path, title: str) -> None:
    if title in NEEDS:
        pytest.importorskip(NEEDS[title])
    code = blocks("python")[title]
    for text, stand_in in STAND_INS.get(title, []):
        assert code.count(text) == 1, text
        code = code.replace(text, stand_in)
    assert ":71" in code
    env = environment(display, PATH=os.pathsep.join((str(Path(PROGRAM).parent), os.environ["PATH"])))
    done = subprocess.run(
        [sys.executable, "-c", code.replace(":71", display.display)],
        env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert PRINTS[title] in done.stdout


@pytest.mark.parametrize("line", blocks("console")["MCP"].splitlines())
def test_a_command(display: XServer, line: str) -> None:
    name, *words = shlex.split(line.removeprefix("$ "))
    assert name == "deskhand"
    done = subprocess.run([PROGRAM, *words], env=environment(display), capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
