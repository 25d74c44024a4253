"""What is optional is imported when it is used, and one that is missing names its extra."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deskhand.extras import needs

ROOT = Path(__file__).resolve().parent.parent
#: Module of ours: what it is called in the error, its extra, and the packages it needs.
WAYS_IN = {
    "mcp": ("The MCP server", "mcp", ["mcp", "mcp_types"]),
    "pydantic_ai": ("The Pydantic AI capability", "pydantic-ai", ["pydantic_ai"]),
    "openai_agents": ("The OpenAI Agents computer", "openai-agents", ["agents"]),
    "inspect_ai": ("The desktop for Inspect AI", "inspect", ["inspect_ai"]),
}
#: Blocks the import of these packages, as if they were not installed.
BLOCK = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("module", WAYS_IN)
def test_a_missing_extra_names_itself(module: str) -> None:
    what, extra, packages = WAYS_IN[module]
    code = BLOCK.format(missing=packages) + (
        f"try:\n    import deskhand.{module}\nexcept ImportError as error:\n    print(error)"
    )
    done = python(code)
    assert done.stdout == f"{what} is not available. Install it with: pip install 'deskhand[{extra}]'\n", done.stderr


def test_the_command_says_it_in_one_line() -> None:
    code = (
        BLOCK.format(missing=["mcp", "mcp_types"])
        + "from deskhand.cli import main; sys.argv = ['deskhand', 'mcp']; main()"
    )
    done = python(code)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == ("deskhand: The MCP server is not available. Install it with: pip install 'deskhand[mcp]'\n")


def test_harbor_names_the_python_that_it_needs() -> None:
    done = python(BLOCK.format(missing=["harbor"]) + "import deskhand.harbor.__main__ as m; sys.exit(m.main())")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(": with Python 3.12 or newer, pip install 'deskhand[harbor]'\n")


def test_another_module_that_is_missing_is_not_blamed_on_the_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), needs("It", "mcp", "mcp"):
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401


def test_every_extra_that_is_named_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra for _, extra, _ in WAYS_IN.values()} <= set(extras)


#: Each vendor's model: its class, the package it needs and what the extra is called.
MODELS = {
    "anthropic": ("Claude", "anthropic", "anthropic"),
    "openai": ("Gpt", "openai", "openai"),
    "google": ("Gemini", "google", "google"),
    "compatible": ("Compatible", "openai", "openai"),
}


@pytest.mark.parametrize("module", MODELS)
def test_a_vendor_whose_package_is_missing_names_its_extra(module: str) -> None:
    name, package, extra = MODELS[module]
    code = BLOCK.format(missing=[package]) + (
        f"from deskhand.agents.{module} import {name}\nfrom deskhand import SetupError\n"
        f"try:\n    {name}('a-model', 'http://127.0.0.1:1')\nexcept SetupError as error:\n    print(error)"
    )
    done = python(code)
    assert done.stdout.endswith(f"is not installed: install it with: pip install 'deskhand[{extra}]'\n"), done.stderr


def test_the_package_alone_imports_nothing() -> None:
    done = python(
        "import sys; before = set(sys.modules); import deskhand\n"
        "print(*sorted(name for name in set(sys.modules) - before if name.split('.')[0] == 'deskhand'))\n"
        "print(*{'asyncio', 'pydantic', 'PIL', 'typer', 'numpy', 'ctypes', 'importlib.metadata'} & set(sys.modules))"
    )
    assert done.stdout == "deskhand\n\n", done.stderr


def test_nothing_optional_is_imported_before_it_is_used() -> None:
    optional = ["mcp", "pydantic_ai", "agents", "inspect_ai", "openai", "anthropic", "google", "pydantic", "httpx"]
    optional += ["httpx2", "fastapi", "uvicorn", "e2b", "harbor", "ray", "PIL", "numpy", "zlib_ng", "simplejpeg"]
    code = (
        "import sys, deskhand\n"
        "from deskhand import Session, LocalDisplay, TraceRecorder\n"
        "import deskhand.tools, deskhand.approvals, deskhand.vendors, deskhand.cli.app\n"
        "deskhand.tools.tools()\n"
        f"print(*[name for name in {optional!r} if name in sys.modules])"
    )
    done = python(code)
    assert done.stdout == "\n", done.stderr
