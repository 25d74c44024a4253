"""Start and stop a whole desktop on this machine: X server, session bus, window manager, panel; no container.

- ``start``       ``start_desktop``: make what is needed, start the supervisor, wait for its word
- ``supervisor``  the process that owns a desktop: starts its parts in order, proves each, reaps, ends them
- ``parts``       the programs of a desktop, started as its account
- ``logs``        what they write, a file each
- ``account``     as whom a desktop runs, and as whom it is served
- ``serving``     how one is served over HTTP: address, accounts, Python
- ``services``    the launcher and computerd beside it, started and started again
- ``sessions``    the kinds of desktop: what each is started with and known by
- ``home``        its HOME: settings without first-run dialogs, saver, lock, compositing or animations
- ``first_starts`` the same for common applications
- ``xserver``     Xvfb, its cookie, lock files of dead servers
- ``system_bus``  a system bus with nobody on it
- ``sandbox``     a desktop apart from the others, by bubblewrap: what is in it, and what leads into it
- ``inside``      its sandbox as the supervisor has it
- ``readiness``   the proofs that a part is up
- ``processes``   every process of a desktop, and how they are ended
- ``stop``        ``stop_desktop``, ``list_desktops``

Where a desktop's facts stand is ``deskhand.hand.state``'s to say, because the hand reads them too.
"""

from .sessions import SESSIONS
from .start import DesktopState, parse_size, start_desktop
from .stop import list_desktops, stop_desktop

__all__ = ["SESSIONS", "DesktopState", "list_desktops", "parse_size", "start_desktop", "stop_desktop"]
