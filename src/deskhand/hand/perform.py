"""One prepared action, carried out: a table of handlers, one for each kind of action.

What few batches need is imported by its handler: the one-file form compiles what it imports, at every start.

Each handler gives the facts its result carries beside ``action`` and ``status``, or raises.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

from .display import Display
from .envelope import Expect
from .errors import ActionFailed, RequestFailed, Unsupported, nothing_sent
from .preflight import Step
from .settle import Input
from .x11 import core

if TYPE_CHECKING:
    from .focus import FocusTarget

Facts = Dict[str, Any]
#: These change nothing on the screen, so nothing is waited for after them.
LOOKING = ("wait", "cursor_position", "screenshot", "zoom", "clipboard_get", "clipboard_set")


class Performer:
    """Carries out the actions of one batch on one display, and knows what the last of them touched.

    ``sent`` turns true before the first event, request or process start that can not be taken back.
    """

    def __init__(self, display: Display, expect: Expect, session: Optional[str], alive: Callable[[], bool]) -> None:
        self._display = display
        self._conn = display.conn
        self._expect = expect
        self._session = session
        self._alive = alive
        self.sent = False
        self.last: Optional[Input] = None
        #: Set when a launch could not get the focus: no key may follow in this batch.
        self._keys_refused: Optional[str] = None
        self._lifted: List[str] = []

    def perform(self, step: Step) -> Facts:
        """Carry out one action.

        Raises:
            ActionFailed: it did not work; ``sent`` on this object says whether anything may have reached the display.
        """
        action = step.action
        self._touched: List[int] = []
        began = time.monotonic()
        facts = _HANDLERS[action.action](self, step)
        if action.action not in LOOKING:
            self.last = Input(
                time.monotonic(),
                self._touched,
                hover=action.action == "move",
                scroll=action.action == "scroll",
                loads=action.action not in ("move", "scroll", "type"),
                starts=action.action in ("click", "key", "mouse_up"),
                presses=_presses_button(step),
                launched=action.action == "launch",
                began=began,
            )
        return facts

    @contextlib.contextmanager
    def _sending(self) -> Iterator[None]:
        """Something may be sent inside, unless what is raised says that nothing was."""
        before, self.sent = self.sent, True
        try:
            yield
        except (ActionFailed, Unsupported) as error:
            if error.sent == "none":
                self.sent = before
            raise

    # -- pointer ----------------------------------------------------------------------------------------------------

    def click(self, step: Step) -> Facts:
        point = self._go(step.point)
        self._guard_pointer()
        with self._modifiers(step.modifiers), self._sending():
            self._display.pointer.click(step.action.button, step.action.count)
        return {"point": list(point)}

    def move(self, step: Step) -> Facts:
        return {"point": list(self._go(step.point))}

    def mouse_down(self, step: Step) -> Facts:
        point = self._go(step.point)
        self._guard_pointer()
        with self._sending():
            self._display.pointer.press(step.action.button)
        return {"point": list(point)}

    def mouse_up(self, step: Step) -> Facts:
        point = self._go(step.point)
        with self._sending():
            self._display.pointer.release(step.action.button)
        return {"point": list(point)}

    def drag(self, step: Step) -> Facts:
        self._go(step.path[0])
        self._guard_pointer()
        with self._modifiers(step.modifiers), self._sending():
            self._display.pointer.drag(step.path, step.action.button)
        self._touched.append(self._under_pointer())
        return {"point": list(step.path[-1]), "path": [list(point) for point in step.path]}

    def scroll(self, step: Step) -> Facts:
        point = self._go(step.point)
        self._guard_pointer()
        dx, dy = step.action.notches()
        with self._modifiers(step.modifiers), self._sending():
            self._display.pointer.scroll(dx, dy)
        return {"point": list(point), "notches": [dx, dy]}

    def _go(self, point: Optional[Tuple[int, int]]) -> Tuple[int, int]:
        """Move there (or stay), and remember what is under the pointer now: a click may close it."""
        if point is None:
            point = self._display.pointer.position()
        else:
            self.sent = True
            self._display.pointer.move(point)
        self._touched.append(self._under_pointer())
        return point

    def _under_pointer(self) -> int:
        """The innermost window under the pointer."""
        window = self._conn.root
        try:
            for _ in range(32):
                child = core.query_pointer(self._conn, window).child
                if not child:
                    break
                window = child
        except RequestFailed:
            pass
        return window

    def _guard_pointer(self) -> None:
        wanted = self._expect.window
        if wanted is None:
            return
        from . import windows

        if windows.active_window(self._conn) == wanted:
            return
        if not windows.is_inside(self._conn, self._touched[-1], wanted):
            raise ActionFailed(
                f"the window {wanted} is neither active nor under the pointer: look again before clicking"
            )

    # -- keyboard ---------------------------------------------------------------------------------------------------

    def type(self, step: Step) -> Facts:
        action, look = step.action, self._keyboard_target
        with self._sending():
            return self._display.keyboard.type_text(action.text, method=action.method, secret=action.secret, look=look)

    def key(self, step: Step) -> Facts:
        with self._sending():
            return self._display.keyboard.key(step.chord, repeat=step.action.repeat, look=self._keyboard_target)

    def hold_key(self, step: Step) -> Facts:
        seconds, look = float(step.action.seconds), self._keyboard_target
        with self._sending():
            facts = self._display.keyboard.hold(step.chord, seconds, self._alive, look=look)
        if not self._alive():
            raise ActionFailed("the client has gone away: the keys were let go early")
        return facts

    def key_down(self, step: Step) -> Facts:
        with self._sending():
            target = self._keyboard_target()
            return {**target.facts(), **self._display.keyboard.down(step.chord)}

    def key_up(self, step: Step) -> Facts:
        self.sent = True
        return self._display.keyboard.up(step.chord)

    def _keyboard_target(self) -> FocusTarget:
        """The window that will get the keys; or the reason why none may be sent."""
        from . import focus, windows

        if self._keys_refused is not None:
            raise nothing_sent(self._keys_refused)

        target = focus.keyboard_target(self._conn)
        self._touched.append(target.window)
        wanted = self._expect.window
        if wanted is not None and wanted not in (target.top_level, windows.active_window(self._conn)):
            raise nothing_sent(f"the window {wanted} does not have the keyboard focus: focus it before typing")
        return target

    @contextlib.contextmanager
    def _modifiers(self, chords: List[Any]) -> Iterator[None]:
        """Hold these keys down inside. What ``key_down`` already holds stays down afterwards."""
        held: List[Any] = []
        try:
            for chord in chords:
                with self._sending():
                    pressed = self._display.keyboard.down(chord)["pressed"]
                held.append(chord._replace(keys=tuple(key for key in chord.keys if key.name in pressed)))
            yield
        finally:
            if not self._conn.closed:
                for chord in reversed(held):
                    self._display.keyboard.up(chord)

    # -- waiting ------------------------------------------------------------------------------------------------------

    def wait(self, step: Step) -> Facts:
        """Sleep, while events are read; a client that goes away ends it."""
        deadline = time.monotonic() + float(step.action.seconds)
        while time.monotonic() < deadline and self._alive():
            # Well within the time a cancelled batch is given to end by itself.
            self._conn.wait(lambda: not self._alive(), min(0.1, max(0.0, deadline - time.monotonic())))
        if time.monotonic() < deadline:
            raise ActionFailed(f"the client has gone away before {step.action.seconds:g} s were over")
        return {}

    def wait_window(self, step: Step) -> Facts:
        action = step.action
        from . import windows

        found = windows.wait_window(self._conn, action.title, action.app, action.focused, float(action.timeout))
        self._touched.append(int(found["id"]))
        return {"window": found}

    # -- applications and windows -------------------------------------------------------------------------------------

    def launch(self, step: Step) -> Facts:
        from . import launch

        action = step.action
        assert step.entry is not None
        with self._sending():
            answer = launch.launch(
                self._conn,
                self._display.pings,
                step.entry,
                display=self._display.name,
                xauthority=self._display.xauthority,
                timeout=float(action.timeout),
                keep_open=action.keep_open,
                session=self._session,
                launcher=self._display.launcher,
            )
        window = answer.get("window") or {}
        self._touched.append(int(window.get("id", 0)))
        self._keys_refused = None
        if not answer.get("focused"):
            self._keys_refused = (
                f"{step.entry.name} opened a window that did not get the keyboard focus: focus it before typing"
            )
        return dict(answer)

    def quit(self, step: Step) -> Facts:
        from . import quit

        action = step.action
        self.sent = True
        app = step.entry.id if step.entry is not None else action.app
        facts = quit.quit_application(
            self._conn,
            app=app,
            window=action.window,
            force=action.force,
            timeout=float(action.timeout),
            display=self._display.name,
            session=self._session,
            entry=step.entry,
            launcher=self._display.launcher,
        )
        if step.unknown and facts["outcome"] == "not_running":
            facts["unknown"] = step.unknown  # the name may be misspelt
        return facts

    def focus(self, step: Step) -> Facts:
        from . import window_actions

        self._about_to_touch(step.action.window)
        self._touched.append(step.action.window)
        facts = window_actions.activate(self._conn, step.action.window)
        self._keys_refused = None
        return facts

    def close(self, step: Step) -> Facts:
        from . import window_actions

        self._about_to_touch(step.action.window)
        return window_actions.close(self._conn, step.action.window)

    def resize(self, step: Step) -> Facts:
        from . import window_actions

        self._about_to_touch(step.action.window)
        action = step.action
        self._touched.append(action.window)
        wanted = {name: getattr(action, name) for name in ("x", "y", "width", "height")}
        facts = window_actions.resize(
            self._conn, action.window, **{name: value for name, value in wanted.items() if value is not None}
        )
        return {"window": facts}

    def _about_to_touch(self, window: int) -> None:
        """A window that is not there is an error before anything is sent."""
        from . import windows

        windows.get_window(self._conn, window)
        self.sent = True

    # -- clipboard and looking ----------------------------------------------------------------------------------------

    def clipboard_set(self, step: Step) -> Facts:
        from . import clipboard

        self.sent = True
        clipboard.set_text(self._conn, step.action.text, self._display.xauthority)
        return {}

    def clipboard_get(self, step: Step) -> Facts:
        from . import clipboard

        return {"text": clipboard.get_text(self._conn)}

    def cursor_position(self, step: Step) -> Facts:
        return {"point": list(self._display.pointer.position())}

    def look(self, step: Step) -> Facts:
        """``zoom`` and ``screenshot``: the batch takes the picture, after the screen has settled."""
        return {}


def _presses_button(step: Step) -> bool:
    """Whether the last key of it presses a button where one has the focus."""
    if step.action.action == "type":
        return bool(step.action.text.endswith(("\n", "\r")))
    return step.action.action == "key" and bool(step.chord.presses_button)


_HANDLERS: Dict[str, Callable[[Performer, Step], Facts]] = {
    "click": Performer.click,
    "move": Performer.move,
    "mouse_down": Performer.mouse_down,
    "mouse_up": Performer.mouse_up,
    "drag": Performer.drag,
    "scroll": Performer.scroll,
    "type": Performer.type,
    "key": Performer.key,
    "hold_key": Performer.hold_key,
    "key_down": Performer.key_down,
    "key_up": Performer.key_up,
    "wait": Performer.wait,
    "wait_window": Performer.wait_window,
    "launch": Performer.launch,
    "quit": Performer.quit,
    "focus": Performer.focus,
    "close": Performer.close,
    "resize": Performer.resize,
    "clipboard_set": Performer.clipboard_set,
    "clipboard_get": Performer.clipboard_get,
    "cursor_position": Performer.cursor_position,
    "zoom": Performer.look,
    "screenshot": Performer.look,
}
