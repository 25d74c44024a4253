"""The tree of errors, and the names the package gives out."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import deskhand
from deskhand import errors
from deskhand.hand import errors as hand_errors


def drawn(text: str) -> dict[str, str]:
    """The tree that a docstring draws: each class and its base."""
    tree: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        found = re.match(r"[\s│├└─]*([A-Z]\w+)", line)
        if not found or not (line.strip() == "DeskhandError" or "──" in line):
            continue
        depth, name = found.start(1), found[1]
        while above and above[-1][0] >= depth:
            above.pop()
        tree[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    return tree


@pytest.mark.parametrize("module", [errors, hand_errors])
def test_the_tree_is_as_drawn(module: object) -> None:
    tree = drawn(inspect.getdoc(module) or "")
    classes = {name: value for name, value in vars(module).items() if inspect.isclass(value) and name[0].isupper()}
    exceptions = {name: value for name, value in classes.items() if issubclass(value, Exception)}
    assert tree == {name: value.__bases__[0].__name__ for name, value in exceptions.items()}


def test_every_error_is_given_out() -> None:
    assert set(errors.__all__) <= set(deskhand.__all__)
    assert {name for name in vars(errors) if inspect.isclass(vars(errors)[name])} == set(errors.__all__)


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a"])
def test_an_error_is_one_line(text: str) -> None:
    assert len(str(errors.SetupError(text)).split("\n")) == 1


def test_exported_members() -> None:
    for name in deskhand.__all__:
        value = getattr(deskhand, name)
        assert value.__name__.rpartition(".")[2] == name
        assert value.__doc__, name
        assert name in dir(deskhand)
    assert deskhand.__all__ == sorted(deskhand.__all__, key=lambda name: (name.islower(), not name.isupper(), name))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        deskhand.nothing  # noqa: B018


def test_the_import_needs_no_display_and_brings_nothing_along() -> None:
    """Whatever the environment lacks, and before any name is used."""
    code = (
        "import sys; before = set(sys.modules); import deskhand; print(*sorted(set(sys.modules) - before));"
        "from deskhand import Session, LocalDisplay, BatchRefused; print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True, check=True)
    new, fine = done.stdout.splitlines()
    assert fine == "fine"
    assert not {"asyncio", "typer", "socket", "json", "deskhand.hand", "deskhand.session"} & set(new.split())
