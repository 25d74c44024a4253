"""Real trials: Harbor's command line, a sandbox of bubblewrap with a desktop of its own, and a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.harbor.scripted import SOLUTION, Scripted, pictures
from tests.harbor.tasks import make_task
from tests.standins.server import serving

ENVIRONMENT = "deskhand.harbor.local:BubblewrapEnvironment"
needs_sandbox = pytest.mark.skipif(
    not all(shutil.which(program) for program in ("bwrap", "nsenter", "Xvfb", "openbox", "xterm")),
    reason="real trials need bubblewrap, util-linux, xvfb, openbox and xterm",
)


@dataclass
class Trial:
    """What is left of a trial."""

    place: Path
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def reward(self) -> float | None:
        verdict = self.result["verifier_result"]
        return None if verdict is None else float(verdict["rewards"]["reward"])

    @property
    def error(self) -> str | None:
        found = self.result["exception_info"]
        return None if found is None else f"{found['exception_type']}: {found['exception_message']}"

    @property
    def metadata(self) -> dict[str, Any]:
        return dict((self.result["agent_result"] or {}).get("metadata") or {})

    @property
    def processes(self) -> list[str]:
        """The command lines that ran in the sandbox when it was judged."""
        return (self.place / "verifier" / "processes.txt").read_text().splitlines()[1:]


@dataclass
class Job:
    """A whole run of ``harbor run``."""

    trials: list[Trial]
    bodies: list[dict[str, Any]]
    output: str
    code: int

    @property
    def pictures(self) -> list[int]:
        return [pictures(body) for body in self.bodies]


def run_job(
    place: Path,
    *options: str,
    patch: dict[str, str] | None = None,
    replies: Sequence[Any] = SOLUTION,
    task: Path | None = None,
    agent: Sequence[str] | None = None,
    timeout: float = 400,
) -> Job:
    """``harbor run`` with our agent by import path, or with ``computer-1`` and the patch's variables."""
    task = task or make_task(place / "task")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HARBOR_CUA_")}
    environment |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none", "COLUMNS": "200"}
    if patch is not None:
        environment |= {f"HARBOR_CUA_{name}": value for name, value in {"DESKTOP": "existing", **patch}.items()}
        chosen = ["--agent", "computer-1", "--ak", "desktop_width=1024", "--ak", "desktop_height=768"]
    else:
        chosen = ["--agent", "deskhand.harbor:ExistingDesktop"]
    model = Scripted(replies)
    with serving(model) as server:
        chosen = [*chosen, "--model", "openai/scripted"] if agent is None else [*agent]
        if "--model" in chosen:
            chosen += ["--ak", f"api_base={server.url}"]
        command = [sys.executable, "-m", "deskhand.harbor", "run", *chosen]
        command += ["--env", ENVIRONMENT, "--path", str(task), "--jobs-dir", str(place / "jobs"), "--yes", "--quiet"]
        with tempfile.TemporaryDirectory(prefix="trials-") as sandboxes:
            os.chmod(sandboxes, 0o755)  # a sandbox's users are others than ours
            environment["TMPDIR"] = sandboxes
            ran = subprocess.run(
                [*command, *options], env=environment, capture_output=True, text=True, timeout=timeout, check=False
            )
            left = [name for name in os.listdir(sandboxes) if name.startswith("deskhand-sandbox-")]
            assert not left, f"sandboxes were left: {left}"
    found = [
        Trial(file.parent, json.loads(file.read_text())) for file in sorted((place / "jobs").glob("*/*/result.json"))
    ]
    return Job(found, model.requests, ran.stdout + ran.stderr, ran.returncode)
