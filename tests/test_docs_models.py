"""The examples of the pages vendor-loops and models in ``docs/how-to``, run as they stand against stand-ins."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deskhand.testing import XServer
from tests.commands import environment
from tests.probes import RawWindow
from tests.standins import anthropic, chat, google, openai
from tests.standins.brain import Do, told
from tests.standins.server import serving

pytestmark = pytest.mark.slow

DOCS = Path(__file__).resolve().parent.parent / "docs" / "how-to"
CLICK = Do("click", {"x": 100, "y": 50})
FINISH = Do("finish", {"success": True, "summary": "it is done"})
CODE = ["```python\nimport pyautogui\npyautogui.click(100, 50)\n```", "```\nDONE\n```"]
LOCAL = "http://127.0.0.1:8000/v1"
QWEN = f'Compatible("Qwen/Qwen3-VL-8B-Instruct", "{LOCAL}")'
#: By heading: the vendor's server, what the model says, and what the example prints.
LOOPS: dict[str, tuple[Any, list[Any], str]] = {
    "Anthropic": (anthropic.StandIn, [[CLICK], "it is done"], "it is done\n"),
    "OpenAI": (openai.StandIn, [[CLICK], "it is done"], "it is done\n"),
    "Gemini": (google.StandIn, [[CLICK], "it is done"], "it is done\n"),
    "Qwen-VL": (chat.QwenStandIn, [[CLICK], [FINISH]], r"True .*\n"),
    "UI-TARS": (chat.UiTarsStandIn, [[CLICK], [FINISH]], "True it is done\n"),
    "pyautogui": (chat.StandIn, CODE, r"True .*\n"),
}
#: By the words of the page that make the model, those that stand for another.
CLAUDE = ("from deskhand.agents.anthropic import Claude\n", 'Claude("claude-sonnet-5-5")')
MODELS: dict[str, tuple[Any, str, str]] = {
    "anthropic": (anthropic.StandIn, "deskhand.agents.anthropic", "Claude()"),
    "openai": (openai.StandIn, "deskhand.agents.openai", "Gpt()"),
    "google": (google.StandIn, "deskhand.agents.google", "Gemini()"),
    "compatible": (
        chat.QwenStandIn,
        "deskhand.agents.compatible",
        f'Compatible("Qwen/Qwen3-VL-8B-Instruct", "{LOCAL}")',
    ),
}


def examples(page: str) -> dict[str, str]:
    """The Python of a page, by the heading it stands under."""
    found = {}
    for section in re.split(r"^## ", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)[1:]:
        for code in re.findall(r"^```python\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL):
            title = section.partition("\n")[0]
            assert title not in found
            found[title] = code
    return found


def result_of(code: str, standin: Any, says: list[Any], display: XServer) -> str:
    """What an example prints; the one click that the stand-in asks for must have arrived."""
    with serving(standin(told(*says))) as server, RawWindow(display) as window:
        env = environment(display, **standin.keys, **{standin.base: server.url})
        code = code.replace(LOCAL, server.url).replace(":71", display.display)
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert len(window.all("press")) == 1
    return done.stdout


def test_every_example_is_run() -> None:
    assert set(examples("vendor-loops.md")) == set(LOOPS)
    assert set(examples("models.md")) == {"From Python"}


@pytest.mark.parametrize("title", LOOPS)
def test_a_loop_of_ones_own(display: XServer, title: str) -> None:
    standin, says, prints = LOOPS[title]
    assert re.fullmatch(prints, result_of(examples("vendor-loops.md")[title], standin, says, display))


@pytest.mark.parametrize("name", MODELS)
def test_each_model_from_python(display: XServer, name: str) -> None:
    standin, module, made = MODELS[name]
    assert f"`{made}`" in (DOCS / "models.md").read_text("utf-8"), "the page says how this model is made"
    code = examples("models.md")["From Python"]
    assert all(code.count(text) == 1 for text in CLAUDE)
    code = code.replace(CLAUDE[0], f"from {module} import {made.partition('(')[0]}\n").replace(CLAUDE[1], made)
    assert result_of(code, standin, [[CLICK], [FINISH]], display).splitlines()[-1].startswith("True ")
