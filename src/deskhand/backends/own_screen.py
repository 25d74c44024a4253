"""The person's own display: the agent gives way to them.

::

    async with Session(OwnScreen(), approve=ask_the_person) as session:
        ...

It waits while the person types or moves the mouse, stops when they begin, does nothing while the screen is locked, and
nothing more once they have pressed the stop key.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from deskhand.approvals import OWN_SCREEN, Declined, Policy
from deskhand.backends.base import Envelope, Outcome
from deskhand.backends.lease import DesktopLease, DisplayLease
from deskhand.backends.local import LocalDisplay
from deskhand.errors import ActionFailed, BatchRefused, DisplayLost, Unsupported
from deskhand.hand import launch_environment
from deskhand.hand.display import Display
from deskhand.hand.envelope import Batch, parse_batch
from deskhand.hand.hand import Hand
from deskhand.hand.perform import LOOKING
from deskhand.hand.person import Person
from deskhand.hand.screen_lock import ScreenLock, locked_on_bus
from deskhand.hand.stop_key import StopKey

if TYPE_CHECKING:
    from deskhand.hand.picture import Picture

#: Seconds that an action has to come to its end once the person has begun, before its connection is cut.
_GRACE = 0.3
#: Seconds between two questions to the buses while something has the keyboard grabbed: each starts a program.
_BUS_EVERY = 1.0
#: These do nothing, so the person's input does not matter to them.
_HARMLESS = frozenset(LOOKING) - {"clipboard_set"} | {"wait_window"}
_NO_LAUNCHING = (
    "applications can not be opened or ended by name on this screen: use the computer's own launcher (the Super key, or"
    " the application menu)"
)
_BUSY = "the person is using the computer"
_LOOK_AGAIN = "wait a little, look again, and go on from what you see"
#: What a backend of a person's screen may do with a batch.
_Phase = Literal["idle", "looking", "acting"]


class OwnScreen(LocalDisplay):
    """The X display somebody works at (None: DISPLAY), shared with them.

    - A batch that types or clicks waits until the person has been quiet for ``quiet`` seconds, ``patience`` seconds at
      most; then it is refused. One that is under way stops at its next action when the person begins, or in the middle
      of a long one: that action fails, the rest is skipped, and what was held is released. The next batch waits anew.
    - While the screen is locked, or another login session has the console, everything is refused.
    - The stop key, on a keyboard of the person's, ends it: what is held is released, and every further batch is
      declined until ``resume`` is called.

    Args:
        display: The display's name.
        xauthority: The cookie file; None: what the hand finds by itself.
        session: Names what may stay held from one process to the next.
        quiet: Seconds without input of the person before a batch is begun.
        patience: Seconds that a batch waits for that.
        stop_key: Key or chord; None: no stop key.
        stop_presses: How many times it is pressed, within two seconds.
        allow_launch: Let ``launch``, ``quit`` and ``apps`` work here too.
    """

    def __init__(
        self,
        display: str | None = None,
        xauthority: str | None = None,
        session: str | None = None,
        *,
        quiet: float = 2.0,
        patience: float = 30.0,
        stop_key: str | None = "Escape",
        stop_presses: int = 3,
        allow_launch: bool = False,
    ) -> None:
        if not 0 <= quiet < 3600 or not 0 <= patience < 3600:
            raise ValueError("quiet and patience must be 0 or more seconds, and less than an hour")
        super().__init__(display, xauthority, session)
        self._hand: _CourteousHand = _CourteousHand(display, xauthority, session, self._check, self._was_cut)
        self._display_name = display
        self._xauthority = xauthority
        self._quiet = quiet
        self._patience = patience
        self._stop_key = None if stop_key is None else StopKey(stop_key, stop_presses)
        self._allow_launch = allow_launch
        self._person: Person | None = None
        self._lock: ScreenLock | None = None
        self._begin_turn = asyncio.Lock()
        self._stop_told: Callable[[], object] = lambda: None
        # What the person's thread and the hand's both look at.
        self._guard = threading.Lock()
        self._stopped = self._interrupted = self._cut = False
        self._phase: _Phase = "idle"
        self._began = 0.0
        self._bus_asked = float("-inf")

    @property
    def policy(self) -> Policy:
        """A person is asked before the first thing that types or clicks."""
        return OWN_SCREEN

    @property
    def stopped(self) -> bool:
        """Whether the person has pressed the stop key."""
        return self._stopped

    def resume(self) -> None:
        """The person allows it again, after the stop key."""
        self._stopped = False

    async def info(self) -> dict[str, Any]:
        info = await super().info()
        return info if self._allow_launch else {**info, "launching": "not_here"}

    async def act(self, batch: Envelope) -> Outcome:
        """See ``Backend.act``.

        Raises:
            BatchRefused: Also while the person does not pause, or the screen is locked.
            Declined: The person has pressed the stop key.
            Unsupported: It opens or ends applications, which is not allowed here.
        """
        self._check_open()
        parsed = parse_batch(dict(batch))
        self._check_launching(parsed)
        acting = any(action.action not in _HARMLESS for action in parsed.actions)
        async with self._begin_turn:
            began = await self._wait_for_the_person(acting)
            with self._guard:
                self._interrupted = self._cut = False
                self._began = began
                self._phase = "acting" if acting else "looking"
            try:
                return await super().act(batch)
            finally:
                self._phase = "idle"

    async def apps(self) -> list[dict[str, str]]:
        if not self._allow_launch:
            raise Unsupported(_NO_LAUNCHING)
        return await super().apps()

    async def windows(self) -> list[dict[str, Any]]:
        """See ``Backend.windows``.

        Raises:
            BatchRefused: The screen is locked, or the person has pressed the stop key.
        """
        self._check_open()
        await self._wait_for_the_person(acting=False)
        return await super().windows()

    def lease(self, holder: str) -> DesktopLease:
        return _PatientLease(self._display_name, self._xauthority, holder, self._patience)

    async def aclose(self) -> None:
        try:
            await super().aclose()
        finally:
            person, self._person = self._person, None
            if person is not None:
                await asyncio.to_thread(person.close)

    # -- before a batch -----------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this backend is closed")

    def _check_launching(self, batch: Batch) -> None:
        for index, action in enumerate(batch.actions):
            if action.action in ("launch", "quit") and not self._allow_launch:
                raise Unsupported(f"action {index} ({action.action}): {_NO_LAUNCHING}")

    async def _wait_for_the_person(self, acting: bool) -> float:
        """Return when a batch may begin; gives the moment (``time.monotonic()``) when the person was looked for.

        Raises:
            Declined, BatchRefused: It may not.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        stopped = asyncio.Event()
        while True:
            person = await self._run(self._watched)
            self._check_stopped()
            locked = await self._run(self._locked)
            if locked:
                raise BatchRefused(_in_words(locked))
            looked = time.monotonic()
            busy = person.busy_for(self._quiet) if acting else 0.0
            if busy <= 0:
                return looked
            left = until - loop.time()
            if left <= 0:
                raise BatchRefused(
                    f"{_BUSY}, and did not pause for {self._quiet:g} s within {self._patience:g} s: {_LOOK_AGAIN}"
                )
            stopped.clear()
            self._stop_told = lambda: loop.call_soon_threadsafe(stopped.set)
            if not self._stopped:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopped.wait(), min(busy, left))

    def _watched(self) -> Person:
        """The watch over the person, begun anew when the display was lost; in the hand's thread."""
        if self._person is None or self._person.lost:
            self._person = Person(self._display_name, self._xauthority, self._stop_key, self._person_did)
        return self._person

    def _check_stopped(self) -> None:
        if self._stopped:
            raise Declined(self._stop_words)

    @property
    def _stop_words(self) -> str:
        return (
            f"the person has pressed the stop key ({self._stop_key}): leave this computer alone until they allow it"
            " again"
        )

    # -- in the hand's thread -----------------------------------------------------------------------------------------

    def _locked(self, between_actions: bool = False) -> str | None:
        """What tells that the screen is locked; the buses are asked between actions only if a grab makes it likely."""
        # In the middle of a batch nothing connects anew: the next action tells that the display is lost.
        display = self._hand.current if between_actions else self._hand.answering()
        if display is None:
            return None
        if self._lock is None or self._lock.conn is not display.conn:
            self._lock = ScreenLock(display.conn)
        found = self._lock.seen()
        if found is not None:
            return found
        now = time.monotonic()
        if between_actions and (now - self._bus_asked < _BUS_EVERY or not self._lock.keyboard_grabbed()):
            return None
        self._bus_asked = now
        place = launch_environment.find(display.conn, display.name, display.xauthority)
        return locked_on_bus(place.env, place.account)

    def _check(self) -> None:
        """Called before every action, and while one waits.

        Raises:
            ActionFailed: The batch must stop here.
        """
        if self._stopped:
            raise ActionFailed(self._stop_words)
        person = self._person
        if person is None or person.lost:
            raise ActionFailed("what the person does can not be seen any more: the rest of the batch was not run")
        if self._phase == "acting" and person.active_since(self._began):
            raise ActionFailed(self._busy_words)
        locked = self._locked(between_actions=True)
        if locked:
            raise ActionFailed(_in_words(locked))

    def _was_cut(self) -> str | None:
        """Why the connection was cut, when we did that."""
        if not self._cut:
            return None
        self._release()
        return self._stop_words if self._stopped else self._busy_words

    @property
    def _busy_words(self) -> str:
        return f"{_BUSY}: the batch stopped here, and what it held was released; {_LOOK_AGAIN}"

    def _release_held(self) -> None:
        """The person has come while something is held between two batches."""
        if self._hand.held:
            self._release()

    # -- in the person's thread ---------------------------------------------------------------------------------------

    def _person_did(self, stop: bool) -> None:
        with self._guard:
            if stop and not self._stopped:
                self._stopped = True
                with contextlib.suppress(RuntimeError):  # its event loop has ended
                    self._stop_told()
            elif self._interrupted:
                return
            self._interrupted = True
            acting = self._phase == "acting"
        if acting:
            timer = threading.Timer(_GRACE, self._cut_short, [self._began])
            timer.daemon = True
            timer.start()
        else:
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                self._submit(self._release_held)

    def _cut_short(self, began: float) -> None:
        """An action goes on though the person has begun: a long text, a drag. What only waits holds nothing down."""
        with self._guard:
            if self._phase == "acting" and self._began == began and self._hand.held:
                self._cut = True
                self._hand.cut()


