"""Rollouts as Miles' Harbor example runs them: in the worker's own process, one trial a sample, the verdict as reward.

Miles is not on the package index. The two modules of it that the example's files import are pretended, and the agent
function is one like the example's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harbor.scripted import SOLUTION, Scripted
from tests.harbor.tasks import make_task
from tests.harbor.trials import needs_sandbox
from tests.standins.server import serving

STUB = {
    "miles/__init__.py": "",
    "miles/rollout/__init__.py": "",
    "miles/rollout/agentic/__init__.py": "",
    "miles/rollout/agentic/credentials.py": """
PROVIDER_CREDENTIALS = {}
def provision_provider(env, spec, arg_path=""): raise AssertionError("no provider is used")
def resolve_provider_api_key(*names): raise AssertionError("no provider is used")
""",
    "miles/rollout/agentic/session.py": """
def resolve_session_url(base_url, external_host=None): return base_url
""",
}
WORKER = '''
import asyncio, json, os, sys
from pathlib import Path
from miles.rollout.agentic.credentials import PROVIDER_CREDENTIALS
from miles.rollout.agentic.session import resolve_session_url
from deskhand.harbor import miles

async def run(base_url, instance_id, round_number):
    """The agent function: what is wrong with the settings raises, what is wrong with an episode scores nothing."""
    miles.prepare()
    from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
    from harbor.trial.trial import Trial
    url = resolve_session_url(base_url)
    model = "openai/" + os.environ["AGENT_MODEL_NAME"]
    kwargs = miles.HARNESS_BINDING.kwargs(url, "dummy", {"temperature": 1.0}, model, None)
    kwargs["model_info"] = {"max_input_tokens": 32768, "max_output_tokens": 8192}
    config = TrialConfig(
        task=TaskConfig(path=Path(os.environ["HARBOR_TASKS_DIR"]) / instance_id),
        trials_dir=Path(os.environ["HARBOR_TRIALS_DIR"]) / str(round_number),
        agent=AgentConfig(name="computer-1", model_name=miles.HARNESS_BINDING.model_name(model), kwargs=kwargs,
                          env=miles.HARNESS_BINDING.env(url, "dummy")),
        environment=EnvironmentConfig(import_path="deskhand.harbor.local:BubblewrapEnvironment"),
    )
    try:
        result = await (await Trial.create(config)).run()
    except Exception as error:
        return {"reward": 0.0, "exit_status": type(error).__name__}
    if result.exception_info is not None:
        return {"reward": 0.0, "exit_status": result.exception_info.exception_type}
    return {"reward": result.verifier_result.rewards["reward"], "exit_status": "Submitted",
            "driver": result.agent_result.metadata["deskhand"]["driver"]}

async def main():
    for number in range(int(sys.argv[2])):
        print(json.dumps(await run(sys.argv[1], "note", number)), flush=True)

asyncio.run(main())
'''


def work(place: Path, url: str, rounds: int, **variables: str) -> subprocess.CompletedProcess[str]:
    import os

    for name, text in {**STUB, "worker.py": WORKER}.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    make_task(place / "tasks" / "note")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HARBOR_")}
    environment |= {
        "PYTHONPATH": str(place),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "HARBOR_TASKS_DIR": str(place / "tasks"),
        "HARBOR_TRIALS_DIR": str(place / "trials"),
        "AGENT_MODEL_NAME": "model",
        "HARBOR_CUA_DESKTOP": "existing",
        "HARBOR_CUA_DESKTOP_SIZE": "1024x768",
        **variables,
    }
    command = [sys.executable, str(place / "worker.py"), url, str(rounds)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)


@pytest.mark.slow
@needs_sandbox
def test_three_rounds(tmp_path: Path) -> None:
    import json

    with serving(Scripted(SOLUTION)) as server:
        ran = work(tmp_path, server.url, 3, HARBOR_CUA_DRIVER="hand", HARBOR_CUA_SETTLE="quiet")
    rounds = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert rounds == [{"reward": 1.0, "exit_status": "Submitted", "driver": "hand"}] * 3, ran.stderr[-2000:]


@pytest.mark.slow
def test_a_bad_setting_stops_the_run_and_scores_nothing(tmp_path: Path) -> None:
    ran = work(tmp_path, "http://127.0.0.1:9", 3, HARBOR_CUA_SETTLE="soon")
    assert ran.returncode != 0
    assert "reward" not in ran.stdout
    assert "HARBOR_CUA_SETTLE='soon'" in ran.stderr.splitlines()[-1]
