"""A pretend desktop: what each action would do where every application is a window that shows what is typed."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deskhand.hand.errors import ActionFailed
from deskhand.hand.pixels import Layout
from deskhand.hand.preflight import Step
from deskhand.hand.screen import Capture, Region

Facts = dict[str, Any]
_BACKGROUND = 0x305070
_LAYOUT = Layout(4, 32, False, (0xFF0000, 0xFF00, 0xFF))


@dataclass(eq=False)
class PretendWindow:
    """One open window; ``text`` is what was typed into it."""

    id: int
    title: str
    app_id: str
    rect: tuple[int, int, int, int]
    text: str = ""

    def facts(self, active: bool) -> Facts:
        """In the shape of ``Backend.windows``."""
        return {
            "id": self.id,
            "title": self.title,
            "app_id": self.app_id,
            "class": self.app_id,
            "pid": None,
            "rect": list(self.rect),
            "frame": [0, 0, 0, 0],
            "state": [],
            "desktop": 0,
            "active": active,
            "viewable": True,
            "type": "normal",
        }

    def holds(self, x: int, y: int) -> bool:
        left, top, width, height = self.rect
        return left <= x < left + width and top <= y < top + height


class PretendDesktop:
    """``windows`` are in stacking order from the bottom; the last one is active and gets the keys."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self.windows: list[PretendWindow] = []
        self.pointer = (size[0] // 2, size[1] // 2)
        self.clipboard = ""
        #: The keys and buttons that are down, by name, in the order of their presses.
        self.held: list[str] = []
        self._last_id = 0

    @property
    def active(self) -> PretendWindow | None:
        return self.windows[-1] if self.windows else None

    def open(self, title: str, app_id: str) -> PretendWindow:
        """A new window, on top."""
        self._last_id += 1
        step = 24 * (self._last_id % 8)
        rect = (step, step, max(1, self.size[0] * 3 // 4), max(1, self.size[1] * 3 // 4))
        self.windows.append(PretendWindow(self._last_id, title, app_id, rect))
        return self.windows[-1]

    def release_all(self) -> list[str]:
        """Let go of everything that is held; gives what was."""
        released, self.held = self.held[::-1], []
        return released

    def perform(self, step: Step, expected_window: int | None) -> Facts:
        """Carry out one action; waiting takes no time.

        Raises:
            ActionFailed: It does not work here.
        """
        name = step.action.action
        if expected_window is not None and name in _GUARDED:
            active = self.active
            if active is None or active.id != expected_window:
                raise ActionFailed(f"the window {expected_window} is not active: look again before acting")
        return _HANDLERS[name](self, step)

    def picture(self, region: Region | None) -> Capture:
        """The screen: each window is a rectangle whose colour changes with its title and text."""
        width, height = self.size
        rows = [[struct.pack("<I", _BACKGROUND) * width] for _ in range(height)]
        for window in self.windows:
            left, top, wide, high = window.rect
            x0, x1 = max(0, left), min(width, left + wide)
            colour = zlib.crc32(f"{window.id} {window.title} {window.text}".encode()) & 0xFFFFFF
            for y in range(max(0, top), min(height, top + high) if x1 > x0 else 0):
                row = rows[y][0]
                rows[y][0] = row[: 4 * x0] + struct.pack("<I", colour) * (x1 - x0) + row[4 * x1 :]
        x0, y0, x1, y1 = region or (0, 0, width, height)
        data = b"".join(row[0][4 * x0 : 4 * x1] for row in rows[y0:y1])
        return Capture(data, (x0, y0, x1, y1), self.size, _LAYOUT, time.monotonic(), self.pointer)

    # -- the actions ------------------------------------------------------------------------------------------------

    def _point(self, step: Step) -> Facts:
        if step.point is not None:
            self.pointer = step.point
        return {"point": list(self.pointer)}

    def _click(self, step: Step) -> Facts:
        facts = self._point(step)
        under = [window for window in self.windows if window.holds(*self.pointer)]
        if under:
            self._raise(under[-1])
        return facts

    def _mouse_down(self, step: Step) -> Facts:
        facts = self._point(step)
        self._hold(step.action.button)
        return facts

    def _mouse_up(self, step: Step) -> Facts:
        facts = self._point(step)
        self._let_go(step.action.button)
        return facts

    def _drag(self, step: Step) -> Facts:
        self.pointer = step.path[-1]
        return {"point": list(self.pointer), "path": [list(point) for point in step.path]}

    def _scroll(self, step: Step) -> Facts:
        return {**self._point(step), "notches": list(step.action.notches())}

    def _type(self, step: Step) -> Facts:
        window = self._focused()
        window.text += step.action.text.replace("\r\n", "\n")
        return {**_target(window), "typed": len(step.action.text), "confirmed": True}

    def _key(self, step: Step) -> Facts:
        window = self._focused()
        names = [key.name for key in step.chord.keys]
        for _ in range(getattr(step.action, "repeat", 1)):
            if names in (["Return"], ["Tab"]):
                window.text += "\n" if names == ["Return"] else "\t"
            elif names == ["BackSpace"]:
                window.text = window.text[:-1]
        return _target(window)

    def _key_down(self, step: Step) -> Facts:
        window = self._focused()
        return {**_target(window), "pressed": [key.name for key in step.chord.keys if self._hold(key.name)]}

    def _key_up(self, step: Step) -> Facts:
        return {"released": [key.name for key in reversed(step.chord.keys) if self._let_go(key.name)]}

    def _wait_window(self, step: Step) -> Facts:
        title, app = (str(value or "").casefold() for value in (step.action.title, step.action.app))
        for window in reversed(self.windows):
            if title in window.title.casefold() and app in ("", window.app_id.casefold(), window.title.casefold()):
                return {"window": window.facts(window is self.active)}
        raise ActionFailed(f"no window {step.action.title or step.action.app!r} came up: look what is there")

    def _launch(self, step: Step) -> Facts:
        assert step.entry is not None
        window = self.open(step.entry.name, step.entry.id)
        brief = {"id": window.id, "title": window.title, "app_id": window.app_id, "rect": list(window.rect)}
        facts = {"outcome": "window", "window": brief, "matched": True, "focused": True, "elapsed_ms": 0}
        return {**facts, "id": step.entry.id, "name": step.entry.name, "opener": "pretend", "pid": None, "group": None}

    def _quit(self, step: Step) -> Facts:
        app = step.entry.id if step.entry is not None else step.action.app
        gone = [one for one in self.windows if one.id == step.action.window or (app and one.app_id == app)]
        if not gone:
            return {"outcome": "not_running", **({"unknown": step.unknown} if step.unknown else {})}
        self.windows = [one for one in self.windows if one not in gone]
        return {"outcome": "closed", "windows": [one.id for one in gone]}

    def _focus(self, step: Step) -> Facts:
        window = self._named(step.action.window)
        self._raise(window)
        return {"window": window.id}

    def _close(self, step: Step) -> Facts:
        self.windows.remove(self._named(step.action.window))
        return {"window": step.action.window}

    def _resize(self, step: Step) -> Facts:
        window, action = self._named(step.action.window), step.action
        given = (action.x, action.y, action.width, action.height)
        x, y, width, height = (old if new is None else new for old, new in zip(window.rect, given, strict=True))
        window.rect = (x, y, width, height)
        return {"window": window.facts(window is self.active)}

    def _clipboard_set(self, step: Step) -> Facts:
        self.clipboard = step.action.text
        return {}

    def _clipboard_get(self, step: Step) -> Facts:
        return {"text": self.clipboard}

    def _nothing(self, step: Step) -> Facts:
        return {}

    def _focused(self) -> PretendWindow:
        if self.active is None:
            raise _not_sent("no window has the keyboard focus: open or click one first")
        return self.active

    def _named(self, id: int) -> PretendWindow:
        for window in self.windows:
            if window.id == id:
                return window
        raise _not_sent(f"there is no window {id}: ask for the list of windows")

    def _raise(self, window: PretendWindow) -> None:
        self.windows.remove(window)
        self.windows.append(window)

    def _hold(self, name: str) -> bool:
        if name in self.held:
            return False
        self.held.append(name)
        return True

    def _let_go(self, name: str) -> bool:
        if name not in self.held:
            return False
        self.held.remove(name)
        return True


def _target(window: PretendWindow) -> Facts:
    return {"window": window.id, "title": window.title}


def _not_sent(message: str) -> ActionFailed:
    error = ActionFailed(message)
    error.sent = "none"
    return error


_GUARDED = ("click", "mouse_down", "drag", "scroll", "type", "key", "hold_key", "key_down")
_HANDLERS: dict[str, Callable[[PretendDesktop, Step], Facts]] = {
    "click": PretendDesktop._click,
    "move": PretendDesktop._point,
    "mouse_down": PretendDesktop._mouse_down,
    "mouse_up": PretendDesktop._mouse_up,
    "drag": PretendDesktop._drag,
    "scroll": PretendDesktop._scroll,
    "type": PretendDesktop._type,
    "key": PretendDesktop._key,
    "hold_key": PretendDesktop._key,
    "key_down": PretendDesktop._key_down,
    "key_up": PretendDesktop._key_up,
    "wait": PretendDesktop._nothing,
    "wait_window": PretendDesktop._wait_window,
    "launch": PretendDesktop._launch,
    "quit": PretendDesktop._quit,
    "focus": PretendDesktop._focus,
    "close": PretendDesktop._close,
    "resize": PretendDesktop._resize,
    "clipboard_set": PretendDesktop._clipboard_set,
    "clipboard_get": PretendDesktop._clipboard_get,
    "zoom": PretendDesktop._nothing,
    "cursor_position": PretendDesktop._point,
    "screenshot": PretendDesktop._nothing,
}
