"""What a backend must answer: one desktop that can be looked at and acted on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand.hand.errors import Unsupported

if TYPE_CHECKING:
    from deskhand.approvals import Policy
    from deskhand.backends.lease import DesktopLease

Envelope = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a batch came to.

    ``answer`` is the JSON of the answer (``ok``, ``sent``, ``results``, ``settled``, ``settle``, ``settle_ms``,
    ``moving``; ``picture`` with its facts when there is one); ``picture`` holds the encoded picture's bytes.
    """

    answer: dict[str, Any]
    picture: bytes | None = None

    @property
    def ok(self) -> bool:
        """Every action was carried out, and the picture asked for was taken."""
        return bool(self.answer["ok"])

    @property
    def results(self) -> list[dict[str, Any]]:
        """One result an action, in order."""
        results: list[dict[str, Any]] = self.answer["results"]
        return results

    @property
    def error(self) -> str | None:
        """Why the batch stopped, in one sentence; None when it did not."""
        for result in self.results:
            if result["status"] == "failed":
                return str(result["error"])
        return self.answer.get("error")


def in_words(outcome: Outcome) -> str:
    """An outcome in one line."""
    done = [result["action"] for result in outcome.results if result["status"] == "ok"]
    words = ", ".join(_result_in_words(result) for result in outcome.results if result["status"] == "ok")
    if not outcome.ok:
        words = f"FAILED after {len(done)} of {len(outcome.results)}: {outcome.error}"
    settle = outcome.answer["settle"]
    return words + (f" [{settle} after {outcome.answer['settle_ms']} ms]" if settle != "none" else "")


def _result_in_words(result: dict[str, Any]) -> str:
    if result["action"] == "launch":
        window = result.get("window") or {}
        return f"launched: {window.get('title', 'a window')!r} after {result.get('elapsed_ms')} ms"
    if result["action"] == "quit" and result.get("outcome") == "asked":
        dialog = result.get("dialog") or {}
        return f"quit: asked to close; a dialog is open: {dialog.get('title', 'without a title')!r}"
    if result["action"] == "quit":
        return f"quit: {str(result.get('outcome')).replace('_', ' ')}"
    if "point" in result:
        return f"{result['action']} at {tuple(result['point'])}"
    return str(result["action"])


class Backend(ABC):
    """One desktop that can be looked at and acted on.

    Positions are root-window pixels, origin top left; times are seconds. The far side of a backend is always the same
    hand: it preflights, acts, settles and takes the picture, so that a batch costs one round trip.
    """

    @abstractmethod
    async def info(self) -> dict[str, Any]:
        """The display's name, ``size`` [width, height], monitors and window manager.

        Raises:
            NoDisplay: It can not be reached.
        """

    @abstractmethod
    async def act(self, batch: Envelope) -> Outcome:
        """Run ``batch`` in order, stop at the first failure, settle, and answer with one picture.

        Cancelling the call stops the batch at its next action and releases what it held.

        Raises:
            BatchRefused: Preflight found an error; nothing was sent. Names the action and what it should be.
            NoDisplay: The display can not be reached; nothing was sent.
            DisplayLost: The connection ended; ``sent`` says how much may have happened.
            Unsupported: This desktop can not do one of the actions; nothing was sent.
        """

    @abstractmethod
    async def apps(self) -> list[dict[str, str]]:
        """The applications that can be launched: ``[{"id", "name", "path"}]``, by name.

        Raises:
            Unsupported: There is no lookup on this desktop; says what to do instead.
        """

    @abstractmethod
    async def windows(self) -> list[dict[str, Any]]:
        """The windows: id, title, app id, pid, rect [x, y, width, height], state."""

    @property
    def policy(self) -> Policy:
        """What needs a person here when the session does not say so itself; by default nothing."""
        from deskhand.approvals import Policy

        return Policy()

    def lease(self, holder: str) -> DesktopLease:
        """A lease of this desktop for the session ``holder``, not taken yet; each session has one of its own.

        Raises:
            Unsupported: There are none on this desktop, or this backend can not reach them.
        """
        raise Unsupported("this desktop knows no leases: open the session without one")

    def tell(self, outcome: Mapping[str, Any], used: int, limit: int | None) -> None:  # noqa: B027
        """What a session's call came to, for those who watch the desktop where it is; it never waits and never fails.

        Args:
            outcome: ``{"time", "ok", "text"}``.
            used: Actions of the session's budget that were tried.
            limit: Its budget; None when there is none.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Release what is held and let go of the desktop. Calling it again does nothing."""
