"""Who decides the next turn of a run, and the loop that asks: a script now, a model through the same protocol."""

from deskhand.agents.loop import Agent, Check, Done, ListApps, Observation, RunResult, Turn, run_goal
from deskhand.agents.scripted import Script

__all__ = ["Agent", "Check", "Done", "ListApps", "Observation", "RunResult", "Script", "Turn", "run_goal"]
