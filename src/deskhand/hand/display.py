"""A display we are connected to, and everything that belongs to that one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional

from . import state
from .ambient import Ambient
from .frames import Frames
from .held import Ledger
from .ping import Pings
from .pointer import Pointer
from .screen import Screen
from .x11 import Connection, core
from .x11.connection import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from .keyboard import Keyboard
    from .launcher import Launcher


class Display:
    """Connects, and puts right what processes of ours that died left behind on that display.

    ``xauthority`` None: that of a desktop of ours with that name, else XAUTHORITY, else ``~/.Xauthority``. ``launcher``
    None: this process launches.

    Raises:
        NoDisplay, DisplayTimeout, Unsupported: as ``Connection.open`` and ``Screen`` say.
    """

    def __init__(
        self,
        name: Optional[str] = None,
        xauthority: Optional[str] = None,
        session: Optional[str] = None,
        timeout: float = DEFAULT_TIMEOUT,
        launcher: Optional[Launcher] = None,
    ) -> None:
        if xauthority is None and name is not None:
            desktop = state.find_desktop(name)
            xauthority = str(desktop["xauthority"]) if desktop is not None else None
        self.xauthority = xauthority
        self.conn = Connection.open(name, xauthority, timeout)
        try:
            self.screen = Screen(self.conn)
            self.ledger = Ledger(self.conn, session)
            #: What processes that are gone had changed on the keyboard, and is now as it was: told in the next answer.
            self.restored: List[str] = _restore_borrowed(self.conn)
            self.pings = Pings(self.conn)
            self._keyboard: Optional[Keyboard] = None
            self._launcher = launcher
            self.ambient = Ambient()
            self.pointer = Pointer(self.conn, self.ledger)
            self.frames = Frames(self.conn, session)
        except BaseException:
            self.conn.close()
            raise

    @property
    def keyboard(self) -> Keyboard:
        # Imported when first needed: the one-file form compiles what it imports, at every start.
        if self._keyboard is None:
            from .keyboard import Keyboard

            self._keyboard = Keyboard(self.conn, self.pings, self.ledger)
        return self._keyboard

    @property
    def launcher(self) -> Launcher:
        if self._launcher is None:
            from .own_launcher import OwnLauncher

            self._launcher = OwnLauncher(self.conn, self.name, self.xauthority)
        return self._launcher

    @property
    def name(self) -> str:
        return str(self.conn.name)

    @property
    def lost(self) -> bool:
        return self.conn.closed

    def put_right(self) -> None:
        """As at the start: what processes of ours left on the display that have died since."""
        self.ledger.put_right()
        self.restored += _restore_borrowed(self.conn)

    def close(self, keep: bool = True) -> None:
        """End the connection. What ``key_down`` holds stays for the named session when ``keep``, else is released."""
        if not self.conn.closed:
            try:
                self.ledger.leave(keep)
                self.conn.sync()
            finally:
                self.screen.close()
                self.conn.close()

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _restore_borrowed(conn: Connection) -> List[str]:
    # The module is needed only where something was left.
    if not core.get_property(conn, conn.root, conn.atom("_DESKHAND_BORROWED")).value:
        return []
    from .borrowing import restore_borrowed

    return restore_borrowed(conn)