class _CourteousHand(Hand):
    """A hand that asks before every action whether it may go on."""

    def __init__(
        self,
        display: str | None,
        xauthority: str | None,
        session: str | None,
        check: Callable[[], None],
        was_cut: Callable[[], str | None],
    ) -> None:
        super().__init__(display, xauthority, session)
        self._check = check
        self._was_cut = was_cut

    @property
    def current(self) -> Display | None:
        """The display as it is connected now, if it is."""
        return self._display if self.connected else None

    @property
    def held(self) -> bool:
        """Whether anything is down by our doing."""
        display = self.current
        return display is not None and bool(display.ledger.held)

    def answering(self) -> Display:
        """The display, connected anew where the connection was lost while nobody looked."""
        return self._answering()

    def act(self, request: Any, alive: Callable[[], bool] = lambda: True) -> tuple[dict[str, Any], Picture | None]:
        def may_go_on() -> bool:
            if not alive():
                return False
            self._check()
            return True

        try:
            return super().act(request, may_go_on)
        except DisplayLost as error:
            words = self._was_cut()
            if words is None:
                raise
            answer = error.facts.get("answer")
            if answer is None:
                raise BatchRefused(words) from None
            return _interrupted(answer, words), None


class _PatientLease(DisplayLease):
    """One that does not run out while a batch waits for the person."""

    def __init__(self, display: str | None, xauthority: str | None, holder: str, patience: float) -> None:
        super().__init__(display, xauthority, holder)
        self._patience = patience

    async def take(self, seconds: float, wait: float = 0.0) -> None:
        await super().take(seconds + self._patience, wait)


def _interrupted(answer: dict[str, Any], words: str) -> dict[str, Any]:
    """The answer of a batch whose connection was cut for the person's sake: not a display that was lost."""
    answer = {name: value for name, value in answer.items() if name != "error"}
    if answer["sent"] == "unknown":
        answer["sent"] = "part"
    failed = [result for result in answer["results"] if result["status"] == "failed"]
    if failed:
        failed[0]["error"] = words
    else:
        answer["error"] = words
    return answer


def _in_words(locked: str) -> str:
    return f"the screen is locked ({locked}): somebody has to unlock it before anything can be done here"
