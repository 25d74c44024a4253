"""Real trials on desktops of a pool: both ways in, four at once on two desktops, in the Harbor that is there."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.harbor.pooled import make_pooled_task
from tests.harbor.trials import Job, needs_sandbox, run_job

pytestmark = [pytest.mark.slow, needs_sandbox]
ENVIRONMENT = ("--env", "deskhand.fleet.harbor:PoolEnvironment")


@pytest.fixture(scope="module")
def fleet() -> Iterator[str]:
    """Two desktops and a spare, as ``deskhand fleet up --isolation bwrap`` starts them; its name."""
    from deskhand.fleet.options import Options
    from deskhand.fleet.starting import end_service, start_service

    name = f"harbor-{uuid.uuid4().hex[:8]}"
    start_service(name, Options(size=2, spares=1, screen=(1024, 768), isolation="bwrap", home_size=256))
    yield name
    asyncio.run(end_service(name))


def health(name: str) -> dict[str, object]:
    from deskhand.fleet import SocketPool

    async def asked() -> dict[str, object]:
        async with SocketPool(name) as pool:
            host: dict[str, object] = (await pool.health())["hosts"][0]
            return host

    return asyncio.run(asked())


def won(job: Job, trials: int) -> None:
    assert [(trial.reward, trial.error) for trial in job.trials] == [(1.0, None)] * trials, job.output[-3000:]
    used = [(trial.place / "verifier" / "desktop.txt").read_text().split()[0] for trial in job.trials]
    assert len(set(used)) == trials, "each trial has a HOME, and so a desktop, of its own"


@pytest.mark.parametrize("way", ["import", "patch"])
def test_four_at_once_on_two_desktops(fleet: str, tmp_path: Path, way: str) -> None:
    before = health(fleet)
    job = run_job(
        tmp_path,
        *(*ENVIRONMENT, "--ek", f"pool={fleet}", "--n-attempts", "4", "--n-concurrent", "4"),
        patch=None if way == "import" else {"DRIVER": "hand", "SETTLE": "quiet"},
        task=make_pooled_task(tmp_path / "task"),
    )
    won(job, 4)
    for trial in job.trials:
        facts = trial.metadata["deskhand"]
        assert (facts["driver"], facts["size"], facts["blank"]) == ("hand", [1024, 768], False)
    after = health(fleet)
    assert after["leases"] == int(str(before["leases"])) + 4
    assert after["leased"] == 0, "each was given back"


def test_a_pool_of_harbors_own_process(tmp_path: Path) -> None:
    own = ["size=1", "spares=1", "screen=1024x768", "home_size=64"]
    options = [word for value in own for word in ("--ek", value)]
    task = make_pooled_task(tmp_path / "task")
    won(run_job(tmp_path, *ENVIRONMENT, *options, "--n-attempts", "2", "--n-concurrent", "2", task=task), 2)


def test_a_desktop_without_files_of_its_own_is_refused(tmp_path: Path) -> None:
    options = [word for value in ("size=1", "spares=0", "isolation=auto") for word in ("--ek", value)]
    (trial,) = run_job(tmp_path, *ENVIRONMENT, *options, task=make_pooled_task(tmp_path / "task")).trials
    assert trial.error is not None
    assert "start the fleet with: deskhand fleet up --isolation bwrap" in trial.error


def test_desktops_that_computerd_serves(tmp_path: Path) -> None:
    from deskhand.desktop import start_desktop, stop_desktop
    from deskhand.desktop.account import desktop_account
    from deskhand.desktop.sandbox import Isolation, enter
    from deskhand.testing import XServer
    from tests.computerd.daemons import daemon

    with ExitStack() as stack:
        listed = []
        for _ in range(2):
            made = start_desktop("openbox", (1024, 768), isolation=Isolation(size=128))
            stack.callback(stop_desktop, made.display)
            server = XServer(made.display, made.xauthority, made.processes["X server"][0], made.env)
            running = stack.enter_context(daemon(server, tmp_path))
            variables = [f"{name}={value}" for name, value in made.env.items()]
            inside = enter(made.processes["namespaces"][0], desktop_account(), network=True, directory=made.home)
            shell = [*inside, "env", "-i", *variables]
            listed.append({"url": running.url, "token_file": str(running.token_file), "shell": shell})
        file = tmp_path / "addresses.json"
        file.write_text(json.dumps(listed))
        job = run_job(
            tmp_path,
            *(*ENVIRONMENT, "--ek", f"addresses={file}", "--n-attempts", "2", "--n-concurrent", "2"),
            task=make_pooled_task(tmp_path / "task"),
        )
        won(job, 2)


@pytest.fixture
def alone(tmp_path: Path) -> Callable[[Callable[[Any], Awaitable[None]]], None]:
    """Runs ``body`` with an environment that has begun, on a desktop of this process's own pool."""
    from harbor.models.task.config import EnvironmentConfig
    from harbor.models.trial.paths import TrialPaths

    from deskhand.fleet.harbor import PoolEnvironment

    async def whole(body: Callable[[Any], Awaitable[None]]) -> None:
        task = make_pooled_task(tmp_path / "task")
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        environment = PoolEnvironment(
            environment_dir=task / "environment",
            environment_name="alone",
            session_id="alone__env",
            trial_paths=paths,
            task_env_config=EnvironmentConfig(),
            size=1,
            spares=0,
            home_size=64,
        )
        await environment.start(force_build=False)
        pool = environment.desktop._pool
        try:
            await body(environment)
        finally:
            await environment.stop(delete=True)
            await pool.aclose()

    return lambda body: asyncio.run(asyncio.wait_for(whole(body), 120))


