"""Models by the name that a person gives: ``anthropic:NAME``, ``openai:NAME``, ``google:NAME``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from deskhand.agents.history import KEEP
from deskhand.agents.model import Model
from deskhand.errors import SetupError

#: By the prefix of ``--model``: module, class, and the variables that hold the key. The order is that of the default.
VENDORS = {
    "anthropic": ("anthropic", "Claude", ("ANTHROPIC_API_KEY",)),
    "openai": ("openai", "Gpt", ("OPENAI_API_KEY",)),
    "google": ("google", "Gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
}
#: What a server that speaks OpenAI's chat completions can be asked with.
CHAT_ADAPTERS = ("tools", "qwen", "ui_tars")


def default_model(environment: Mapping[str, str]) -> str | None:
    """``VENDOR:NAME`` for the first vendor whose key is in the environment; None when there is no key."""
    for prefix, (module, _, keys) in VENDORS.items():
        if any(environment.get(key) for key in keys):
            return f"{prefix}:{import_module(f'deskhand.agents.{module}').DEFAULT}"
    return None


def load_model(
    wanted: str,
    environment: Mapping[str, str],
    base_url: str | None = None,
    adapter: str | None = None,
    keep: int = KEEP,
) -> Model:
    """The model that ``VENDOR:NAME`` means, ready to be asked; nothing is sent yet.

    Args:
        wanted: ``VENDOR:NAME``; without the name, the vendor's default.
        environment: Where the key is.
        base_url: The server's address; with ``openai:`` that of any server that speaks chat completions.
        adapter: For such a server: one of ``CHAT_ADAPTERS``; by default what the model's name tells, else ``tools``.
        keep: Pictures that are kept in the conversation.

    Raises:
        SetupError: There is no such vendor, no key, or the SDK is not installed.
    """
    prefix, _, name = wanted.partition(":")
    if prefix not in VENDORS:
        known = ", ".join(f"{vendor}:NAME" for vendor in VENDORS)
        raise SetupError(f"the model {wanted!r} is not known: use scripted:FILE, {known}")
    module, class_name, keys = VENDORS[prefix]
    if adapter is not None and (prefix != "openai" or adapter not in CHAT_ADAPTERS):
        raise SetupError(f"the adapter {adapter!r} is not known for {prefix}: openai takes {', '.join(CHAT_ADAPTERS)}")
    chat = prefix == "openai" and (base_url is not None or adapter is not None)
    if chat and not name:
        raise SetupError("name the model that the server has: --model openai:NAME")
    if not chat and not any(environment.get(key) for key in keys):
        raise SetupError(f"no key for {prefix}: set {keys[0]}")
    if chat:
        module, class_name = "compatible", "Compatible"
    found = getattr(import_module(f"deskhand.agents.{module}"), class_name)
    more = {"adapter": adapter} if chat else {}
    arguments = [name] if name else []
    model: Model = found(*arguments, base_url=base_url, keep=keep, **more)
    return model
