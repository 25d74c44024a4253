"""Run a model's stand-in at a display, and keep everything that came of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deskhand import LocalDisplay, Session, TraceRecorder
from deskhand.agents import RunResult
from deskhand.agents.asking import ModelRun
from deskhand.errors import DeskhandError
from tests.standins.brain import Mind
from tests.standins.server import Answer, Cut, Request, Silence, serving


@dataclass
class Ran:
    """How a run ended: its result or its error, what the terminal showed, what the server was sent, the trace."""

    result: RunResult | None
    error: DeskhandError | None
    told: list[str]
    bodies: list[Any]
    headers: list[dict[str, str]]
    events: list[dict[str, Any]]
    usage: Any

    @property
    def text(self) -> str:
        return "\n".join(self.told)

    def batches(self, kind: str) -> list[Any]:
        """The actions of that kind that the desktop was asked for."""
        asked = [event["envelope"]["actions"] for event in self.events if event["event"] == "batch"]
        every = [action for actions in asked if isinstance(actions, list) for action in actions]
        return [action for action in every if action.get("action") == kind]


def run(
    standin: Any,
    mind: Mind,
    display: str,
    directory: Path,
    *,
    faults: Mapping[int, Answer | Cut | Silence] | None = None,
    keep: int = 5,
    max_actions: int | None = None,
    max_turns: int = 100,
    session: Mapping[str, Any] | None = None,
    **more: Any,
) -> Ran:
    """``faults`` are what the server answers to the requests of these numbers instead; ``session`` are its options."""
    told: list[str] = []
    served = standin(mind)

    def answers(request: Request) -> Answer | Cut | Silence:
        fault = (faults or {}).get(request.number)
        answer: Answer | Cut | Silence = served(request) if fault is None else fault
        return answer

    async def go(url: str) -> tuple[RunResult | None, DeskhandError | None, Any]:
        model = standin.model(url, keep)
        with TraceRecorder(directory, goal="the goal", facts={"model": model.name}) as trace:
            asking = None
            try:
                async with Session(LocalDisplay(display), max_actions, trace, **(session or {})) as opened:
                    asking = ModelRun("the goal", model, opened, progress=told.append, **more)
                    result = await asking.run(max_turns=max_turns)
                    trace.finish("done" if result.ok else "failed", result.text)
                    return result, None, asking.usage
            except DeskhandError as error:
                return None, error, asking and asking.usage
            finally:
                await model.aclose()

    with serving(answers) as server:
        result, error, usage = asyncio.run(asyncio.wait_for(go(server.url), 60))
        requests = server.requests
    lines = (directory / "trace.jsonl").read_text("utf-8").splitlines()
    bodies, headers = [request.body for request in requests], [request.headers for request in requests]
    return Ran(result, error, told, bodies, headers, [json.loads(line) for line in lines], usage)
