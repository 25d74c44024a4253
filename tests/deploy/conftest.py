from __future__ import annotations

import pytest

from tests.deploy.kubernetes import Helm, find_helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    return find_helm()
