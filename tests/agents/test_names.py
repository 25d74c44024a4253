"""Models by name: which is asked, what it is when nobody says, and what is said of a name that is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from deskhand import SetupError
from deskhand.agents.history import prune
from deskhand.agents.models import CHAT_ADAPTERS, VENDORS, default_model, load_model
from deskhand.agents.usage import Prices, Usage
from tests.commands import PROGRAM

WIDE = {**os.environ, "COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}
#: Options on that page that are a server's own.
OF_OTHERS = {"--enable-auto-tool-choice", "--tool-call-parser", "--limit-mm-per-prompt"}


def test_the_first_key_decides() -> None:
    assert default_model({}) is None
    assert default_model({"OPENAI_API_KEY": ""}) is None
    every = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "GEMINI_API_KEY": "c"}
    for name, prefix in (
        ("ANTHROPIC_API_KEY", "anthropic:"),
        ("OPENAI_API_KEY", "openai:"),
        ("GEMINI_API_KEY", "google:"),
    ):
        assert str(default_model(every)).startswith(prefix)
        del every[name]


def test_the_defaults_are_names_of_the_sdks() -> None:
    from anthropic.types import model_param
    from google.genai._gaos.types.interactions.model import Model as google_model
    from openai.types.shared.chat_model import ChatModel

    from deskhand.agents import anthropic, google, openai

    assert anthropic.DEFAULT in get_args(get_args(model_param.ModelParam)[0])
    assert openai.DEFAULT in get_args(ChatModel)
    assert google.DEFAULT in get_args(get_args(google_model)[0])


@pytest.mark.parametrize(
    ("wanted", "more", "why"),
    [
        ("nobody:x", {}, "use scripted:FILE, anthropic:NAME, openai:NAME, google:NAME"),
        ("claude", {}, "is not known"),
        ("anthropic:x", {}, "set ANTHROPIC_API_KEY"),
        ("openai:x", {}, "set OPENAI_API_KEY"),
        ("google:x", {}, "set GEMINI_API_KEY"),
        ("openai:", {"base_url": "http://127.0.0.1:1"}, "name the model"),
        ("openai:x", {"adapter": "nothing"}, "openai takes tools, qwen, ui_tars"),
        ("anthropic:x", {"adapter": "qwen"}, "is not known for anthropic"),
    ],
)
def test_what_is_wrong_is_said(wanted: str, more: dict[str, Any], why: str) -> None:
    with pytest.raises(SetupError, match=why):
        load_model(wanted, {}, **more)


@pytest.mark.parametrize(
    ("prefix", "key", "module"),
    [
        ("anthropic", "ANTHROPIC_API_KEY", "anthropic"),
        ("openai", "OPENAI_API_KEY", "openai"),
        ("google", "GEMINI_API_KEY", "google.genai"),
    ],
)
def test_an_sdk_that_is_missing_names_its_extra(prefix: str, key: str, module: str) -> None:
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from deskhand import SetupError\n"
        "from deskhand.agents.models import load_model\n"
        f"try: load_model('{prefix}:x', {{'{key}': 'k'}})\n"
        "except SetupError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install 'deskhand[{prefix}]'" in done.stdout


def test_no_sdk_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, deskhand.agents, deskhand.agents.models, deskhand.agents.asking, deskhand.cli.run\n"
        "print([name for name in ('anthropic', 'openai', 'google.genai') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_prices() -> None:
    usage = Usage(1_000_000, 2_000_000, 500_000, 100_000)
    assert Prices.parse("3,15,0.3,3.75").cost(usage) == pytest.approx(3 + 0.6 + 1.875 + 1.5)
    assert Prices.parse("3,15").cost(usage) == pytest.approx(3 * 3.5 + 1.5)
    for wrong in ("", "3", "3,x", "1,2,3,4,5", "-1,2", "nan,1", "1,inf"):
        with pytest.raises(ValueError, match="numbers"):
            Prices.parse(wrong)


def test_a_picture_is_taken_away_where_nothing_may_stand_for_it() -> None:
    history = [{"parts": [{"picture": n}, {"text": str(n)}]} for n in range(4)]
    history.append("a vendor's own object")  # type: ignore[arg-type]
    left = prune(history, lambda node: "picture" in node, lambda node: None, keep=2)
    assert left == 2
    assert [len(message["parts"]) for message in history[:4]] == [1, 1, 2, 2]


def test_the_page_about_models_names_what_there_is() -> None:
    page = Path(__file__).parents[2].joinpath("docs/how-to/models.md").read_text("utf-8")
    for prefix, (module, _, keys) in VENDORS.items():
        assert f"`{import_module(f'deskhand.agents.{module}').DEFAULT}`" in page
        assert f"`{prefix}:NAME`" in page
        assert all(key in page for key in keys)
    for adapter in CHAT_ADAPTERS:
        assert f"`{adapter}`" in page
    told = subprocess.run([PROGRAM, "run", "--help"], capture_output=True, text=True, check=True, env=WIDE).stdout
    options = set(re.findall(r"--[a-z][a-z-]+", page))
    assert options
    assert {option for option in options if option not in told} <= OF_OTHERS
