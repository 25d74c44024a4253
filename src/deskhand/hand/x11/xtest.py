"""Input made up by a client (XTEST Extension Protocol, XTestFakeInput)."""

from __future__ import annotations

import struct

from ..errors import Unsupported
from . import core
from .connection import Connection

KEY_PRESS, KEY_RELEASE, BUTTON_PRESS, BUTTON_RELEASE, MOTION = 2, 3, 4, 5, 6


def fake_input(conn: Connection, kind: int, detail: int, x: int = 0, y: int = 0, delay_ms: int = 0) -> None:
    """Press or release a key or button, or move the pointer to root-window pixels (``MOTION``, ``detail`` 0).

    ``delay_ms`` is waited by the server before the event, and by everything this connection sends after it. It counts
    from this request, and so from the time of what was sent before it, or a little later.
    """
    extension = conn.extension("XTEST")
    if extension is None:
        raise Unsupported(f"display {conn.name} has no XTEST extension, so no input can be sent to it")
    root = conn.root if kind == MOTION else 0
    if delay_ms:
        # The server would add the delay to a time it last looked at before the press; this has it look at its clock.
        core.ungrab_keyboard(conn)
    conn.send(extension.major, 2, struct.pack("=BB2xII8xhh8x", kind, detail, delay_ms, root, x, y))
