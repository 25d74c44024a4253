"""What the environment's patch changes in Harbor, name by name. Imported only when it is applied."""

from __future__ import annotations

from typing import Any

from harbor.agents.computer_1 import computer_1
from harbor.agents.computer_1.computer_1 import Computer1
from harbor.agents.computer_1.providers import generic
from harbor.agents.computer_1.providers.generic import GenericJsonProvider
from harbor.agents.computer_1.runtime import Computer1Session

from deskhand.harbor import frames, history
from deskhand.harbor.existing_desktop import facts_of, guard_own_loop, scored
from deskhand.harbor.prompt import edit_prompt
from deskhand.harbor.providers import check_provider, fit_generic, fit_native, is_generic
from deskhand.harbor.session import METHODS, ExistingDesktopSession
from deskhand.harbor.settings import Settings

#: Every attribute that the patch sets on Harbor's classes and modules, for the tests to compare.
PATCHED = (
    *((Computer1Session, name) for name in METHODS),
    (GenericJsonProvider, "from_agent"),
    (Computer1, "__init__"),
    (Computer1, "run"),
    (Computer1, "_build_provider"),
    (Computer1, "_run_loop"),
    (Computer1, "_run_step_loop"),
    (Computer1, "_query_litellm"),
    (Computer1, "_fallback_message_history"),
    (computer_1, "screenshot_data_url"),
)


def patch_harbor(settings: Settings) -> None:
    """Change Harbor's classes for the whole process.

    Raises:
        BadSetting: Harbor's prompt is not as we know it. Nothing has been changed then.
    """
    zooms = settings.driver == "hand"
    edit_prompt(settings, zooms)((generic._TEMPLATES_DIR / "computer-1-json.txt").read_text())
    for name in METHODS:
        setattr(Computer1Session, name, ExistingDesktopSession.__dict__[name])
    Computer1Session.settings_of_process = settings
    _patch_provider(settings, zooms)
    _patch_agent(settings)
    _patch_pictures()


def _patch_provider(settings: Settings, zooms: bool) -> None:
    inner = GenericJsonProvider.from_agent.__func__

    def from_agent(cls: type[GenericJsonProvider], agent: Any) -> Any:
        provider = inner(cls, agent)
        fit_generic(provider, settings, zooms)
        return provider

    GenericJsonProvider.from_agent = classmethod(from_agent)
    build = Computer1._build_provider

    def _build_provider(self: Any) -> Any:
        provider = build(self)
        if not is_generic(provider):
            fit_native(provider, zooms)
            guard_own_loop(self, provider)
        return provider

    Computer1._build_provider = _build_provider


def _patch_agent(settings: Settings) -> None:
    begin, run = Computer1.__init__, Computer1.run

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        if hasattr(self, "_settings"):
            return  # an ExistingDesktop, which has its own
        check_provider(settings, self._provider_name)
        append_only = bool(named.get("collect_rollout_details"))
        history.check_history(settings.keep_screenshots, self._provider_name, append_only)

    async def run_and_tell(self: Any, instruction: str, environment: Any, context: Any) -> None:
        try:
            await run(self, instruction, environment, context)
        finally:
            if self._session is not None and self._session.desktop.driver is not None:
                context.metadata = {**(context.metadata or {}), "deskhand": facts_of(self._session)}

    Computer1.__init__, Computer1.run = __init__, run_and_tell
    for name in ("_run_loop", "_run_step_loop"):
        setattr(Computer1, name, _scored(getattr(Computer1, name)))
    if settings.keep_screenshots is not None:
        _patch_history(settings.keep_screenshots)


def _scored(loop: Any) -> Any:
    async def run(self: Any, *given: Any, **named: Any) -> None:
        await scored(self, loop(self, *given, **named))

    return run


def _patch_history(keep: int) -> None:
    query, earlier = Computer1._query_litellm, Computer1._fallback_message_history

    async def _query_litellm(self: Any, chat: Any, prompt: Any, *given: Any, **named: Any) -> Any:
        history.trim_for(self, chat, keep, prompt)
        return await query(self, chat, prompt, *given, **named)

    def _fallback_message_history(self: Any) -> Any:
        history.trim_for_last_request(self, keep)
        return earlier(self)

    Computer1._query_litellm = _query_litellm
    Computer1._fallback_message_history = _fallback_message_history


def _patch_pictures() -> None:
    read = computer_1.screenshot_data_url

    async def screenshot_data_url(path: str, environment: Any) -> str:
        return frames.data_url(environment, path) or await read(path, environment)

    computer_1.screenshot_data_url = screenshot_data_url
