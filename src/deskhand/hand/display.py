"""A display we are connected to, and everything that belongs to that one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Tuple

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


class Leftovers(NamedTuple):
    """Whether anything is noted as held down, or as borrowed on the keyboard: that may be the work of the dead."""

    held: bool
    borrowed: bool


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
            self._notes = self.conn.atoms(["_DESKHAND_HELD", "_DESKHAND_BORROWED"])
            #: What processes that are gone had changed on the keyboard, and is now as it was: told in the next answer.
            self.restored: List[str] = []
            self.put_right(self.confirm()[1]._replace(held=False))  # the ledger has done so for what is held
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

    def confirm(self) -> Tuple[Tuple[int, int], Leftovers]:
        """One round trip before a batch, that of ``Connection.sync``: the screen's size in pixels, and leftovers."""
        asked = [core.ask_property(self.conn, self.conn.root, note, length=1) for note in self._notes]
        size, *notes = self.conn.sync([core.ask_geometry(self.conn, self.conn.root), *asked])
        geometry = core.parse_geometry(size)
        held, borrowed = (bool(core.parse_property(note).value) for note in notes)
        return (geometry.width, geometry.height), Leftovers(held, borrowed)

    def put_right(self, left: Leftovers) -> None:
        """As at the start: what processes of ours left on the display that have died since."""
        if left.held:
            self.ledger.put_right()
        if left.borrowed:
            from .borrowing import restore_borrowed  # the module is needed only where something was left

            self.restored += restore_borrowed(self.conn)

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