def test_files_there_and_back(alone: Callable[..., None], tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "in").mkdir(parents=True)
    big = os.urandom(9 << 20)
    (source / "in" / "big").write_bytes(big)
    (source / "run me.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "run me.sh").chmod(0o755)

    async def body(environment: Any) -> None:
        await environment.upload_dir(source, "/there/is it")
        assert (await environment.exec("'/there/is it/run me.sh'")).stdout == "ran\n"
        await environment.upload_file(source / "run me.sh", "/elsewhere/it")
        assert (await environment.exec("./it", cwd="/elsewhere", env={"A": "1"})).return_code == 0
        await environment.exec("ln -s /etc/passwd /there/out; mkfifo /there/pipe")
        await environment.download_dir("/there", tmp_path / "back")
        assert (tmp_path / "back" / "is it" / "in" / "big").read_bytes() == big
        assert not (tmp_path / "back" / "out").exists()
        assert not (tmp_path / "back" / "pipe").exists()
        await environment.download_file("/there/is it/in/big", tmp_path / "one")
        assert (tmp_path / "one").read_bytes() == big
        with pytest.raises(RuntimeError, match="nowhere is not there"):
            await environment.download_file("/nowhere", tmp_path / "none")
        with pytest.raises(RuntimeError, match="Command timed out after 1 seconds"):
            await environment.exec("sleep 60", timeout_sec=1)
        with pytest.raises(RuntimeError, match="has one user: it can run nothing as 'daemon'"):
            await environment.exec("true", user="daemon")
        assert (await environment.exec("id -u", user="root")).stdout == (await environment.exec("id -u")).stdout

    alone(body)


def test_a_lease_that_is_lost_is_a_sandbox_that_is_lost(alone: Callable[..., None], agent: Callable[..., Any]) -> None:
    from deskhand.harbor import SandboxLost
    from tests.harbor.agents import OURS, action

    async def body(environment: Any) -> None:
        made = agent(OURS)
        await made.setup(environment)
        await made._session.execute(action(type="click", x=300, y=200))
        await environment.desktop._pool.release(environment.desktop.current)
        with pytest.raises(SandboxLost, match="discard this trial"):
            await made._session.execute(action(type="click", x=300, y=200))

    alone(body)


def test_a_begin_that_fails_is_told(alone: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    from deskhand.errors import SetupError

    monkeypatch.setattr("tests.harbor.pooled.BEGIN", "echo it went wrong >&2\nexit 4\n")

    async def body(environment: Any) -> None:
        raise AssertionError("it must not begin")

    with pytest.raises(SetupError, match=r"the task's begin\.sh failed: it went wrong"):
        alone(body)
