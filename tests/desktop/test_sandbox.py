"""A desktop in a sandbox: made, ended, and what ends with it. What it is apart from is in tests/fleet."""

from __future__ import annotations

import os
import shutil
import signal
from typing import Any

import pytest

from deskhand.desktop import start_desktop, stop_desktop
from deskhand.desktop.processes import processes_of
from deskhand.desktop.sandbox import Isolation
from deskhand.errors import SetupError
from deskhand.hand.state import read_desktops
from deskhand.testing.batches import until

needs_bubblewrap = pytest.mark.skipif(
    not all(shutil.which(program) for program in ("bwrap", "nsenter", "unshare", "setpriv")),
    reason="it needs bubblewrap and util-linux",
)


def state_of(desktop: str) -> dict[str, Any]:
    return next((facts for facts in read_desktops() if facts["id"] == desktop), {"state": "gone"})


@needs_bubblewrap
@pytest.mark.slow
@pytest.mark.parametrize("part", ["sandbox", "namespaces"])
def test_a_desktop_ends_with_its_sandbox(part: str) -> None:
    made = start_desktop("openbox", isolation=Isolation(size=32))
    try:
        os.kill(made.processes[part][0], signal.SIGKILL)
        until(lambda: state_of(made.id)["state"] == "dead", "it has ended")
        assert "sandbox" in state_of(made.id)["reason"]
        until(lambda: not processes_of(made.id), "its processes have too")
    finally:
        stop_desktop(made.display)
    assert not os.path.exists(made.directory)


@needs_bubblewrap
@pytest.mark.slow
def test_it_leaves_nothing() -> None:
    made = start_desktop("openbox", isolation=Isolation(size=32, home="directory"))
    assert os.path.isdir(made.home)
    stop_desktop(made.display)
    assert not os.path.exists(made.directory)
    assert not processes_of(made.id)


def test_it_is_not_served() -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("it needs bubblewrap")
    with pytest.raises(SetupError, match="is not served by computerd"):
        start_desktop("openbox", isolation=Isolation(), serve="127.0.0.1:0")
