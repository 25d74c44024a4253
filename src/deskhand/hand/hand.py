"""The hand: looks at one display and acts on it. What everything above this package calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from . import batch
from .display import Display, Leftovers
from .envelope import PictureWish, parse_batch
from .errors import BatchRefused, DeskhandError, DisplayLost, DisplayTimeout
from .lease import Lease, open_lease
from .picture import Picture, make_picture
from .preflight import prepare
from .screen import Region
from .x11 import Connection
from .x11.connection import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from .applications import Entry
    from .launcher import Launcher

Answer = Dict[str, Any]


class Hand:
    """One agent's hand on one display. Connects when first needed, and again after the display was lost.

    ``display`` None is DISPLAY; ``session`` names what may be held from one process to the next; ``timeout`` is the
    deadline in seconds of every single wait for the X server. ``launcher`` is who starts and ends applications (None:
    this process; see ``launcher``). For one thread at a time.
    """

    def __init__(
        self,
        display: Optional[str] = None,
        xauthority: Optional[str] = None,
        session: Optional[str] = None,
        timeout: float = DEFAULT_TIMEOUT,
        launcher: Optional[Launcher] = None,
    ) -> None:
        self._name = display or os.environ.get("DISPLAY") or None
        self._xauthority = xauthority
        self._session = session
        self._timeout = timeout
        self._launcher = launcher
        self._display: Optional[Display] = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the display now."""
        return self._display is not None and not self._display.lost

    @property
    def keeps(self) -> bool:
        """Whether what ``key_down`` and ``mouse_down`` hold may outlive their caller: the session has a name."""
        return bool(self._session)

    @property
    def display(self) -> Display:
        """The connected display.

        Raises:
            NoDisplay, DisplayTimeout, Unsupported: it can not be reached; says what was tried.
        """
        if self._display is None or self._display.lost:
            self._display = Display(self._name, self._xauthority, self._session, self._timeout, self._launcher)
        return self._display

    def act(self, request: Any, alive: Callable[[], bool] = lambda: True) -> Tuple[Answer, Optional[Picture]]:
        """Run a batch given as its envelope; the answer, and the picture when one was asked for.

        Raises:
            BatchRefused: preflight found an error; nothing was sent.
            NoDisplay, DisplayTimeout, Unsupported: the display can not be reached, or nobody here can launch; nothing
                was sent.
            DisplayLost: it went away in the middle; ``facts["answer"]`` holds what is known.
        """
        parsed = parse_batch(request)
        try:
            display, size, left = self._confirmed()
            names_applications = any(action.action in ("launch", "quit") for action in parsed.actions)
            environment = self.environment() if names_applications and self._launcher is None else {}
            newest = display.frames.newest() if parsed.expect.sequence is not None else None
            prepared = prepare(parsed, size, newest, environment, self._launcher)
        except DeskhandError as error:
            error.sent = "none"  # whatever it is, it is none of the batch's doing
            raise
        return batch.run(display, prepared, left, self._session, alive)

    def screenshot(
        self,
        region: Optional[Region] = None,
        wish: Optional[PictureWish] = None,
        limits: bool = True,
    ) -> Picture:
        """A picture of the screen now. ``region`` is [x0, y0, x1, y1] in root-window pixels.

        Without ``limits`` it has full size, whatever its bytes: for a file, not for a model.

        Raises:
            BatchRefused: the region is not on the screen.
            CaptureFailed: no picture could be taken.
        """
        wish = wish or PictureWish()
        display = self._answering()
        try:
            if limits:
                return batch.take_picture(display, wish, region)
            taken = display.screen.capture(region, wish.cursor)
        except ValueError as error:
            raise BatchRefused(str(error)) from None
        return make_picture(taken, display.frames.next(), wish.format, wish.max_edge, None)

    def windows(self) -> List[Dict[str, Any]]:
        """The windows a person could see or switch to, as ``windows.list_windows`` gives them."""
        from . import windows

        return windows.list_windows(self._answering().conn)

    def info(self) -> Dict[str, Any]:
        """The display, its size, monitors, window manager and X server."""
        from . import windows
        from .x11 import randr

        display = self._answering()
        width, height = display.screen.size()
        return {
            "display": display.name,
            "size": [width, height],
            "depth": display.conn.screen.root_depth,
            "monitors": [monitor._asdict() for monitor in randr.get_monitors(display.conn)],
            "window_manager": windows.window_manager(display.conn),
            "server": display.conn.setup.vendor,
        }

    def apps(self) -> List[Dict[str, str]]:
        """The applications the desktop shows: ``[{"id", "name", "path"}]``.

        Raises:
            Unsupported: there is no launcher to ask.
        """
        if self._launcher is not None:
            found: List[Dict[str, str]] = self._launcher.listing()["apps"]
            return found
        from . import applications

        return [entry.as_dict() for entry in applications.list_applications(self.environment())]

    def find(self, app: str) -> Entry:
        """The application with that id or name, to be launched.

        Raises:
            ApplicationError: there is none, or more than one; see ``applications``.
            Unsupported: there is no launcher to ask.
        """
        if self._launcher is not None:
            return self._launcher.find(app)
        from . import applications

        return applications.find(app, self.environment(), unlisted=True)

    def environment(self) -> Dict[str, str]:
        """The environment applications of this display's desktop start with; ours when no display can be reached."""
        if self._name is None:
            return dict(os.environ)
        from . import opener

        return opener.session_environment(self._answering().conn, self._name)

    def release(self) -> List[str]:
        """Release everything the session holds on the display; gives what was down, in words."""
        return [f"{kind} {code}" for kind, code in self._answering().ledger.release_all()]

    def lease(self, holder: str) -> Lease:
        """A lease of ``holder`` at this display, not taken yet, over a connection of its own; see ``open_lease``."""
        return open_lease(self._name, self._xauthority, holder)

    def close(self, keep: bool = True) -> None:
        """Let go. A named session's ``key_down`` survives for a minute when ``keep``; all else is released."""
        if self._display is not None:
            display, self._display = self._display, None
            display.close(keep)

    def cut(self) -> None:
        """End the connection now: whatever waits for the server stops. For another thread; ``abandon`` comes after."""
        display = self._display
        if display is not None:
            display.conn.cut()

    def abandon(self) -> None:
        """Give up a connection that was stopped in the middle of something, and release what was held through it.

        That is done over a new connection: the old one may have half a request on its way.

        Raises:
            NoDisplay, DisplayTimeout: the display can not be reached any more.
        """
        display, self._display = self._display, None
        if display is None:
            return
        display.conn.close()
        display.screen.close()
        with Connection.open(self._name, display.xauthority, self._timeout) as conn:
            display.ledger.disown(conn)
        Display(self._name, display.xauthority, None, self._timeout).close()

    def __enter__(self) -> "Hand":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _answering(self) -> Display:
        """The display, after a round trip: a connection that died while nobody looked is replaced, once."""
        return self._confirmed()[0]

    def _confirmed(self) -> Tuple[Display, Tuple[int, int], Leftovers]:
        """The same, with what ``Display.confirm`` gives."""
        display = self.display
        try:
            return (display, *display.confirm())
        except DisplayTimeout:
            raise  # it is there and does not answer: a second try would only double the wait
        except DisplayLost:
            display = self.display
        return (display, *display.confirm())
