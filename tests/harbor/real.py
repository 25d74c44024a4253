"""An agent and its loop in this process, on a real sandbox with a desktop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

from deskhand.harbor.local import BubblewrapEnvironment
from tests.harbor.tasks import DESKTOP


@asynccontextmanager
async def real_sandbox(
    place: Path, desktop: str = DESKTOP, size: str = "1024x768", options: str = ""
) -> AsyncIterator[BubblewrapEnvironment]:
    """A sandbox whose entry point starts that desktop; ended afterwards."""
    task = place / "environment"
    task.mkdir(exist_ok=True)
    (task / "entrypoint.sh").write_text(desktop.replace("@SIZE@", size).replace("@OPTIONS@", options))
    paths = TrialPaths(place / "trial")
    paths.mkdir()
    environment = BubblewrapEnvironment(
        environment_dir=task,
        environment_name="real",
        session_id="real__env",
        trial_paths=paths,
        task_env_config=EnvironmentConfig(),
    )
    await environment.start(force_build=False)
    try:
        yield environment
    finally:
        await environment.stop(delete=True)


class Counted:
    """Counts the commands that a sandbox runs, and can make each slower."""

    def __init__(self, environment: Any, delay: float = 0.0) -> None:
        self.commands: list[str] = []
        run = environment.exec

        async def counted(command: str, **named: Any) -> Any:
            self.commands.append(command)
            await asyncio.sleep(delay)
            return await run(command=command, **named)

        environment.exec = counted


def on_real(coroutine: Callable[[], Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine(), 120))
