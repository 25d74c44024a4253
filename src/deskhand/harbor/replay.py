"""An agent without a model, which replays a task's own solution: ``harbor run --agent deskhand.harbor.replay:Replay``.

The solution is ``solution/actions.jsonl`` of the task: one batch of the hand's actions a line, as its envelope or as
the list of its actions. It shows that the task can be done, with mouse and keyboard, on the desktop it comes with.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.trial.paths import EnvironmentPaths

from deskhand.harbor.drivers.hand import HandDriver
from deskhand.harbor.session import ExistingDesktopSession
from deskhand.harbor.settings import Settings


class Replay(BaseAgent):  # type: ignore[misc]
    """Replays ``solution/actions.jsonl``.

    Args:
        display: The display's name in the sandbox (``:1``).

    Raises:
        FileNotFoundError: The task has no such solution.
        RuntimeError: A batch of it failed; says which, and why.
    """

    def __init__(self, *given: Any, display: str | None = None, **named: Any) -> None:
        self._settings = Settings.of(display=display, driver="hand", settle="quiet", settle_sec=5.0)
        super().__init__(*given, **named)
        self._session: ExistingDesktopSession | None = None

    @staticmethod
    def name() -> str:
        return "deskhand-replay"

    def version(self) -> str | None:
        return "1.0.0"

    async def setup(self, environment: BaseEnvironment) -> None:
        self._session = ExistingDesktopSession(
            settings=self._settings,
            adopt_size=True,
            environment=environment,
            agent_dir=EnvironmentPaths.agent_dir,
            user=environment.default_user,
        )
        await self._session.start()

    async def run(self, instruction: str, environment: BaseEnvironment, context: Any) -> None:
        session = self._session
        assert session is not None, "Harbor sets an agent up before it runs it"
        driver = session.desktop.driver
        assert isinstance(driver, HandDriver)
        file = Path(environment.environment_dir).parent / "solution" / "actions.jsonl"
        lines = [line for line in file.read_text().splitlines() if line.strip()]
        for number, line in enumerate(lines, 1):
            batch = json.loads(line)
            answer = await driver.batch({"actions": batch} if isinstance(batch, list) else batch)
            await session.fetch_screenshot(EnvironmentPaths.agent_dir / f"screenshot_{number}.png")
            if not answer["ok"]:
                failed = next((item for item in answer["results"] if item["status"] == "failed"), answer)
                raise RuntimeError(f"line {number} of {file.name} failed: {failed.get('error')}")
        context.metadata = {"batches": len(lines)}
