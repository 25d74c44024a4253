"""Agents as Harbor makes them, and their loops on a pretended sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harbor.agents.factory import AgentFactory
from harbor.models.agent.context import AgentContext
from harbor.models.trial.config import AgentConfig

from tests.standins.server import Server, serving

OURS = "deskhand.harbor:ExistingDesktop"
MODEL = "openai/scripted"


def build(place: Path, name: str = "computer-1", model: str = MODEL, **kwargs: Any) -> Any:
    """An agent, through ``AgentFactory``."""
    logs = place / "logs"
    logs.mkdir(exist_ok=True)
    kwargs = {"api_base": "http://127.0.0.1:9", "llm_kwargs": {"api_key": "none"}, **kwargs}
    config = AgentConfig(name=name, model_name=model, kwargs=kwargs)
    return AgentFactory.create_agent_from_config(config, logs_dir=logs)


def started(agent: Any, sandbox: Any) -> Any:
    """The agent's session, started on that sandbox."""
    asyncio.run(agent.setup(sandbox))
    return agent._session


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


async def _whole(agent: Any, sandbox: Any, context: AgentContext) -> None:
    await agent.setup(sandbox)
    await agent.run("Do it.", sandbox, context)


def whole_run(
    make: Callable[..., Any], sandbox: Any, replies: Sequence[Any], name: str = "computer-1", **kwargs: Any
) -> tuple[Any, Server, AgentContext]:
    """A whole run of the agent, whose model says ``replies`` (actions, or texts as they are)."""
    from tests.harbor.scripted import Scripted

    context = AgentContext()
    with serving(Scripted(replies)) as server:
        agent = make(name, api_base=server.url, **kwargs)
        asyncio.run(_whole(agent, sandbox, context))
    return agent, server, context


def action(**fields: Any) -> Any:
    """One of Harbor's actions."""
    from harbor.agents.computer_1.runtime import ComputerAction

    return ComputerAction(**fields)
