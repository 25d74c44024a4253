"""An agent that replays a script: JSON lines of batch envelopes and a final check.

::

    {"goal": "Write a note"}                                        the goal this script reaches
    {"say": "What is there?", "apps": true}                         list the applications
    {"say": "Open it.", "actions": [{"action": "launch", ...}]}     a batch; any other field of the envelope may follow
    {"check": {"file": "note.txt", "equals": "Hello\\n"}}            a file below the desktop user's home

A script stops at the first batch that fails: it can not try another way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from deskhand.agents.loop import Check, Done, ListApps, Observation, Turn
from deskhand.errors import DeskhandError, SetupError
from deskhand.hand.envelope import parse_batch

DEMO = Path(__file__).with_name("demo.jsonl")


class Script:
    """A script read from a file.

    Raises:
        SetupError: The file can not be read, or a line is not as it should be; names the line.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"scripted:{path.name}"
        self.goal = ""
        self._turns: list[Turn | ListApps] = []
        self._checks: list[dict[str, str]] = []
        self._at = 0
        try:
            lines = path.read_text("utf-8").split("\n")  # JSON strings may hold the other line separators
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"the script {path} can not be read: {error}") from None
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    self._add(json.loads(line))
                except (ValueError, RecursionError, DeskhandError) as error:
                    raise SetupError(f"line {number} of the script {path}: {error}") from None
        if not self._turns:
            raise SetupError(f"the script {path} holds no batch")

    def _add(self, line: Any) -> None:
        if not isinstance(line, dict):
            raise ValueError('it must be an object, such as {"actions": [...]}')
        say = line.get("say", "")
        if not isinstance(say, str):
            raise ValueError("say must be a string")
        if "goal" in line:
            self.goal = _only_string(line, "goal").strip()
        elif "check" in line:
            _known(line, "check")
            self._checks.append(_parse_check(line["check"]))
        elif "apps" in line:
            _known(line, "apps", "say")
            if line["apps"] is not True:
                raise ValueError("apps must be true")
            self._turns.append(ListApps(say))
        else:
            batch = {name: value for name, value in line.items() if name != "say"}
            parse_batch(batch)
            self._turns.append(Turn(batch, say))

    async def next(self, seen: Observation) -> Turn | ListApps | Done:
        if seen.error is not None:
            return Done(f"The script stops: {seen.error}", success=False)
        if self._at == len(self._turns):
            return Done("Done.")
        self._at += 1
        return self._turns[self._at - 1]

    def checks(self, home: Path) -> list[Callable[[], Check]]:
        """The script's checks, with its paths below ``home``."""
        return [lambda check=check: _check_file(home, check) for check in self._checks]  # type: ignore[misc]


def _known(line: dict[str, Any], *names: str) -> None:
    others = [name for name in line if name not in names]
    if others:
        raise ValueError(f"{names[0]} and {others[0]!r} do not go together: give each a line of its own")


def _only_string(line: dict[str, Any], name: str) -> str:
    _known(line, name)
    if not isinstance(line[name], str):
        raise ValueError(f"{name} must be a string")
    return str(line[name])


def _parse_check(check: Any) -> dict[str, str]:
    if (
        not isinstance(check, dict)
        or set(check) != {"file", "equals"}
        or not all(isinstance(value, str) for value in check.values())
    ):
        raise ValueError('a check is {"file": PATH, "equals": TEXT}')
    path = PurePosixPath(check["file"])
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"the file of a check is a path below the user's home, not {check['file']!r}")
    return check


def _check_file(home: Path, check: dict[str, str]) -> Check:
    path = home / check["file"]
    try:
        found = repr(path.read_text("utf-8"))
    except OSError as error:
        found = error.strerror or str(error)
    except UnicodeDecodeError:
        found = "bytes that are not UTF-8"
    expected = repr(check["equals"])
    return Check(f"the file {check['file']} holds what was asked for", expected, found, found == expected)
