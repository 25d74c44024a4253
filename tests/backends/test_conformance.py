"""The conformance suite on every backend of ours; Guest on real isolation: bubblewrap, and ssh to a local sshd."""

from __future__ import annotations

import pytest

from deskhand import LocalDisplay
from deskhand.testing.conformance import DesktopConformance, MakeBackend


class TestLocalDisplay(DesktopConformance):
    @pytest.fixture
    def make_backend(self) -> MakeBackend:
        return lambda server: LocalDisplay(server.display, server.xauthority)
