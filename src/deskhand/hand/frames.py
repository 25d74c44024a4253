"""The numbers of the pictures given out on one display.

They grow over all processes on that display, and each session's newest is kept, so that a batch can be guarded with
"the picture I looked at is still the newest I was given". One root property, ``_DESKHAND_FRAMES``, holds both.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

from .x11 import Connection, core

#: Sessions remembered; the ones that asked longest ago go first.
SESSIONS = 64


class Frames:
    """Numbers for the pictures of one session (None: of everybody without a name)."""

    def __init__(self, conn: Connection, session: Optional[str]) -> None:
        self._conn = conn
        self._session = session or ""
        self._property, self._utf8 = conn.atoms(["_DESKHAND_FRAMES", "UTF8_STRING"])

    def next(self) -> int:
        """A new number, from now on this session's newest."""
        core.grab_server(self._conn)
        try:
            kept = self._load()
            number = int(kept["last"]) + 1
            kept["last"] = number
            kept["sessions"].pop(self._session, None)
            kept["sessions"][self._session] = number
            while len(kept["sessions"]) > SESSIONS:
                del kept["sessions"][next(iter(kept["sessions"]))]
            core.change_property(self._conn, self._conn.root, self._property, self._utf8, 8, json.dumps(kept).encode())
        finally:
            core.ungrab_server(self._conn)
            # A round trip, for a number given out must be kept: a server drops what it has not yet read when the client
            # ends.
            core.get_input_focus(self._conn)
        return number

    def newest(self) -> Optional[int]:
        """The number of the picture this session was given last; None when there is none."""
        number = self._load()["sessions"].get(self._session)
        return int(number) if number is not None else None

    def _load(self) -> Dict[str, Any]:
        value = core.get_property(self._conn, self._conn.root, self._property).value
        try:
            kept = json.loads(value.decode("utf-8"))
            sessions = {str(name): int(number) for name, number in kept["sessions"].items()}
            last = int(kept["last"])
            if not 0 <= last < 1 << 53:
                raise ValueError("no number of ours")
            return {"last": last, "sessions": sessions}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return {"last": 0, "sessions": {}}  # anybody may write on the root window
