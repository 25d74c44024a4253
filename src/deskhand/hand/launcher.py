"""Who lists, starts and ends applications: this process (``own_launcher``), one in another account, or nobody.

The window is watched for by whoever holds the X connection: ``launch`` and ``quit``. A launcher does the other side,
the processes: it finds the entry, starts it with the desktop's environment and as the desktop's user, follows what
becomes of it, remembers it, and ends it by force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Dict, List, NoReturn, Optional, Sequence, Set

from .errors import Unsupported

if TYPE_CHECKING:
    from .applications import Entry
    from .launched_process import Exit
    from .window_properties import Window


class Launching(ABC):
    """One launch under way. ``fileno`` can be read when there is news, which ``read`` takes in.

    ``startup_id`` and ``startup_time`` (X server time, ms) are what the application was told (Startup Notification);
    ``mark`` names this one launch, and ``keeper`` is the pid that stands for it. ``opener`` is what it is opened with,
    for people; ``program`` what is run; ``direct`` says that this is the application itself, and not an opener that
    starts it and ends. ``note`` tells what was passed over. ``pid`` is the started process, also its session and
    process group; None until it is started. ``error`` says why it could not be.
    """

    startup_id: str
    startup_time: int
    mark: str
    keeper: int
    opener: str
    program: str
    direct: bool
    note: Optional[str] = None
    pid: Optional[int] = None
    error: Optional[str] = None

    @property
    def opener_exit(self) -> Optional[Exit]:
        """How the started process itself ended; None while it runs."""
        raise NotImplementedError

    @property
    def failure(self) -> Optional[Exit]:
        """How the application failed, once it is over; None when it runs, or ended without a failure."""
        raise NotImplementedError

    @property
    def over(self) -> bool:
        """Whether nothing of the application is left: at most a message bus that the opener started on its way."""
        raise NotImplementedError

    @property
    def ended_badly(self) -> bool:
        """Whether the launch is over: its opener failed, or all it started has ended and the last of it failed.

        An opener that ends with 0 and leaves nothing is no failure yet: an application that runs already may be on its
        way.
        """
        if self.error is not None or self.failure is not None:
            return True
        return not self.direct and self.opener_exit is not None and self.opener_exit.failed

    @abstractmethod
    def fileno(self) -> int:
        """What to wait on for news; -1 when none will come any more. It may become another after ``read``."""

    @abstractmethod
    def read(self) -> None:
        """Take in the news. Never waits. Where a first way to open the entry has failed, the next is taken here."""

    @abstractmethod
    def last_words(self) -> str:
        """The last line of the application's output that is not empty; ``""`` when there is none."""

    @abstractmethod
    def owns(self, pids: Sequence[int]) -> bool:
        """Whether one of ``pids`` is a process of this launch."""

    @abstractmethod
    def is_of_another(self, pids: Sequence[int]) -> bool:
        """Whether one of ``pids`` is a process of some launch of ours. Asked of those that this one does not own."""

    @abstractmethod
    def complete(self, window: int) -> None:
        """Remember the window that the launch is answered with, which carries ``mark``. No other way is taken now."""

    @abstractmethod
    def close(self) -> None:
        """Stop following it. The application goes on."""


class Launch(ABC):
    """One launch of earlier, as it was remembered. ``keeper`` is the pid that stands for it, ``mark`` its own name."""

    id: str
    name: str
    keeper: int
    mark: str

    @property
    def alive(self) -> bool:
        """Whether the application runs. Its keeper may have been killed, or live on for a message bus."""
        raise NotImplementedError

    @abstractmethod
    def processes(self) -> Set[int]:
        """The living processes of the launch, without the keeper."""

    @abstractmethod
    def may_be_ended_by(self, session: Optional[str]) -> bool:
        """Whether the session of that name (None: any) may end it by force."""

    @abstractmethod
    def wait(self, timeout: float) -> None:
        """Wait until nothing of it is left, at most ``timeout`` seconds."""

    @abstractmethod
    def end(self, timeout: float) -> int:
        """End its processes, and what they start meanwhile too: SIGTERM, and SIGKILL after a part of ``timeout``.

        Gives how many there were. Some may be left, which ``alive`` tells.
        """

    @abstractmethod
    def forget(self) -> None:
        """It has been quit."""

    def owns(self, window: Window) -> bool:
        """Whether the window is the one the launch was answered with, or one of its processes'."""
        if self.mark and window.launch_mark == self.mark:
            return True
        return bool(self.processes() & set(window.pids))


class Launcher(ABC):
    """Lists, finds, starts and ends applications of one desktop.

    ``quits_only_its_own`` says that a window of anything else is none of ``quit``'s business.
    """

    quits_only_its_own = False

    def check(self) -> None:  # noqa: B027
        """Called for every ``launch`` and ``quit`` before its batch begins.

        Raises:
            Unsupported: there is no launcher here.
        """

    @abstractmethod
    def listing(self) -> Dict[str, Any]:
        """The applications the desktop shows: ``{"apps": [{"id", "name", "path"}], "searched": [directory]}``.

        Raises:
            NoDisplay, SetupError: they can not be told now.
            Unsupported: there is no launcher here.
        """

    @abstractmethod
    def find(self, name: str) -> Entry:
        """The entry with that id or name, as ``applications.find`` with ``unlisted``.

        Raises:
            ApplicationError: there is none, or more than one; with its facts.
            NoDisplay, SetupError, Unsupported: as ``listing``.
        """

    @abstractmethod
    def start(self, entry: Entry, keep_open: bool = False, session: Optional[str] = None) -> Launching:
        """Start the application. What becomes of it is read from the answer; ``close`` it in the end.

        Raises:
            ActionFailed: it can not be started (``sent`` "none"), or nobody knows whether it was.
            SetupError, Unsupported: nothing was started.
        """

    @abstractmethod
    def launches(self) -> List[Launch]:
        """What was launched on this display and of which a process or a window is left, oldest first."""


class NoLauncher(Launcher):
    """Nobody: the desktop's applications run as another user, and there is no launcher of that user's."""

    SENTENCE = (
        "there is no launcher here, so applications can not be listed, launched or quit by name: open one as a person"
        " would, from the desktop's own menu or launcher (try the Super key), and close its window to end it"
    )

    def check(self) -> NoReturn:
        raise Unsupported(self.SENTENCE)

    def listing(self) -> Dict[str, Any]:
        self.check()

    def find(self, name: str) -> Entry:
        self.check()

    def start(self, entry: Entry, keep_open: bool = False, session: Optional[str] = None) -> Launching:
        self.check()

    def launches(self) -> List[Launch]:
        self.check()
