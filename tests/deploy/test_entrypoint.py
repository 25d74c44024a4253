"""What the image's entrypoint makes of its settings."""

from __future__ import annotations

import importlib.util
import json
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from deskhand.desktop.sessions import SESSIONS
from deskhand.errors import SetupError
from tests.deploy.kubernetes import CHART, ROOT


@pytest.fixture(scope="module")
def entrypoint(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    # A copy: Python would keep what it makes of it beside it.
    copy = tmp_path_factory.mktemp("entrypoint") / "entrypoint.py"
    copy.write_text((ROOT / "deploy/computer/entrypoint").read_text())
    loader = SourceFileLoader("entrypoint", str(copy))
    specification = importlib.util.spec_from_loader("entrypoint", loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module


def test_the_session_is_one_that_there_is(entrypoint: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = [SESSIONS[name].command[0] for name in SESSIONS if name != "gnome"]
    monkeypatch.setattr("shutil.which", lambda program: f"/usr/bin/{program}" if program in installed else None)
    for name in SESSIONS:
        if name != "gnome":
            assert entrypoint.session(name) == name
    with pytest.raises(SetupError, match="DESKHAND_SESSION is 'gnome', and gnome-shell is not in this image"):
        entrypoint.session("gnome")
    with pytest.raises(SetupError, match="DESKHAND_SESSION is 'kde': choose one of xfce, openbox"):
        entrypoint.session("kde")


def test_the_chart_offers_the_sessions_that_there_are() -> None:
    schema = json.loads(Path(CHART / "values.schema.json").read_text())
    assert set(schema["properties"]["session"]["enum"]) == set(SESSIONS)


@pytest.mark.parametrize("text", ["0", "3601", "soon", ""])
def test_a_time_that_is_none_is_refused(entrypoint: ModuleType, text: str) -> None:
    with pytest.raises(SetupError, match="DESKHAND_START_WITHIN"):
        entrypoint.seconds(text)
