"""What deskhand.harbor leans on in Harbor: every private name, and every public one that is patched."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from typing import Any

import pytest

RUNTIME = "harbor.agents.computer_1.runtime"
COMPUTER_1 = "harbor.agents.computer_1.computer_1"
GENERIC = "harbor.agents.computer_1.providers.generic"

#: Module, and a dotted name in it.
NAMES = [
    (RUNTIME, "_RUNTIME_DIR"),
    (RUNTIME, "_SCREENSHOT_DIR"),
    (RUNTIME, "_DEFAULT_DISPLAY"),
    (RUNTIME, "_bash_inline"),
    (RUNTIME, "_xdotool_key_sequence"),
    (RUNTIME, "BLOCKED_KEY_COMBOS"),
    (RUNTIME, "XDOTOOL_KEY_ALIASES"),
    (RUNTIME, "CoordinateSpace.NORMALIZED_0_999"),
    (RUNTIME, "CoordinateSpace.NATIVE_PRESCALED"),
    (RUNTIME, "CoordinateSpace.ANTHROPIC_SCALED"),
    (RUNTIME, "TERMINAL_ACTION_TYPES"),
    (RUNTIME, "build_xdotool_argv"),
    (RUNTIME, "normalize_completion_action"),
    (RUNTIME, "DisplayGeometry"),
    (RUNTIME, "RuntimeRequestError"),
    (RUNTIME, "Computer1Session.start"),
    (RUNTIME, "Computer1Session.is_session_alive"),
    (RUNTIME, "Computer1Session.reset"),
    (RUNTIME, "Computer1Session.execute"),
    (RUNTIME, "Computer1Session.fetch_screenshot"),
    (RUNTIME, "Computer1Session.latest_png_data_url"),
    (RUNTIME, "Computer1Session._recover_chromium_if_needed"),
    (RUNTIME, "Computer1Session._wait_for_x11"),
    (RUNTIME, "Computer1Session._exec"),
    (RUNTIME, "Computer1Session._raw_exec"),
    (RUNTIME, "Computer1Session._execute_bash"),
    (GENERIC, "_TEMPLATES_DIR"),
    (GENERIC, "GenericJsonProvider.from_agent"),
    (GENERIC, "GenericJsonProvider.parse"),
    (GENERIC, "GenericJsonProvider.screenshot_format"),
    (COMPUTER_1, "screenshot_data_url"),
    (COMPUTER_1, "Computer1.setup"),
    (COMPUTER_1, "Computer1.run"),
    (COMPUTER_1, "Computer1._build_provider"),
    (COMPUTER_1, "Computer1._run_loop"),
    (COMPUTER_1, "Computer1._run_step_loop"),
    (COMPUTER_1, "Computer1._query_litellm"),
    (COMPUTER_1, "Computer1._fallback_message_history"),
    (COMPUTER_1, "Computer1._screenshot_ref"),
    (COMPUTER_1, "Computer1._payload_screenshot_ref"),
    (COMPUTER_1, "Computer1Compactor._trim_old_screenshots"),
    ("harbor.models.trial.paths", "EnvironmentPaths.agent_dir"),
    ("harbor.environments.base", "BaseEnvironment._merge_env"),
    ("harbor.environments.base", "BaseEnvironment._resolve_user"),
]
SESSION_ATTRIBUTES = [
    "_started",
    "_agent_dir",
    "_request_timeout_sec",
    "_readiness_timeout_sec",
    "_user",
    "_enable_bash",
]
AGENT_ATTRIBUTES = [
    "_compactor",
    "_enable_images",
    "_latest_screenshot_path",
    "_chat",
    "_session",
    "_provider",
    "_provider_name",
    "_desktop_geometry",
    "_env_io_dir",
    "_extra_env",
    "_enable_bash",
    "_early_termination_reason",
]


def resolve(module: str, name: str) -> Any:
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{m.rpartition('.')[2]}.{n}" for m, n in NAMES])
def test_name_exists(module: str, name: str) -> None:
    resolve(module, name)


@pytest.mark.parametrize("name", SESSION_ATTRIBUTES)
def test_session_attribute_exists(sandbox: Any, name: str) -> None:
    session = resolve(RUNTIME, "Computer1Session")(environment=sandbox, agent_dir="/logs/agent")
    assert hasattr(session, name)


@pytest.mark.parametrize("name", AGENT_ATTRIBUTES)
def test_agent_attribute_exists(agent: Any, name: str) -> None:
    assert hasattr(agent(), name)


def test_provider_attributes_exist(agent: Any) -> None:
    provider = resolve(GENERIC, "GenericJsonProvider").from_agent(agent())
    assert "{instruction}" in provider._prompt_template
    assert (provider.desktop_width, provider.desktop_height) == (1024, 900)


def test_signatures_are_those_that_are_wrapped() -> None:
    query = list(inspect.signature(resolve(COMPUTER_1, "Computer1._query_litellm")).parameters)
    assert query[:3] == ["self", "chat", "prompt"]
    trim = list(inspect.signature(resolve(COMPUTER_1, "Computer1Compactor._trim_old_screenshots")).parameters)
    assert trim == ["self", "chat", "keep_last"]
    assert list(inspect.signature(resolve(COMPUTER_1, "screenshot_data_url")).parameters) == ["path", "environment"]
    assert list(inspect.signature(resolve(RUNTIME, "Computer1Session.execute")).parameters) == ["self", "action"]


def test_private_names_used_are_all_listed_here() -> None:
    """What the package takes of Harbor's modules by name stands above."""
    import re
    from pathlib import Path

    import deskhand.harbor

    listed = {name.rpartition(".")[2] for _, name in NAMES} | set(SESSION_ATTRIBUTES) | set(AGENT_ATTRIBUTES)
    place = Path(deskhand.harbor.__file__).parent
    for file in place.rglob("*.py"):
        for used in re.findall(
            r"\b(?:runtime|generic|computer_1|Computer1Session|Computer1)\.(_\w+)", file.read_text()
        ):
            assert used in listed | {"__init__"}, f"{file.name} uses {used}"


