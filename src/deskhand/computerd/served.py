"""The one desktop that computerd serves: a hand that acts, and another that only looks.

Two, because a picture or a list of windows must not wait for the end of somebody's batch. Each has its own X connection
in its own thread, and connects again when the display was lost, also to one of another size.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from deskhand.backends.base import Envelope, Outcome, in_words
from deskhand.backends.local import LocalDisplay, RunningBatch
from deskhand.computerd.leases import Leases
from deskhand.computerd.problems import Problem
from deskhand.errors import BackendError, BatchRefused, DeskhandError, DesktopInUse, DisplayLost, DisplayTimeout
from deskhand.hand import applications
from deskhand.hand import lease as display_lease
from deskhand.hand.display import Display
from deskhand.hand.envelope import PictureWish
from deskhand.hand.errors import in_one_line
from deskhand.hand.hand import Hand
from deskhand.hand.held import KEEP_SECONDS
from deskhand.hand.launcher import Launcher, NoLauncher
from deskhand.hand.picture import Picture
from deskhand.hand.screen import Region

T = TypeVar("T")

#: What an agent is told while a person acts.
TAKEN_OVER = "a person has taken over at the live view: wait until they give it back"

#: Batches that may wait for their turn.
MOST_WAITING = 32
#: Sessions whose newest picture is remembered.
_MOST_SESSIONS = 256
#: Seconds between two attempts to reach a display that is not there: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


@dataclass(frozen=True)
class Told:
    """What those who watch are told: what a batch of a session came to, and where its budget stands if it is known.

    ``batch`` is None when it was no batch of ours, but a session's own word; ``elapsed_s`` are the seconds it took.
    """

    session: str
    ok: bool
    text: str
    time: float = field(default_factory=time.time)
    used: int | None = None
    limit: int | None = None
    batch: Envelope | None = None
    answer: dict[str, Any] | None = None
    picture: bytes | None = None
    elapsed_s: float = 0.0

    @property
    def sent(self) -> str | None:
        """How much was sent; None when it was no batch."""
        return str(self.answer["sent"]) if self.answer is not None else None


def told_of(session: str, error: Exception, batch: Any = None, elapsed_s: float = 0.0) -> Told:
    """A batch that came to an error."""
    text = in_one_line(error)
    known = error.facts.get("answer", {}) if isinstance(error, DeskhandError) else {}
    sent = error.sent if isinstance(error, DeskhandError) else "unknown"
    answer = {"results": [], **known, "ok": False, "sent": sent, "error": text}
    return Told(session, False, text, batch=_mapping(batch), answer=answer, elapsed_s=elapsed_s)


def _mapping(batch: Any) -> Envelope:
    return batch if isinstance(batch, dict) else {"actions": batch}


@dataclass
class _Session:
    newest: int | None = None
    #: What was released because another session's batch came: told with the session's next answer.
    released: list[str] = field(default_factory=list)


class ServedDesktop:
    """The desktop of ``display`` (None: DISPLAY).

    Args:
        display: Its name.
        xauthority: The cookie's file.
        make_launcher: Makes who lists, starts and ends applications; each hand has one. None: nobody does.
    """

    def __init__(
        self,
        display: str | None,
        xauthority: str | None = None,
        make_launcher: Callable[[], Launcher | None] = NoLauncher,
    ) -> None:
        acts, looks = make_launcher(), make_launcher()
        self.has_launcher = not isinstance(acts, NoLauncher)
        self._launcher = looks
        self._listing = ThreadPoolExecutor(1, thread_name_prefix="deskhand-listing")
        self._listed: Future[dict[str, Any]] | None = None
        self._acting = LocalDisplay(display, xauthority, launcher=acts)
        self._looking = LocalDisplay(display, xauthority, launcher=looks)
        self.place = (display, xauthority)
        self.leases = Leases(display, xauthority)
        self._sessions: dict[str, _Session] = {}
        self._looking_up = threading.Lock()
        self._holding = ""  # the session whose keys and buttons may be down
        #: Each with its batch, and when it was begun, CLOCK_MONOTONIC.
        self._waiting: dict[RunningBatch, tuple[Any, float]] = {}
        self._releasing: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._reaching: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[Told], None]] = []
        self._stopped = False
        #: The session of the person who has taken over; None when nobody has. Read in the hand's thread too.
        self.person: str | None = None
        self._interrupted: set[RunningBatch] = set()
        #: What was told last; None before anything was.
        self.last_told: Told | None = None

    async def __aenter__(self) -> ServedDesktop:
        # What processes of ours that are gone left pressed is released by who connects: so it is done now.
        self._reaching = asyncio.create_task(self._reach())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- acting -----------------------------------------------------------------------------------------------------

    def begin(self, batch: Any, session: str, lease: str | None) -> RunningBatch:
        """Have a batch run in its turn; from the event loop.

        Raises:
            BatchRefused, DesktopInUse: It can not be one; nothing was sent.
            Problem: Too many wait already.
        """
        try:
            self._check_turn(session, lease)
        except DeskhandError as error:
            self.tell(told_of(session, error, batch))
            raise
        if self._stopped:
            raise Problem("busy", "computerd is ending: ask again when it is back", {"Retry-After": "2"})
        if len(self._waiting) >= MOST_WAITING:
            raise Problem("busy", f"{MOST_WAITING} batches wait already: try again later", {"Retry-After": "1"})
        running = self._acting.begin(batch, lambda hand: self._turn(hand, batch, session, lease))
        self._waiting[running] = (batch, time.monotonic())
        return running

    def ended(self, running: RunningBatch, session: str, outcome: Outcome | None) -> None:
        """To be called when a batch has ended: completes what its session is told, and remembers and tells it."""
        batch, began = self._waiting.pop(running, (None, time.monotonic()))
        elapsed = time.monotonic() - began
        interrupted = running in self._interrupted
        self._interrupted.discard(running)
        self._keep_for_a_while()
        if outcome is None:
            self.tell(told_of(session, _error_of(running), batch, elapsed))
            return
        if interrupted:
            _say_interrupted(outcome)
        known = self._session(session)
        released, known.released = known.released, []
        if released:
            outcome.answer["released"] = released + list(outcome.answer.get("released", []))
        picture = outcome.answer.get("picture")
        if picture is not None:
            known.newest = picture["sequence"]
        said = {"batch": batch, "answer": outcome.answer, "picture": outcome.picture, "elapsed_s": elapsed}
        self.tell(Told(session, outcome.ok, in_words(outcome), **said))

    def _check_turn(self, session: str, lease: str | None) -> bool:
        """Whether the desktop is this session's, by its lease or because it is a person's who has taken over.

        Raises:
            DesktopInUse: It is another one's.
        """
        if self.person is None:
            return self.leases.check(lease)
        if session == self.person:
            return True
        raise DesktopInUse(TAKEN_OVER, holder=self.person)

    async def take_over(self, session: str) -> None:
        """A person takes over as ``session``: what runs stops at its next action, what comes is refused."""
        self.person = session
        for running in list(self._waiting):
            if running.outcome.running():
                self._interrupted.add(running)
                await asyncio.wrap_future(running.stop())

    async def give_back(self, session: str) -> None:
        """The person gives the desktop back: what they hold is released, and the others may go on."""
        try:
            await self.release(session)
        finally:
            if self.person == session:
                self.person = None

    def _turn(self, hand: Hand, batch: Envelope, session: str, lease: str | None) -> Envelope:
        """In the hand's thread, when the batch's turn has come: what may have changed while it waited."""
        if not self._check_turn(session, lease):
            holder = display_lease.holder_of(_connected(hand).conn)
            if holder is not None:
                raise DesktopInUse(
                    f"the desktop is in use by session {holder!r}: wait until it has ended, or use another desktop",
                    holder=holder,
                )
        if session != self._holding and hand.connected and hand.display.ledger.held:
            self._session(self._holding).released += hand.release()
        self._holding = session
        return self._guarded(batch, session)

    def _guarded(self, batch: Envelope, session: str) -> Envelope:
        """The batch, with ``expect.sequence`` checked here: the hand's pictures are all sessions'."""
        expected = batch.get("expect")
        sequence = expected.get("sequence") if isinstance(expected, dict) else None
        if sequence is None:
            return batch
        newest = self._session(session).newest
        if sequence != newest:
            raise BatchRefused(
                f"the picture {sequence} is not the newest this session was given"
                f" ({newest if newest is not None else 'it was given none'}): look again before acting",
                0,
            )
        assert isinstance(expected, dict)
        rest = {name: value for name, value in expected.items() if name != "sequence"}
        return {**batch, "expect": rest}

    def _session(self, name: str) -> _Session:
        with self._looking_up:  # the hand's thread asks too
            known = self._sessions.pop(name, None)
            if known is None:
                known = _Session()
                if len(self._sessions) >= _MOST_SESSIONS:
                    del self._sessions[next(iter(self._sessions))]
            self._sessions[name] = known  # used last, dropped last
            return known

    async def release(self, session: str) -> None:
        """Release what ``session`` holds down."""

        def work(hand: Hand) -> None:
            if session == self._holding and hand.connected:
                hand.display.ledger.release_all()

        with contextlib.suppress(DeskhandError):  # the display is gone, and what was held on it
            await self._acting.with_hand(work)

    def _keep_for_a_while(self) -> None:
        """A client may be gone for good between two batches: nothing stays pressed for it for longer than a minute."""
        if self._releasing is not None:
            self._releasing.cancel()
        self._releasing = asyncio.get_running_loop().call_later(KEEP_SECONDS, self._release_kept)

    def _release_kept(self) -> None:
        self._releasing = None
        if not self._waiting and not self._stopped:
            task = asyncio.get_running_loop().create_task(self.release(self._holding))
            self._tasks.add(task)  # the loop itself keeps no reference
            task.add_done_callback(self._tasks.discard)

    @property
    def waiting(self) -> int:
        """Batches that run or wait for their turn."""
        return len(self._waiting)

    # -- looking ----------------------------------------------------------------------------------------------------

    async def info(self) -> dict[str, Any]:
        return await self._looking.info()

    async def windows(self) -> list[dict[str, Any]]:
        return await self._looking.windows()

    async def apps(self) -> dict[str, Any]:
        """The applications, and the directories that were searched for them.

        Raises:
            Unsupported: There is no launcher.
        """
        if self._launcher is None:
            return await self._looking.with_hand(_listing)
        # In a thread of its own, as pictures and windows wait for no launcher; who asks at once shares one look.
        if self._listed is None or self._listed.done():
            self._listed = self._listing.submit(self._launcher.listing)
        return await asyncio.shield(asyncio.wrap_future(self._listed))

    async def screenshot(self, region: Region | None, wish: PictureWish, session: str) -> Picture:
        """A picture of now; it becomes the newest of ``session``."""
        picture = await self._looking.with_hand(lambda hand: hand.screenshot(region, wish))
        self._session(session).newest = picture.sequence
        return picture

    # -- telling ----------------------------------------------------------------------------------------------------

    def subscribe(self, watcher: Callable[[Told], None]) -> Callable[[], None]:
        """Have ``watcher`` called with what batches come to, on the event loop; gives the function that ends it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def tell(self, told: Told) -> None:
        self.last_told = told
        for watcher in list(self._watchers):
            watcher(told)

    # -- the end ----------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Take no more batches, and stop those that were begun at their next action, with what they held released."""
        self._stopped = True
        for running in list(self._waiting):
            await asyncio.wrap_future(running.stop())

    async def aclose(self) -> None:
        """Release everything and let go of the display."""
        await self.stop()
        if self._reaching is not None:
            self._reaching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reaching
        if self._releasing is not None:
            self._releasing.cancel()
        self._listing.shutdown(wait=False, cancel_futures=True)
        await self.leases.aclose()
        await self._acting.aclose()
        await self._looking.aclose()

    async def _reach(self) -> None:
        """Connect as soon as the display is there, and again whenever it is back."""
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._acting.with_hand(_connected)
                pause = _LONGEST_PAUSE
            except DeskhandError:
                pause = min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)  # X servers tell nobody that they have begun


def _error_of(running: RunningBatch) -> Exception:
    """Why a batch has no outcome."""
    error = running.outcome.exception() if running.outcome.done() and not running.outcome.cancelled() else None
    if isinstance(error, Exception):
        return error
    stopped = BackendError("the batch was stopped, as nobody waited for it any more, and what it held was released")
    stopped.sent = "none" if running.outcome.cancelled() else "unknown"
    return stopped


def _say_interrupted(outcome: Outcome) -> None:
    """The hand only knows that nobody wanted the rest of the batch."""
    for result in outcome.results:
        if result["status"] == "failed":
            result["error"] = f"{TAKEN_OVER}; the rest of the batch was not run"


def _connected(hand: Hand) -> Display:
    """The hand's display, after a round trip; connected anew when the connection died while nobody looked."""
    display = hand.display
    try:
        display.conn.sync()
    except DisplayTimeout:
        raise
    except DisplayLost:
        display = hand.display
    return display


def _listing(hand: Hand) -> dict[str, Any]:
    found = applications.scan(hand.environment())
    return {"apps": [entry.as_dict() for entry in found.listed()], "searched": list(found.searched)}
