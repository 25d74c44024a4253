"""Harbor's session of one trial, on the display that the sandbox has already."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import time
from pathlib import Path, PurePosixPath
from typing import Any

from harbor.agents.computer_1 import runtime
from harbor.agents.computer_1.runtime import (
    TERMINAL_ACTION_TYPES,
    Computer1Session,
    ComputerAction,
    DisplayGeometry,
    RuntimeRequestError,
    normalize_completion_action,
)
from harbor.environments.base import ExecResult
from harbor.models.trial.paths import EnvironmentPaths

from deskhand.harbor import frames
from deskhand.harbor.drivers.driver import Driver, Readiness, Region
from deskhand.harbor.drivers.hand import HandDriver, has_python
from deskhand.harbor.drivers.tools import ToolsDriver
from deskhand.harbor.errors import BAD_GATEWAY, BAD_REQUEST, FORBIDDEN, NotReady, SandboxLost
from deskhand.harbor.sending import send_file
from deskhand.harbor.settings import Settings
from deskhand.harbor.translation import BROWSER, to_picture, to_screen

#: Seconds of one exec that waits for the display: cloud sandboxes cut long ones.
_ROUND = 10.0
#: Seconds that a display which answers gets to be painted.
_UNPAINTED = 30.0
#: Seconds of one try to run anything in a sandbox, the tries, and the seconds between them, before it is held for lost.
_PROBE, _PROBES, _BETWEEN = 20, 3, 1.0
_ALIVE = "deskhand-sandbox-alive"


class Desktop:
    """What a session keeps of its desktop. One for each session, made when it is first used."""

    def __init__(self, session: Any, settings: Settings, adopt_size: bool, logger: logging.Logger) -> None:
        self._session = session
        self._logger = logger
        self.settings = settings
        self.adopt_size = adopt_size
        self.readiness: Readiness | None = None
        self.driver: Driver | None = None
        self.zoom: Region | None = None
        self.png: bytes | None = None
        self.execs = 0
        self.uploads = True
        self._lost: str | None = None

    # -- what a driver asks of its sandbox

    @property
    def environment(self) -> Any:
        return self._session.environment

    @property
    def geometry(self) -> DisplayGeometry:
        return self._session.geometry

    @property
    def screen(self) -> tuple[int, int]:
        geometry = self._session.geometry
        return geometry.desktop_width, geometry.desktop_height

    @property
    def picture(self) -> tuple[int, int]:
        return self.settings.screenshot_size or self.screen

    @property
    def patience(self) -> int:
        return int(self._session._request_timeout_sec)

    def no_uploads(self, why: str) -> None:
        self.uploads = False
        self._logger.warning("upload_file does not work in this sandbox (%s): files are sent through exec", why)

    async def command(self, command: str, *, timeout_sec: int, label: str) -> ExecResult:
        if self._lost is not None:
            raise SandboxLost(label, self._lost)
        self.execs += 1
        try:
            return await self._session._raw_exec(command, timeout_sec=timeout_sec)
        except Exception as error:
            detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            await self.check_sandbox(label, detail)
            raise RuntimeRequestError(
                label, BAD_GATEWAY, f"the command could not be run: {detail}", recoverable=True
            ) from error

    async def check_sandbox(self, label: str, detail: str) -> None:
        """Ask whether commands can be run there, after one has failed.

        Raises:
            SandboxLost: None can.
        """
        for attempt in range(_PROBES):
            if attempt:
                await asyncio.sleep(_BETWEEN)
            with contextlib.suppress(Exception):
                probe = self.environment.exec(command=f"echo {_ALIVE}", timeout_sec=_PROBE, user=self._session._user)
                result = await asyncio.wait_for(probe, _PROBE + 5)
                if _ALIVE in (result.stdout or ""):
                    return
        self._lost = " ".join(detail.split())[:300]
        raise SandboxLost(label, self._lost)


class ExistingDesktopSession(Computer1Session):  # type: ignore[misc]
    """Drives the display that runs in the sandbox already; starts nothing on it, and no browser.

    The environment's patch puts these very methods into Harbor's own class, so none of them uses ``super()``.
    """

    #: What sessions get that were made without settings of their own: the patch's.
    settings_of_process: Settings | None = None

    def __init__(self, *, settings: Settings, adopt_size: bool = False, **given: Any) -> None:
        super().__init__(**given)
        self._started: bool
        self._deskhand = Desktop(self, settings, adopt_size, runtime.logger)

    @property
    def desktop(self) -> Desktop:
        """What is known of the desktop."""
        found: Desktop | None = getattr(self, "_deskhand", None)
        if found is None:
            settings = type(self).settings_of_process
            assert settings is not None, "the patch sets it"
            found = self._deskhand = Desktop(self, settings, False, runtime.logger)
        return found

    async def start(self) -> None:
        """Make the directories, and wait for the display: until it answers, and then until it is painted.

        Raises:
            NotReady: There is no such display, it refuses us, it has another size, or the image lacks something.
            SandboxLost: See there.
        """
        if self._started:
            return
        desktop = self.desktop
        directories = f"{runtime._RUNTIME_DIR} {runtime._SCREENSHOT_DIR} {shlex.quote(str(self._agent_dir))}"
        make = runtime._bash_inline(f"mkdir -p {directories}")
        try:
            await self._exec(make, timeout_sec=60, label="mkdir runtime dirs", retries=2)
        except RuntimeRequestError as error:
            await desktop.check_sandbox("start", error.detail)
            raise
        desktop.driver = await _driver(desktop)
        await desktop.driver.prepare()
        desktop.readiness = await _wait_for_display(desktop, self._readiness_timeout_sec)
        _check_size(desktop, self)
        self._started = True

    async def is_session_alive(self) -> bool:
        """Whether the display answers; nothing else is asked.

        Raises:
            SandboxLost: See there. A sandbox that is gone is not a session that has ended.
        """
        driver = self.desktop.driver
        return driver is not None and await driver.is_alive()

    async def reset(self) -> None:
        """There is no browser of Harbor's to start again.

        Raises:
            RuntimeRequestError: Always.
        """
        raise RuntimeRequestError("reset", BAD_REQUEST, "the desktop is the image's own: there is no browser to reset")

    async def _recover_chromium_if_needed(self, action_type: str, exc: Exception) -> None:
        return None

    async def execute(self, action: ComputerAction) -> dict[str, Any]:
        """Carry out one action and wait until the screen has settled.

        Raises:
            RuntimeRequestError: It is refused or has failed; says why, for the model.
            DisplayDied, SandboxLost: See there.
        """
        desktop = self.desktop
        driver = desktop.driver
        if driver is None:
            raise RuntimeRequestError(action.type, BAD_REQUEST, "the session has not been started")
        _refuse(action, desktop.settings, driver)
        action = to_screen(normalize_completion_action(action, self.geometry), desktop.picture, desktop.screen)
        if action.type in TERMINAL_ACTION_TYPES:
            return {"status": "done", "text": action.text}
        if action.type == "zoom":
            desktop.zoom = _region(action.zoom_region, desktop.screen)
            return {"status": "ok"}
        if action.type == "bash":
            if not self._enable_bash:
                return _STOCK_BASH_OFF
            desktop.execs += 1
            driver.changed()
            return dict(await self._execute_bash(action))
        answer = await driver.act(action)
        if "x" in answer and "y" in answer:
            answer["x"], answer["y"] = to_picture(answer["x"], answer["y"], desktop.picture, desktop.screen)
        return answer

    async def fetch_screenshot(self, env_path: PurePosixPath | str) -> str:
        """A PNG of the root window, called ``env_path`` (in the sandbox, or beside it where Harbor keeps its logs).

        Raises:
            RuntimeRequestError: None could be taken, or another format than PNG is wanted. There is no picture then.
            DisplayDied, SandboxLost: See there.
        """
        desktop = self.desktop
        target = PurePosixPath(str(env_path))
        if target.suffix.lower() != ".png":
            raise RuntimeRequestError(
                "screenshot", BAD_REQUEST, f"pictures are PNG here, so that {target.name!r} can not be made"
            )
        if desktop.driver is None:
            raise RuntimeRequestError("screenshot", BAD_REQUEST, "the session has not been started")
        region, desktop.zoom = desktop.zoom, None  # for one picture only
        frames.forget(self.environment, str(target))
        frame = await desktop.driver.capture(str(target), region)
        if frame is not None:
            desktop.png = frame.content
            frames.keep(self.environment, str(target), frame.content)
            await _store(desktop, target, frame.content)
        else:
            desktop.png = None
        return str(target)

    async def latest_png_data_url(self) -> str:
        """The newest picture as a data URL."""
        desktop = self.desktop
        if desktop.png is not None:
            return frames.png_data_url(desktop.png)
        desktop.execs += 1
        url: str = await STOCK_LATEST_PNG(self)
        return url


#: Harbor's own, as they were before anybody replaced them.
STOCK_LATEST_PNG = Computer1Session.latest_png_data_url
_STOCK_BASH_OFF = {
    "status": "error",
    "return_code": 2,
    "stdout": "",
    "stderr": 'bash action is disabled. Enable it by running computer-1 with extra_tools=["bash"].',
}
#: The methods that make Harbor's session one of an existing desktop, with the property they share.
METHODS = (
    "start",
    "is_session_alive",
    "reset",
    "_recover_chromium_if_needed",
    "execute",
    "fetch_screenshot",
    "latest_png_data_url",
    "desktop",
    "settings_of_process",
)


def _refuse(action: ComputerAction, settings: Settings, driver: Driver) -> None:
    """Raises RuntimeRequestError for what can not be done here."""
    if action.type in BROWSER:
        raise RuntimeRequestError(
            action.type,
            BAD_REQUEST,
            f"there is no {action.type} on this desktop: use the browser's own window with the mouse and the keyboard",
        )
    if action.type == "zoom" and not driver.zooms:
        raise RuntimeRequestError("zoom", BAD_REQUEST, "this desktop's pictures can not be cropped: look at the whole")
    if not settings.blocked_keys:
        return
    if action.type in ("key", "keypress"):
        combination = "+".join(key.strip().lower() for key in action.keys or [] if key.strip())
        if combination in runtime.BLOCKED_KEY_COMBOS:
            raise RuntimeRequestError(
                action.type, FORBIDDEN, "Action blocked: developer tools are not available in this environment."
            )
    if action.type == "type" and "view-source:" in (action.text or "").lower():
        raise RuntimeRequestError(
            action.type, FORBIDDEN, "Action blocked: view-source is not available in this environment."
        )


async def _driver(desktop: Desktop) -> Driver:
    wanted = desktop.settings.driver
    if wanted is None:
        wanted = "hand" if await has_python(desktop) else "tools"
    return HandDriver(desktop, runtime.logger) if wanted == "hand" else ToolsDriver(desktop, runtime.logger)


async def _wait_for_display(desktop: Desktop, patience: float) -> Readiness:
    """Until the display answers, at most so many seconds, and then until it is painted, or has had the time to be."""
    assert desktop.driver is not None
    deadline = time.monotonic() + patience
    unpainted: float | None = None
    while True:
        now = time.monotonic()
        end = deadline if unpainted is None else min(deadline, unpainted + _UNPAINTED)
        found = await desktop.driver.look_for_display(max(1.0, min(_ROUND, end - now)))
        now = time.monotonic()
        if isinstance(found, str):
            if now >= deadline:
                raise NotReady(f"the display {desktop.settings.display} is not there after {patience:g} s: {found}")
            continue
        if not found.blank:
            return found
        unpainted = now if unpainted is None else unpainted
        if now >= min(deadline, unpainted + _UNPAINTED):
            runtime.logger.warning(
                "the desktop on %s is all of one colour: the trial begins with a blank screen", desktop.settings.display
            )
            return found


def _check_size(desktop: Desktop, session: Any) -> None:
    assert desktop.readiness is not None
    width, height = desktop.readiness.size
    if (width, height) == desktop.screen:
        return
    if not desktop.adopt_size:
        asked = "x".join(map(str, desktop.screen))
        raise NotReady(
            f"the desktop on {desktop.settings.display} is {width}x{height}, and desktop_width and desktop_height say"
            f" {asked}: set desktop_width={width} and desktop_height={height}"
        )
    session.geometry = DisplayGeometry(width, height, 0, 0, width, height)


def _region(region: list[int] | None, screen: tuple[int, int]) -> Region | None:
    """A zoom's region within the screen; None when it holds no pixel of it."""
    if not region or len(region) != 4:
        return None
    x0, y0, x1, y1 = region
    x0, x1 = max(0, min(x0, x1)), min(screen[0], max(x0, x1))
    y0, y1 = max(0, min(y0, y1)), min(screen[1], max(y0, y1))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


async def _store(desktop: Desktop, target: PurePosixPath, content: bytes) -> None:
    """Put the picture where Harbor's viewer looks for it: into the trial's own directory, which costs no exec."""
    paths = getattr(desktop.environment, "trial_paths", None)
    name = frames.name_in(EnvironmentPaths.agent_dir, target)
    if paths is not None and name is not None:
        # With a mounted directory the sandbox sees it at once; without, Harbor takes it there before the verifier runs.
        frames.write_beside(Path(paths.agent_dir), name, content)
        return
    await send_file(desktop, content, str(target))
