"""Harbor's tests: in an environment that has it. ``./test`` runs them with Harbor 0.20.0 and with the newest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else litellm looks for the network, for seconds

#: These do without Harbor.
_WITHOUT_HARBOR = ("test_settings.py", "test_bubblewrap.py", "test_miles.py")
collect_ignore: list[str] = []
try:
    import harbor

    HARBOR = harbor.__file__ is not None
except ImportError:
    HARBOR = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if HARBOR:
        return
    why = pytest.mark.skip(reason="Harbor is not installed here: it needs Python 3.12 (.setup/harbor-newest has it)")
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in _WITHOUT_HARBOR:
            item.add_marker(why)


@pytest.fixture
def sandbox(tmp_path: Path) -> Any:
    """A pretended sandbox of 1024x900 pixels."""
    from tests.harbor.fakes import FakeSandbox

    logs = tmp_path / "agent"
    logs.mkdir()
    return FakeSandbox(logs)


@pytest.fixture
def patched() -> Iterator[Callable[..., None]]:
    """Applies the environment's patch with these variables (``SETTLE="quiet"``), and puts Harbor back afterwards."""
    from tests.harbor.patches import applying

    with applying() as apply:
        yield apply


@pytest.fixture
def agent(tmp_path: Path) -> Callable[..., Any]:
    """Builds an agent through Harbor's own ``AgentFactory``: ``computer-1``, or ours by import path."""
    from tests.harbor.agents import build

    return lambda name="computer-1", **kwargs: build(tmp_path, name, **kwargs)
