"""The image with Ray, as raycluster.yaml runs it: a head without desktops and a worker with them.

``DESKHAND_RAY_IMAGE`` names the image that deploy/kubernetes/kuberay/build made; podman or Docker runs it.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.deploy.kubernetes import Document, one, read
from tests.image.containers import EngineContainer, find_engine, settings

IMAGE = os.environ.get("DESKHAND_RAY_IMAGE")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IMAGE, reason="DESKHAND_RAY_IMAGE names no image")]

TOKEN = secrets.token_hex(32)
#: What KubeRay 1.7 makes of the groups, but for ports: here head and worker share a network.
STARTS = (
    "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0"
    "  --metrics-export-port=8080  --num-cpus=0 ",
    "ray start  --address=127.0.0.1:6379  --block  --dashboard-agent-listen-port=52366  --metrics-export-port=8081"
    "  --num-cpus=4  --object-store-memory=500000000  --resources='{\"desktops\":1}' ",
)
LEASE = """
import asyncio, json
from deskhand import Session
from deskhand.fleet.ray import RayPool

async def main():
    async with RayPool() as pool:
        async with pool.lease(ttl=30) as one, pool.lease(ttl=30) as two:
            outcomes = [await desk.act({"actions": [{"action": "move", "x": 9, "y": 9}], "picture": True})
                        for desk in (one, two)]
            print(json.dumps([[desk.current.display for desk in (one, two)], [outcome.ok for outcome in outcomes]]))
asyncio.run(main())
"""


class Machine(EngineContainer):
    def run(self, *words: str, timeout: float = 180.0, user: str = "root") -> str:
        return self.call("exec", "--user", user, self.name, *words, timeout=timeout).stdout

    def accounts(self) -> list[tuple[str, str]]:
        """Of every process: its account, and its state."""
        lines = self.run("ps", "-eo", "user:32=,stat=").splitlines()
        return [(line.split()[0], line.split()[1]) for line in lines]


@contextmanager
def machine(group: Document, start: str, network: str) -> Iterator[Machine]:
    """A pod of the group, as far as a container is one."""
    assert IMAGE is not None
    (container,) = group["template"]["spec"]["containers"]
    rights = container["securityContext"]["capabilities"]
    running = Machine(find_engine(), f"deskhand-ray-{secrets.token_hex(4)}")
    variables = {"KUBERAY_GEN_RAY_START_CMD": start, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
    words = ["run", "--detach", "--name", running.name, "--network", network, "--shm-size", "2g"]
    words += ["--cap-drop", *rights["drop"], *(f"--cap-add={right}" for right in rights.get("add", []))]
    words += ["--security-opt", "no-new-privileges", "--pids-limit", "8192"]
    words += [f"--env={name}={value}" for name, value in variables.items()]
    first, *rest = container["command"]
    # Here a machine allows fewer files.
    script = container["args"][0].replace("65536", "20000")
    try:
        running.call(*words, "--entrypoint", first, IMAGE, *rest, script)
        running.look()
        yield running
    finally:
        running.call("rm", "--force", "--volumes", running.name, check=False)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine]]:
    cluster = one(read("kuberay/raycluster.yaml"), "RayCluster")["spec"]
    os.environ.setdefault("DESKHAND_IMAGE", str(IMAGE))
    with settings(), machine(cluster["headGroupSpec"], STARTS[0], "none") as head:
        wait_for_health(head, 52365)
        with machine(cluster["workerGroupSpecs"][0], STARTS[1], f"container:{head.name}") as worker:
            wait_for_health(worker, 52366)
            yield head, worker


def wait_for_health(machine: Machine, port: int) -> None:
    """Until KubeRay's probe would be content (Ray 2.53 and later: /api/healthz of the dashboard's agent)."""
    deadline = time.monotonic() + 120
    code = (
        f"import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:{port}/api/healthz', timeout=5).read())"
    )
    while True:
        done = machine.call("exec", machine.name, "python", "-c", code, check=False)
        if "success" in done.stdout:
            return
        assert time.monotonic() < deadline, f"{done.stderr[-500:]} {machine.log()[-2000:]}"
        time.sleep(0.5)  # a probe is all that tells


def test_a_fleet_has_its_desktops_on_the_worker_alone(machines: tuple[Machine, Machine]) -> None:
    head, worker = machines
    before = worker.accounts()
    options = ["--ray", "auto", "--resource", "desktops", "--size", "2", "--spares", "1", "--session", "openbox"]
    told = json.loads(head.run("deskhand", "fleet", "up", *options, "--json"))
    assert {"name": "default", "machines": 1, "desktops": 3}.items() <= told.items()
    try:
        assert not any(account.startswith("desk-") for account, _state in head.accounts())
        assert {account for account, _state in worker.accounts() if account.startswith("desk-")} == {
            "desk-1",
            "desk-2",
            "desk-3",
        }
        # A client is a process on any machine of the cluster.
        displays, done = json.loads(head.run("python", "-c", LEASE).splitlines()[-1])
        assert len(set(displays)) == 2
        assert done == [True, True]
        # What runs on a desktop can not read the cluster's token. (What the engine runs there has it from the engine.)
        look = ["env", "-i", "sh", "-c", "cat /proc/[0-9]*/environ 2>/dev/null | grep -ac RAY_AUTH_TOKEN || true"]
        assert worker.run(*look, user="desk-1").strip() == "0"
        assert worker.run(*look).strip() != "0"
    finally:
        head.run("deskhand", "fleet", "down", "--ray", "auto")
    left = [(account, state) for account, state in worker.accounts() if account.startswith("desk-")]
    assert left == []
    zombies = [state for _account, state in worker.accounts() if state.startswith("Z")]
    assert len(zombies) <= len([state for _account, state in before if state.startswith("Z")])


def test_who_has_no_token_is_nobody(machines: tuple[Machine, Machine]) -> None:
    head, _worker = machines
    status = shlex.join(["deskhand", "fleet", "status", "--ray", "auto"])
    done = head.call("exec", "--env", "RAY_AUTH_TOKEN=" + "0" * 64, head.name, "sh", "-c", status, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
