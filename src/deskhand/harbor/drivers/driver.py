"""What a driver must do, and what the session gives it to do it with."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

from harbor.agents.computer_1.runtime import ComputerAction, DisplayGeometry
from harbor.environments.base import BaseEnvironment, ExecResult

from deskhand.harbor.frames import Frame
from deskhand.harbor.settings import Settings

Region = tuple[int, int, int, int]


class Sandbox(Protocol):
    """One trial's sandbox as a driver sees it."""

    settings: Settings

    @property
    def environment(self) -> BaseEnvironment: ...

    @property
    def screen(self) -> tuple[int, int]:
        """The root window's width and height."""

    @property
    def picture(self) -> tuple[int, int]:
        """The width and height of the pictures that the model gets."""

    @property
    def patience(self) -> int:
        """Seconds that a command may take."""

    @property
    def geometry(self) -> DisplayGeometry:
        """What Harbor's own translation of an action takes."""

    @property
    def uploads(self) -> bool:
        """Whether ``environment.upload_file`` has worked there so far."""

    def no_uploads(self, why: str) -> None:
        """It does not: files are sent through exec from now on."""

    async def check_sandbox(self, label: str, detail: str) -> None:
        """Ask whether commands can be run there at all, after one has failed with ``detail``.

        Raises:
            SandboxLost: None can.
        """

    async def command(self, command: str, *, timeout_sec: int, label: str) -> ExecResult:
        """Run a shell command there, once; how it ended is the driver's to judge.

        Raises:
            SandboxLost: No command can be run there any more.
            RuntimeRequestError: This one could not be run, or took too long; others can.
        """


class Readiness(NamedTuple):
    """The display answers. ``size`` is the root window's; ``blank``: it is all of one colour."""

    size: tuple[int, int]
    blank: bool
    xauthority: str | None


class Driver(ABC):
    """Acts on the desktop, waits until it has settled, and looks at it."""

    name: str
    #: Whether it can show a part of the screen.
    zooms: bool

    def __init__(self, sandbox: Sandbox, logger: logging.Logger) -> None:
        self._sandbox = sandbox
        self._logger = logger

    @abstractmethod
    async def prepare(self) -> None:
        """Bring into the sandbox what the driver needs there.

        Raises:
            NotReady: The image lacks something; says what.
        """

    @abstractmethod
    async def look_for_display(self, seconds: float) -> Readiness | str:
        """Wait so long for the display, in one exec: what was found, or why there is nothing yet."""

    @abstractmethod
    async def act(self, action: ComputerAction) -> dict[str, Any]:
        """One action, whose positions are the screen's pixels, and the wait after it. Gives what Harbor's session does.

        Raises:
            RuntimeRequestError: It was refused, or failed; says why, for the model.
            DisplayDied, SandboxLost: See there.
        """

    @abstractmethod
    async def capture(self, target: str, region: Region | None = None) -> Frame | None:
        """A picture taken now, or with the last action when nobody has had that yet; of ``region``, in screen pixels.

        None when it is in the sandbox only, at ``target``.

        Raises:
            RuntimeRequestError: No picture could be taken. There is none at ``target`` then.
            DisplayDied, SandboxLost: See there.
        """

    @abstractmethod
    async def is_alive(self) -> bool:
        """Whether the display answers."""

    @abstractmethod
    def changed(self) -> None:
        """Something else than this driver may have changed the screen (a shell command)."""
