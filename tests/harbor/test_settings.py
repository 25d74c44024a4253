"""Settings, without Harbor."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.harbor.settings import VARIABLES, BadSetting, Settings


def test_defaults_of_the_agent() -> None:
    assert Settings.of() == Settings(":1", None, None, "quiet", 2.0)


def test_defaults_of_the_patch() -> None:
    settings = Settings.from_environment({"HARBOR_CUA_DESKTOP": "existing"})
    assert settings == Settings(driver="tools", settle="fixed", blocked_keys=True)


@pytest.mark.parametrize("value", [None, "", " "])
def test_unset_is_none(value: str | None) -> None:
    environment = {"HARBOR_CUA_SETTLE": "nonsense"}
    if value is not None:
        environment["HARBOR_CUA_DESKTOP"] = value
    assert Settings.from_environment(environment) is None


def test_every_variable_is_read() -> None:
    values = {
        "HARBOR_CUA_DESKTOP": "existing",
        "HARBOR_CUA_DRIVER": "hand",
        "HARBOR_CUA_DISPLAY": ":9",
        "HARBOR_CUA_XAUTHORITY": "/run/cookie",
        "HARBOR_CUA_SETTLE": "quiet",
        "HARBOR_CUA_SETTLE_SEC": "1.5",
        "HARBOR_CUA_SCREENSHOT_SIZE": "640x360",
        "HARBOR_CUA_KEEP_SCREENSHOTS": "3",
        "HARBOR_CUA_COORDINATE_SPACE": "normalized_0_999",
        "HARBOR_CUA_DESKTOP_SIZE": "1920x1080",
    }
    assert set(values) == set(VARIABLES)
    assert Settings.from_environment(values) == Settings(
        ":9", "/run/cookie", "hand", "quiet", 1.5, (640, 360), 3, "normalized_0_999", (1920, 1080), True
    )


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(BadSetting, match="there is no setting setle"):
        Settings.of(setle="quiet")


@pytest.mark.parametrize(
    "given",
    [
        {"settle_sec": 10**400},
        {"settle_sec": "1_0"},
        {"settle_sec": "\u0663"},
        {"settle_sec": "9" * 5000},
        {"keep_screenshots": 10**5000},
        {"screenshot_size": "9" * 5000},
    ],
    ids=range(6),
)
def test_a_value_is_refused_in_a_short_line(given: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match=next(iter(given))) as caught:
        Settings.of(**given)
    assert len(str(caught.value)) < 250


@given(st.dictionaries(st.sampled_from(VARIABLES), st.text(max_size=12)))
def test_any_value_is_taken_or_refused_in_one_line(values: dict[str, str]) -> None:
    said = "HARBOR_CUA_"
    try:
        settings = Settings.from_environment({"HARBOR_CUA_DESKTOP": "existing", **values})
        assert settings is None or 0 <= settings.settle_sec <= 60
    except BadSetting as error:
        said = str(error)
    assert "HARBOR_CUA_" in said
    assert "\n" not in said


def test_without_harbor_the_extra_is_named() -> None:
    code = "import sys; sys.modules['harbor'] = None\nimport deskhand.harbor\ndeskhand.harbor.ExistingDesktop"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'deskhand[harbor]'" in ran.stderr.splitlines()[-1]
