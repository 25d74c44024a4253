"""The examples of ``docs/how-to/fleet.md`` are run as they stand, and the commands it names are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import deskhand, environment

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "fleet.md").read_text("utf-8")
CODES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ deskhand (fleet \w+)((?: --\w+ \S+)*)", PAGE, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_first_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODES[0]],
        env=environment(None),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"True [1-9]\d+\n\[\]\n", done.stdout)


def test_the_example_of_addresses_makes_a_pool(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODES[1]],
        env=environment(None),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(CODES) == 2


@pytest.mark.parametrize("command", sorted({command for command, _ in COMMANDS}))
def test_a_command_has_the_options_that_are_shown(command: str) -> None:
    helped = deskhand(None, *command.split(), "--help").text
    for name, options in COMMANDS:
        if name == command:
            for option in re.findall(r"--\w+", options):
                assert option in helped, option
