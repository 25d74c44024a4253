"""The questions that can be asked, by name."""

from __future__ import annotations

from collections.abc import Callable

from bench import applications, click, daemon, growth, launch, one_file, resident, screenshot, step, text
from bench.sides import Answer

#: Each gets the number of rounds: how often each side is measured, or a share of it that its docstring tells.
QUESTIONS: dict[str, Callable[[int], Answer]] = {
    "screenshot": screenshot.ask,
    "click": click.ask_click,
    "key": click.ask_key,
    "apps": applications.ask,
    "one-file": one_file.ask,
    "resident": resident.ask,
    "daemon": daemon.ask,
    "growth": growth.ask,
    "launch": launch.ask,
    "text": text.ask,
    "step": step.ask,
    "step-stock": step.ask_stock,
}
