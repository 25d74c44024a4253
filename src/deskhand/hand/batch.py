"""A batch, run: in order, stopping at the first failure; held input released; the screen settled; one picture.

``run`` never raises for an action that failed: its answer says so. It raises when the display is lost, with what is
known so far in ``facts["answer"]``.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .client_processes import Newcomers
from .display import Display, Leftovers
from .envelope import PictureWish, SettleWish
from .errors import ActionFailed, BackendError, DisplayLost, in_one_line
from .perform import LOOKING, Performer
from .picture import MAX_BYTES, MAX_EDGE, Picture, make_picture
from .preflight import Prepared
from .screen import Region
from .screen_watch import ScreenWatch
from .settle import NOT_WAITED, Verdict, wait_fixed, wait_until_settled

Answer = Dict[str, Any]


def run(
    display: Display,
    prepared: Prepared,
    left: Leftovers,
    session: Optional[str],
    alive: Callable[[], bool] = lambda: True,
) -> Tuple[Answer, Optional[Picture]]:
    """Carry out a prepared batch; the answer in the shape of the envelope's, and the picture.

    ``left`` is what ``Display.confirm`` has just found. ``alive`` tells whether the client is still there: when it is
    not, the batch stops at the next action.

    Raises:
        DisplayLost: with the answer so far in ``facts["answer"]`` and ``sent`` "unknown".
    """
    running = _Running(display, prepared, session, alive)
    try:
        return running.run(left)
    except DisplayLost as error:
        answer = running.answer(NOT_WAITED)
        answer.update(ok=False, sent="unknown" if running.performer.sent else "none", error=str(error))
        error.facts["answer"] = answer
        error.sent = answer["sent"]
        raise


class _Running:
    def __init__(self, display: Display, prepared: Prepared, session: Optional[str], alive: Callable[[], bool]) -> None:
        self._display = display
        self._prepared = prepared
        self._alive = alive
        self._results: List[Dict[str, Any]] = [
            {"action": step.action.action, "status": "skipped"} for step in prepared.steps
        ]
        self._released: List[str] = []
        self._region = prepared.region
        self._wish = prepared.batch.picture
        self._newcomers: Optional[Newcomers] = None
        self.performer = Performer(display, prepared.batch.expect, session, alive)

    def run(self, left: Leftovers) -> Tuple[Answer, Optional[Picture]]:
        batch, display = self._prepared.batch, self._display
        acting = [step for step in self._prepared.steps if step.action.action not in LOOKING]
        looking = any(step.action.action in ("zoom", "screenshot") for step in self._prepared.steps)
        if looking and self._wish is None:
            self._wish = PictureWish()
        verdict, failed = NOT_WAITED, ""
        display.put_right(left)
        try:
            if not acting or batch.settle.mode == "none":
                self._run_steps(None)
            else:
                with ScreenWatch(display.conn, display.screen) as watch:
                    display.ambient.confirm(watch)
                    self._newcomers = Newcomers(display.conn)
                    self._run_steps(watch)
                    verdict = self._settle(watch, batch.settle)
        except DisplayLost:
            raise
        except Exception as error:
            self._release_all()
            failed = f"the screen could not be watched: {in_one_line(error)}"
        answer = self.answer(verdict)
        if failed:
            answer.update(ok=False, error=failed)
        picture = self._take_picture(answer)
        return answer, picture

    def _run_steps(self, watch: Optional[ScreenWatch]) -> None:
        for index, step in enumerate(self._prepared.steps):
            result = self._results[index]
            try:
                if not self._alive():
                    raise ActionFailed(
                        "the client has gone away, or this hand is to end: the rest of the batch was not run"
                    )
                if step.action.action in ("zoom", "screenshot"):
                    self._region = step.region
                    if watch is not None and index + 1 < len(self._prepared.steps):
                        self._settle(watch, self._prepared.batch.settle)
                result.update(self.performer.perform(step))
                result["status"] = "ok"
            except DisplayLost as error:
                result.update(status="failed", error=str(error))
                raise
            except Exception as error:  # also a fault of ours: what is held must be let go, and the answer must come
                result.update(_public(error), status="failed", error=in_one_line(error))
                self._release_all()
                return

    def _release_all(self) -> None:
        """Let go of everything; the answer says of what."""
        for attempt in (1, 2):
            try:
                self._released += [f"{kind} {code}" for kind, code in self._display.ledger.release_all()]
                return
            except DisplayLost:
                raise
            except BackendError:
                if attempt == 2:  # the first may be the late answer to a request of the action that failed
                    raise

    def _settle(self, watch: ScreenWatch, wish: SettleWish) -> Verdict:
        last, self.performer.last = self.performer.last, None
        if last is None:
            return NOT_WAITED
        conn, pings = self._display.conn, self._display.pings
        if wish.mode == "fixed":
            verdict = wait_fixed(conn, watch, wish.timeout)
        else:
            verdict = wait_until_settled(conn, pings, watch, last, wish.timeout, wish.strict, self._newcomers)
            if not verdict.settled:
                self._display.ambient.learn(watch)
        return verdict.beside(watch.moving_ignored(max(last.time, time.monotonic() - 1.0)))

    def answer(self, verdict: Verdict) -> Answer:
        """The answer as it stands."""
        done = [result["status"] for result in self._results]
        ok = bool(done) and all(status == "ok" for status in done)
        answer: Answer = {
            "ok": ok,
            "sent": "all" if ok else "part" if self.performer.sent else "none",
            "results": self._results,
            "settled": verdict.settled,
            "settle": verdict.outcome,
            "settle_ms": round(verdict.waited * 1000),
            "moving": verdict.moving,
        }
        released = self._display.ledger.take_released_of_others() + self._released
        if released:
            answer["released"] = released
        restored, self._display.restored = self._display.restored, []
        if restored:
            answer["restored"] = restored
        return answer

    def _take_picture(self, answer: Answer) -> Optional[Picture]:
        if self._wish is None:
            return None
        try:
            return take_picture(self._display, self._wish, self._region)
        except DisplayLost:
            raise
        except Exception as error:
            words = f"no picture: {in_one_line(error)}"
            answer.update(ok=False, error=f"{answer['error']}; {words}" if "error" in answer else words)
            return None


def take_picture(display: Display, wish: PictureWish, region: Optional[Region]) -> Picture:
    """A picture of what is on the screen now, within the limits, with a number of its own."""
    taken = display.screen.capture(region, wish.cursor)
    edge = min(wish.max_edge or MAX_EDGE, MAX_EDGE)
    return make_picture(taken, display.frames.next(), wish.format, edge, MAX_BYTES)


def _public(error: Exception) -> Dict[str, Any]:
    """The facts of an error that belong in its result."""
    facts = getattr(error, "facts", {})
    return {name: value for name, value in facts.items() if name not in ("action", "status", "error", "answer")}
