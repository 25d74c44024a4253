"""docs/how-to/harbor.md names every setting and variable, with the defaults that they have."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from deskhand.harbor.settings import VARIABLES, Settings

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "harbor.md").read_text()


def rows(prefix: str) -> dict[str, list[str]]:
    found = [re.split(r"\s*\|\s*", line.strip("| ")) for line in PAGE.splitlines() if line.startswith(f"| `{prefix}")]
    return {row[0].strip("`"): row[1:] for row in found}


def test_every_variable_has_a_row_with_default_range_and_example() -> None:
    table = rows("HARBOR_CUA_")
    assert list(table) == list(VARIABLES)
    assert all(len(row) == 3 and all(row) for row in table.values())


def test_every_setting_has_a_row() -> None:
    named = {field.name for field in dataclasses.fields(Settings)} - {"blocked_keys", "desktop_size"}
    assert named <= set(rows(""))


def test_defaults_are_those_of_the_code() -> None:
    patch = Settings.from_environment({"HARBOR_CUA_DESKTOP": "existing"})
    assert patch is not None
    table = rows("HARBOR_CUA_")
    assert table["HARBOR_CUA_DRIVER"][0] == f"`{patch.driver}`"
    assert table["HARBOR_CUA_SETTLE"][0] == f"`{patch.settle}`"
    assert table["HARBOR_CUA_SETTLE_SEC"][0] == f"`{patch.settle_sec}`"
    assert table["HARBOR_CUA_DISPLAY"][0] == f"`{patch.display}`"
    ours = Settings.of()
    assert rows("settle")["settle"][0] == f"`{ours.settle}`"
    assert rows("display")["display"][0] == f"`{ours.display}`"


@pytest.mark.parametrize("name", [name for name in VARIABLES if name not in ("HARBOR_CUA_DESKTOP",)])
def test_examples_are_taken(name: str) -> None:
    example = rows("HARBOR_CUA_")[name][2].strip("`")
    assert Settings.from_environment({"HARBOR_CUA_DESKTOP": "existing", name: example}) is not None
