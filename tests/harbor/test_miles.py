"""What Miles' Harbor example takes of us: the binding, the variables, and the check before anything is scored."""

from __future__ import annotations

from typing import Any

import pytest

from deskhand.harbor import miles
from deskhand.harbor.settings import BadSetting


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("HARBOR_"):
            monkeypatch.delenv(name)


def kwargs(**sampling: Any) -> dict[str, Any]:
    return miles.HARNESS_BINDING.kwargs("http://router/session/1/v1", "dummy", sampling, "openai/model", 32768)


def test_binding() -> None:
    assert kwargs(temperature=1, top_p=0.9, max_tokens=512) == {
        "api_base": "http://router/session/1/v1",
        "llm_kwargs": {"api_key": "dummy"},
        "llm_call_kwargs": {"temperature": 1, "top_p": 0.9, "max_tokens": 512},
        "enable_images": True,
        "temperature": 1.0,
    }
    assert miles.HARNESS_BINDING.model_name("openai/model") == "openai/model"
    assert miles.HARNESS_BINDING.env("http://router", "dummy")["OPENAI_API_KEY"] == "dummy"


def test_binding_takes_turns_and_size_from_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_AGENT_MAX_ITERATIONS", "30")
    monkeypatch.setenv("HARBOR_CUA_DESKTOP", "existing")
    monkeypatch.setenv("HARBOR_CUA_DESKTOP_SIZE", "1280x800")
    made = kwargs()
    assert made["max_turns"] == 30
    assert (made["desktop_width"], made["desktop_height"]) == (1280, 800)
    assert "max_seq_len" not in made


def test_env_vars_are_those_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOR_CUA_DESKTOP", "existing")
    monkeypatch.setenv("HARBOR_CUA_SETTLE", "")
    monkeypatch.setenv("HARBOR_CUA_OF_ANOTHER_PATCH", "1")
    monkeypatch.setenv("HARBOR_ENV_TYPE", "e2b")
    assert miles.env_vars() == {"HARBOR_CUA_DESKTOP": "existing", "HARBOR_CUA_OF_ANOTHER_PATCH": "1"}


def test_prepare_does_nothing_where_nothing_is_set() -> None:
    assert miles.prepare() is False


@pytest.mark.parametrize(
    ("variables", "linear", "says"),
    [
        ({"HARBOR_CUA_DESKTOP": "mine"}, False, "HARBOR_CUA_DESKTOP='mine'"),
        ({"HARBOR_CUA_DESKTOP": "existing", "HARBOR_CUA_SETTLE": "soon"}, False, "HARBOR_CUA_SETTLE='soon'"),
        ({"HARBOR_AGENT_MAX_ITERATIONS": "9" * 5000}, False, "HARBOR_AGENT_MAX_ITERATIONS='9"),
        ({"HARBOR_AGENT_MAX_ITERATIONS": "many"}, False, "HARBOR_AGENT_MAX_ITERATIONS='many'"),
        ({"HARBOR_CUA_DESKTOP": "existing", "HARBOR_MAX_SEQ_LEN": "9"}, False, "HARBOR_MAX_SEQ_LEN"),
        ({"HARBOR_CUA_DESKTOP": "existing", "HARBOR_CUA_KEEP_SCREENSHOTS": "2"}, True, "only grows"),
    ],
)
def test_prepare_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], linear: bool, says: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=says):
        miles.prepare(linear_history=linear)
