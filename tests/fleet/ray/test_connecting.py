"""Connecting to a cluster: many at once, as the trials of one process do, and those that are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from deskhand.errors import NoDisplay, SetupError  # noqa: E402
from deskhand.fleet.ray.connecting import connect  # noqa: E402
from tests.commands import deskhand, environment  # noqa: E402

SOURCE = str(Path(__file__).resolve().parents[3] / "src")
CODE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from deskhand.fleet.ray.connecting import connect
with ThreadPoolExecutor(8) as threads:
    list(threads.map(connect, [sys.argv[1]] * 8))
print("connected")
"""
#: A cluster that asks for the token which its environment has; it ends with its standard input.
_GUARDED = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={
    "num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False})
try:
    print("at", cluster.address, flush=True)
    sys.stdin.read()
finally:
    cluster.shutdown()
"""
_TOKEN = "0123456789abcdef" * 4
#: How many times Ray asks.
_TRIES = "RAY_gcs_server_port_wait_time_s"
#: Says that it has another version of Ray, and is told of it, twice.
_OTHER = """
import sys
import ray
from deskhand.fleet.ray.connecting import connect
ray.__version__ = "0.0.1"
for _ in range(2):
    try:
        connect(sys.argv[1])
    except Exception as error:
        print(type(error).__name__, error)
"""


def ran(code: str, address: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, address],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """The address of a cluster whose token is ``_TOKEN``."""
    env = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _TOKEN, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _GUARDED], env=env, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("at "):
                yield line.split()[1]
                break
        else:
            raise AssertionError("the cluster did not come up")
        process.communicate(timeout=60)


@pytest.mark.slow
def test_they_connect_once(cluster: Any) -> None:
    done = ran(CODE, cluster.address)
    assert done.stdout == "connected\n", done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("token", ["f" * 64, None])
def test_who_has_not_the_clusters_token_is_told_so(guarded: str, token: str | None) -> None:
    env = environment(None)
    env |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token} if token is not None else {"RAY_AUTH_MODE": "disabled"}
    told = deskhand(env, "fleet", "status", "--ray", guarded, verbose=True)  # Ray itself prints a line before ours
    assert told.status == 1
    *_, line = told.error.splitlines()
    assert line.startswith(f"deskhand: the Ray cluster at {guarded} does not take this process's token, or it has none")
    assert told.output == b""
    right = deskhand({**env, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": _TOKEN}, "fleet", "status", "--ray", guarded)
    assert "there is no 'default/manager' on this Ray cluster" in right.error


@pytest.mark.slow
def test_who_has_another_version_is_told_so(cluster: Any) -> None:
    done = ran(_OTHER, cluster.address)
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.startswith(f"SetupError the Ray cluster at {cluster.address} has another version of Ray or of Python")
    assert "Ray: 0.0.1" in first


class Refusing:
    """In place of ``ray.init``: fails as that does when the cluster has answered so."""

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self.tries: list[str | None] = []

    def __call__(self, **_: Any) -> None:
        self.tries.append(os.environ.get(_TRIES))
        try:
            raise RuntimeError(f"Failed to connect to GCS. Last connection error: {self._answer}")
        except RuntimeError as error:
            raise ConnectionError("Failed to connect to Ray cluster at there") from error


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)


@pytest.mark.usefixtures("alone")
def test_a_refusal_is_not_asked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing("ray.exceptions.RpcError: InvalidAuthToken: Authentication token is missing or incorrect")
    monkeypatch.setattr(ray, "init", refusing)
    monkeypatch.setenv(_TRIES, "20")
    with pytest.raises(SetupError, match="does not take this process's token") as caught:
        connect("ray-address")
    assert not isinstance(caught.value, NoDisplay), "who waits for a cluster must not wait for this"
    assert refusing.tries == ["1"]
    assert os.environ[_TRIES] == "20"


@pytest.mark.usefixtures("alone")
def test_a_cluster_that_does_not_answer_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Refusing("ray.exceptions.RpcError: failed to connect to all addresses")
    monkeypatch.setattr(ray, "init", silent)
    monkeypatch.setattr("deskhand.fleet.ray.connecting._STARTING", 0.1)
    monkeypatch.delenv(_TRIES, raising=False)
    with pytest.raises(NoDisplay, match=r"no Ray cluster can be reached at ray-address \(Failed to connect"):
        connect("ray-address")
    assert len(silent.tries) > 1
    assert _TRIES not in os.environ


@pytest.mark.usefixtures("alone")
def test_where_there_is_no_cluster_it_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def none(**_: Any) -> None:
        tries.append(1)
        raise ConnectionError("Could not find any running Ray instance")

    monkeypatch.setattr(ray, "init", none)
    with pytest.raises(NoDisplay, match="start one with: ray start --head"):
        connect("auto")
    assert tries == [1]
