"""The agent by import path: ``harbor run --agent deskhand.harbor:ExistingDesktop``. Nothing of Harbor is changed."""

from __future__ import annotations

from typing import Any

from harbor.agents.computer_1.computer_1 import Computer1
from harbor.agents.computer_1.runtime import DisplayGeometry
from harbor.environments.base import BaseEnvironment

from deskhand.harbor import frames, history
from deskhand.harbor.errors import DisplayDied
from deskhand.harbor.providers import check_provider, fit_generic, fit_native, is_generic
from deskhand.harbor.session import ExistingDesktopSession
from deskhand.harbor.settings import BadSetting, Settings

#: The keyword arguments that are ours; all others are computer-1's.
OWN = (
    "display",
    "xauthority",
    "settle",
    "settle_sec",
    "screenshot_size",
    "keep_screenshots",
    "coordinate_space",
    "driver",
)
#: Why a trial ended whose display went away: the word that Harbor has for it. Such a trial is scored.
SESSION_DEAD = "runtime_session_dead"


class ExistingDesktop(Computer1):  # type: ignore[misc]
    """computer-1, on the display that its sandbox has already.

    Args:
        display: The display's name in the sandbox (``:1``).
        xauthority: Its cookie file there; None: found.
        settle: ``quiet`` or ``fixed``.
        settle_sec: Seconds; the bound of ``quiet`` (2.0).
        screenshot_size: ``"1280x720"``: the size of the pictures; None: the screen's.
        keep_screenshots: Pictures in a request at most; None: all.
        coordinate_space: ``normalized_0_999``; None: pixels.
        driver: ``hand`` or ``tools``; None: ``hand`` where the image has ``python3``.

    Everything else is as in computer-1. Where ``desktop_width`` and ``desktop_height`` are not given they are the
    display's own.

    Raises:
        BadSetting: A setting can not be; before any trial begins.
    """

    if hasattr(Computer1, "options_model"):
        # Written there because it needs the base class, which older versions do not have.
        from deskhand.harbor.options import ExistingDesktopOptions as options_model

    def __init__(self, *given: Any, **named: Any) -> None:
        own = {name: named.get(name) for name in OWN}
        self._settings = Settings.of(**own)
        if named.get("start_url"):
            raise BadSetting("start_url opens a page in a browser of Harbor's own, and there is none: leave it out")
        sizes = [named.get("desktop_width"), named.get("desktop_height")]
        if (sizes[0] is None) != (sizes[1] is None):
            raise BadSetting("give both desktop_width and desktop_height, or neither: then they are the display's own")
        for name, size in zip(("desktop_width", "desktop_height"), sizes, strict=True):
            if size is not None and (not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= 65535):
                raise BadSetting(f"{name} is 1 to 65535 pixels, not {size!r}")
        self._adopt_size = sizes == [None, None]
        rest = named if hasattr(Computer1, "options_model") else {k: v for k, v in named.items() if k not in OWN}
        self._desktop_geometry: DisplayGeometry
        super().__init__(*given, **rest)
        check_provider(self._settings, self._provider_name)
        append_only = bool(self._option("collect_rollout_details", named.get("collect_rollout_details")))
        history.check_history(self._settings.keep_screenshots, self._provider_name, append_only)

    @staticmethod
    def name() -> str:
        return "deskhand-existing-desktop"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Find the display; see ``ExistingDesktopSession.start``."""
        geometry = self._desktop_geometry
        session = ExistingDesktopSession(
            settings=self._settings,
            adopt_size=self._adopt_size,
            environment=environment,
            agent_dir=self._env_io_dir,
            desktop_width=geometry.desktop_width,
            desktop_height=geometry.desktop_height,
            window_width=geometry.desktop_width,
            window_height=geometry.desktop_height,
            readiness_timeout_sec=self._option("runtime_readiness_timeout_sec"),
            request_timeout_sec=self._option("runtime_request_timeout_sec"),
            extra_env=self._extra_env,
            user=environment.default_user,
            enable_bash=self._enable_bash,
        )
        self._session = session
        await session.start()
        self._desktop_geometry = session.geometry

    async def run(self, instruction: str, environment: BaseEnvironment, context: Any) -> None:
        """As computer-1's; ``context.metadata["deskhand"]`` says what desktop it was and what was used."""
        try:
            await super().run(instruction, environment, context)
        finally:
            if self._session is not None:
                context.metadata = {**(context.metadata or {}), "deskhand": facts_of(self._session)}

    def _option(self, name: str, default: Any = None) -> Any:
        options = getattr(self, "options", None)
        return getattr(options, name) if options is not None else getattr(self, f"_{name}", default)

    def _build_provider(self) -> Any:
        provider = super()._build_provider()
        assert self._session is not None
        driver = self._session.desktop.driver
        assert driver is not None, "the session has been started"
        if is_generic(provider):
            fit_generic(provider, self._settings, zooms=driver.zooms)
        else:
            fit_native(provider, driver.zooms)
            guard_own_loop(self, provider)
        return provider

    async def _run_loop(self, *given: Any, **named: Any) -> None:
        await scored(self, super()._run_loop(*given, **named))

    async def _run_step_loop(self, *given: Any, **named: Any) -> None:
        await scored(self, super()._run_step_loop(*given, **named))

    async def _screenshot_ref(self, path: str) -> str:
        return self._kept(path) or await super()._screenshot_ref(path)

    async def _payload_screenshot_ref(self, screenshot_path: str) -> str:
        return self._kept(screenshot_path) or await super()._payload_screenshot_ref(screenshot_path)

    def _kept(self, path: str) -> str | None:
        return frames.data_url(self._session.environment, path) if self._session is not None else None

    async def _query_litellm(self, chat: Any, prompt: Any, *given: Any, **named: Any) -> Any:
        # Around Harbor's own retries: what is taken out stays out.
        if self._settings.keep_screenshots is not None:
            history.trim_for(self, chat, self._settings.keep_screenshots, prompt)
        return await super()._query_litellm(chat, prompt, *given, **named)

    def _fallback_message_history(self) -> Any:
        if self._settings.keep_screenshots is not None:
            history.trim_for_last_request(self, self._settings.keep_screenshots)
        return super()._fallback_message_history()


async def scored(agent: Any, loop: Any) -> None:
    """Run a loop of Harbor's; a display that dies in it ends the trial as Harbor's own check would, to be scored."""
    try:
        await loop
    except DisplayDied as died:
        agent.logger.warning("The trial ends: %s", died.detail)
        agent._early_termination_reason = SESSION_DEAD


def guard_own_loop(agent: Any, provider: Any) -> None:
    """The same for a provider that has a loop of its own."""
    run = getattr(provider, "run_episodes", None)
    if run is not None:

        async def run_episodes(*given: Any, **named: Any) -> None:
            await scored(agent, run(*given, **named))

        provider.run_episodes = run_episodes


def facts_of(session: Any) -> dict[str, Any]:
    """What a trial's result says of its desktop."""
    desktop = session.desktop
    ready = desktop.readiness
    return {
        "display": desktop.settings.display,
        "driver": desktop.driver.name if desktop.driver is not None else None,
        "size": list(desktop.screen),
        "blank": bool(ready is not None and ready.blank),
        "execs": desktop.execs,
    }
