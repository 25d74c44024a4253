"""Keys that are down before text is typed: lifted for its length, and put back when they are ours.

Shift held by somebody would change every letter, and a held letter repeats in between.
"""

from __future__ import annotations

from typing import Any, List

from . import key_names
from .errors import nothing_sent
from .held import KEY, Ledger
from .keymap import Keymap
from .x11 import Connection, core, xkb, xtest


class LiftedKeys:
    """All keys up for the length of a ``with`` block.

    ``strangers`` names the keys that no ledger entry of ours explains (a tool that died, for instance): they are
    lifted too and stay up.

    Raises:
        ActionFailed: on entering, when a modifier stays down: it is held on a real keyboard, or by another device.
    """

    def __init__(self, conn: Connection, ledger: Ledger, keymap: Keymap) -> None:
        self._conn = conn
        self._ledger = ledger
        self._keymap = keymap
        self._ours: List[int] = []
        self.strangers: List[str] = []

    def __enter__(self) -> "LiftedKeys":
        down = core.query_keymap(self._conn)
        if not down and not xkb.get_state(self._conn).base_modifiers:
            return self
        held = [code for kind, code in self._ledger.held if kind == KEY]
        self._ours = [code for code in held if code in down]
        others = [code for code in down if code not in held]
        for code in [*reversed(self._ours), *others]:
            xtest.fake_input(self._conn, xtest.KEY_RELEASE, code)
        self._conn.sync()
        still = [code for code in core.query_keymap(self._conn) if self._keymap.modifier_of(code)]
        if still or xkb.get_state(self._conn).base_modifiers:
            self._press_again()
            names = ", ".join(self._name(code) for code in still) or "a modifier key"
            raise nothing_sent(f"{names} is held down on the keyboard and can not be lifted: let it go and try again")
        self.strangers = [self._name(code) for code in others]
        return self

    def __exit__(self, *_: Any) -> None:
        if not self._conn.closed:
            self._press_again()

    def _press_again(self) -> None:
        for code in self._ours:
            xtest.fake_input(self._conn, xtest.KEY_PRESS, code)
        if self._ours:
            self._conn.sync()

    def _name(self, code: int) -> str:
        number = self._keymap.keysym_at(code, 0, 0)
        return key_names.name_of(number) if number else f"keycode {code}"
