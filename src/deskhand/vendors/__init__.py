"""Adapters for the vendors' own computer tools: a model's calls to our batches, and the outcomes to its results.

::

    adapter = load("anthropic_toolset")((1280, 800))
    await first_look(adapter, session)
    blocks, finish = await run_turn(adapter, message, session)

Each is imported when it is first asked for; none needs the vendor's SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.vendors.base import Adapter

#: The adapters by name: module and class.
ADAPTERS = {
    "anthropic": ("anthropic", "Tool"),
    "anthropic_toolset": ("anthropic", "Toolset"),
    "openai": ("openai", "Computer"),
    "openai_preview": ("openai", "Preview"),
    "gemini": ("gemini", "Gemini"),
    "qwen": ("qwen", "Qwen"),
    "ui_tars": ("ui_tars", "UiTars"),
    "pyautogui": ("pyautogui", "PyAutoGui"),
    "osworld": ("osworld", "OSWorld"),
}


def load(name: str) -> Callable[..., Adapter]:
    """The adapter's class.

    Raises:
        ValueError: There is no adapter of that name; the message names those that are.
    """
    if name not in ADAPTERS:
        raise ValueError(f"there is no vendor adapter {name!r}: use one of {', '.join(ADAPTERS)}")
    module, attribute = ADAPTERS[name]
    found: Callable[..., Adapter] = getattr(import_module(f"deskhand.vendors.{module}"), attribute)
    return found
