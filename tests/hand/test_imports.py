"""The hand stands alone: the standard library only, nothing of the rest of the project, Python 3.9."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import deskhand.hand

HAND = Path(deskhand.hand.__file__).parent
FILES = sorted(HAND.rglob("*.py"))
#: The one file that may import what is not in the standard library, inside its functions.
ACCELERATORS = HAND / "accelerators.py"
#: Modules that came after Python 3.9.
TOO_NEW = {"tomllib", "_suggestions", "annotationlib", "compression"}


def imports(tree: ast.AST, late: bool = False) -> Iterator[tuple[ast.AST, str, int, bool]]:
    """Every import: its node, the module, how many dots before it, and whether it is inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name, 0, late
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or "", node.level, late
        yield from imports(node, late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))


def refused(path: Path, source: str, standard: frozenset[str]) -> list[str]:
    """The imports that a file of the hand may not have."""
    found = []
    for node, module, dots, late in imports(ast.parse(source)):
        first = module.partition(".")[0]
        if dots:
            depth = len(path.relative_to(HAND).parts)
            allowed = dots <= depth
        elif first in standard and first not in TOO_NEW:
            allowed = True
        else:
            allowed = path == ACCELERATORS and late and first != "deskhand"
        if not allowed:
            found.append(f"{path.relative_to(HAND)}:{getattr(node, 'lineno', 0)}: {'.' * dots}{module}")
    return found


def standard_library() -> frozenset[str]:
    names = getattr(sys, "stdlib_module_names", None)
    if names is None:
        pytest.skip("Python 3.10 and later know the names of the standard library")
    return frozenset(names)


def test_the_hand_imports_the_standard_library_and_itself() -> None:
    standard = standard_library()
    assert len(FILES) > 30
    assert [line for path in FILES for line in refused(path, path.read_text(), standard)] == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("hand.py", "import numpy"),
        ("hand.py", "def f():\n    import numpy"),
        ("hand.py", "from PIL import Image"),
        ("hand.py", "import deskhand.session"),
        ("hand.py", "from deskhand.hand import actions"),
        ("hand.py", "from ..session import Session"),
        ("x11/core.py", "from ...session import Session"),
        ("hand.py", "import tomllib"),
        ("hand.py", "try:\n    import numpy\nexcept ImportError:\n    pass"),
        ("accelerators.py", "import isal"),
        ("accelerators.py", "from ..session import Session"),
        ("accelerators.py", "def f():\n    import deskhand.session"),
    ],
)
def test_what_would_be_refused(name: str, source: str) -> None:
    assert len(refused(HAND / name, source, standard_library())) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("hand.py", "import os, json\nfrom . import batch\nfrom .x11 import core"),
        ("x11/core.py", "from ..errors import DisplayLost"),
        ("accelerators.py", "def f():\n    try:\n        import isal\n    except ImportError:\n        pass"),
    ],
)
def test_what_is_allowed(name: str, source: str) -> None:
    assert refused(HAND / name, source, standard_library()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HAND)))
def test_python_3_9_can_read_it(path: Path) -> None:
    source = path.read_text()
    tree = ast.parse(source, feature_version=(3, 9))
    # The parser takes these whatever the version it is told.
    for node in ast.walk(tree):
        assert type(node).__name__ not in ("Match", "TryStar", "TypeAlias"), f"line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.keyword) and node.arg in ("slots", "kw_only", "strict"):
            raise AssertionError(f"line {node.value.lineno}: {node.arg}= came with Python 3.10")
    if any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign)) for node in ast.walk(tree)):
        first = next(node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)))
        assert getattr(first, "module", "") == "__future__", "3.9 must not evaluate its annotations"


def clean(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd="/", capture_output=True, text=True, timeout=60
    )


SOURCES = str(HAND.parents[1])


@pytest.mark.parametrize("module", ["deskhand", "deskhand.hand", "deskhand.hand.hand", "deskhand.hand.__main__"])
def test_importing_needs_no_display_and_no_environment(module: str) -> None:
    done = clean(f"import sys; sys.path.insert(0, {SOURCES!r}); import {module}; print('imported')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "imported\n", "")


def test_every_module_of_the_hand_can_be_imported_without_a_display() -> None:
    names = [
        "deskhand.hand" + "".join(f".{part}" for part in path.relative_to(HAND).with_suffix("").parts)
        for path in FILES
        if path.name not in ("__init__.py", "__main__.py")
    ]
    code = (
        f"import sys; sys.path.insert(0, {SOURCES!r}); import importlib\nfor n in {names!r}: importlib.import_module(n)"
    )
    done = clean(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_the_hand_imports_nothing_from_outside() -> None:
    code = (
        f"import sys; sys.path.insert(0, {SOURCES!r}); before = set(sys.modules)\n"
        "import deskhand.hand.hand, deskhand.hand.__main__, deskhand.hand.resident\n"
        "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
    )
    imported = set(clean(code).stdout.split())
    assert "deskhand" in imported
    assert imported - {"deskhand"} <= standard_library()


def test_no_display_says_what_was_tried() -> None:
    code = (
        f"import sys; sys.path.insert(0, {SOURCES!r})\n"
        "from deskhand.hand.hand import Hand\n"
        "from deskhand.hand.errors import NoDisplay\n"
        "for name in (None, ':4711'):\n"
        "    try: Hand(name).screenshot()\n"
        "    except NoDisplay as error: print(error)\n"
    )
    done = clean(code, HOME=os.devnull)
    first, second = done.stdout.splitlines()
    assert "no display is named: set DISPLAY" in first
    assert "no X server listens on display :4711" in second