UNSET = """
import json, os, sys
import deskhand
from deskhand.harbor import apply_existing_desktop
assert apply_existing_desktop() is False
assert "harbor" not in sys.modules, "Harbor is imported only where the patch is applied"
from deskhand.harbor import patching
before = [vars(owner).get(name) for owner, name in patching.PATCHED]
assert apply_existing_desktop() is False
assert all(a is vars(owner).get(name) for a, (owner, name) in zip(before, patching.PATCHED))
modules = {owner.__module__ if isinstance(owner, type) else owner.__name__ for owner, _ in patching.PATCHED}
code = [getattr(value, "__code__", None) for value in before]
ours = os.path.dirname(deskhand.__file__)
assert not any(c and c.co_filename.startswith(ours) for c in code), "what is there is Harbor's own"
print("the same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, "", "  "])
def test_unset_leaves_harbor_as_it_is(value: str | None) -> None:
    import os

    environment = {name: text for name, text in os.environ.items() if not name.startswith("HARBOR_CUA_")}
    if value is not None:
        environment["HARBOR_CUA_DESKTOP"] = value
    ran = subprocess.run([sys.executable, "-c", UNSET], env=environment, capture_output=True, text=True, timeout=120)
    assert ran.stdout.strip() == "the same", ran.stderr


def test_what_native_providers_offer_is_where_it_is_changed() -> None:
    """Private names and words of ``deskhand.harbor.native``; of Gemini's two kinds a version of Harbor has one."""
    from deskhand.harbor.native import TINKER_ZOOM_WORDS, ZOOM_WORDS

    providers = "harbor.agents.computer_1.providers"
    gemini = pytest.importorskip(f"{providers}.gemini", reason="Harbor's native providers need harbor[computer-1]")
    (constant,) = [name for name in ZOOM_WORDS if hasattr(gemini, name)]
    assert getattr(gemini, constant).count(ZOOM_WORDS[constant]) == 1
    own = "_generate_config" if constant == "GEMINI_COMPUTER_USE_HINT" else "_TOOLS"
    source = inspect.getsource(gemini)
    for name in (own, "_client", "generate_content" if own == "_generate_config" else "interactions.create"):
        assert name in source, name
    claude = inspect.getsource(importlib.import_module(f"{providers}.anthropic").AnthropicProvider)
    assert "self._client.beta.messages.create(" in claude
    assert '["enable_zoom"]' in claude
    try:
        tinker = inspect.getsource(importlib.import_module(f"{providers}.tinker"))
    except ModuleNotFoundError:
        return  # Harbor 0.20 has none
    assert "def _initialize(self)" in tinker
    assert "self.renderer.create_conversation_prefix_with_tools(" in tinker
    assert tinker.count(TINKER_ZOOM_WORDS) == 1
