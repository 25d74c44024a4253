"""What every vendor's adapter does: a model's calls become our batches, and the outcomes become the vendor's results.

An adapter belongs to one run: it remembers the size of the picture the model saw last, as the model's positions are
pixels of that. Everything in a reply is checked before anything is sent: a verb that is not known, a position that is
missing or outside, a wrong type are refused with a sentence for the model. Nothing is guessed.

Calls and results are plain JSON values; objects of the vendor's SDK are taken too, by their ``model_dump``. No SDK is
imported here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from deskhand.approvals import Ask as Ask
from deskhand.backends.base import Outcome
from deskhand.errors import ActionError, BatchRefused
from deskhand.hand.coordinates import Space
from deskhand.hand.envelope import parse_action
from deskhand.hand.key_names import parse_chord
from deskhand.hand.text import check_text
from deskhand.pictures import Limits, Size, picture_size
from deskhand.vendors.fields import Fields
from deskhand.vendors.results import CallResult, Part, call_results, without_index
from deskhand.vendors.verbs import Action, Verbs

MAX_ACTIONS = 100
#: A call's verb and its arguments, as the model gave them.
Words = tuple[Any, Any]


@dataclass(frozen=True)
class Finish:
    """The model ended the run by a verb of its own (``terminate``, ``finished``, ``DONE``)."""

    say: str
    success: bool = True


@dataclass(frozen=True)
class Step:
    """One call and the actions it became."""

    call: int
    verb: str
    actions: list[Action]


@dataclass
class Turn:
    """A reply, read: ``parts`` are run in order until one fails, then ``Adapter.answer`` makes the results.

    ``calls`` are the calls on the computer, as plain values; a reply without any is the model's last word, ``say``.
    """

    calls: list[dict[str, Any]]
    verbs: list[str]
    parts: list[Part] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    finish: Finish | None = None
    say: str = ""


class Adapter(ABC):
    """One vendor's calls and results, for one run at a screen of ``screen`` pixels.

    Args:
        screen: The root window's width and height in pixels.
        limits: What pictures the model takes, when it is not the vendor's default.
    """

    vendor: ClassVar[str]
    #: What the vendor's tool is called, in a refusal.
    tool: ClassVar[str]
    verbs: ClassVar[Verbs]
    #: Where the verbs were read: the SDK and its version, or the document.
    source: ClassVar[str]
    default_limits: ClassVar[Limits] = Limits()
    #: A result can not go without a picture.
    needs_picture: ClassVar[bool] = False
    #: Each call's result carries a picture, so each call is a batch of its own.
    picture_each_call: ClassVar[bool] = False
    #: The verbs that end the run, in a refusal of what follows them.
    last: ClassVar[str] = ""
    #: Set by such a verb while a reply is read.
    finish: Finish | None = None

    def __init__(self, screen: Size, limits: Limits | None = None) -> None:
        self.screen = screen
        self.limits = limits or self.default_limits
        #: Pixels of the whole screen's picture that the model saw last; until then, of the one it will be sent.
        self.picture: Size = picture_size(screen, self.limits)

    @property
    def wish(self) -> dict[str, Any]:
        """The ``picture`` of an envelope: the whole screen, in a size this model takes."""
        return {"format": "png", "max_edge": max(16, *picture_size(self.screen, self.limits))}

    @property
    def space(self) -> Any:
        """The envelope's ``space`` that this model's positions are in."""
        return {"picture": list(self.picture)}

    def saw(self, outcome: Outcome) -> None:
        """Keep the size of the picture the model is shown; that of a region (``zoom``) does not change the space."""
        facts = outcome.answer.get("picture")
        if outcome.picture is None or not facts:
            return
        screen = tuple(facts["screen"])
        if tuple(facts["region"]) == (0, 0, *screen):
            self.screen = (screen[0], screen[1])
            self.picture = (facts["width"], facts["height"])

    @abstractmethod
    def tools(self) -> list[dict[str, Any]]:
        """The entries of the request that offer the computer to the model; empty where the prompt does it."""

    @abstractmethod
    def calls(self, reply: Any) -> list[dict[str, Any]]:
        """The calls on the computer in a model's reply, as plain values; other tools' calls are left out.

        Raises:
            BatchRefused: The reply holds no call that can be told from its form.
        """

    @abstractmethod
    def read(self, reply: Any) -> Turn:
        """Everything a reply asks of the computer, checked whole.

        Raises:
            BatchRefused: Something in it is not right; nothing is to be sent. ``index`` is the place of the call.
        """

    @abstractmethod
    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """The vendor's results, one for every call, from what came of each; ``look`` is a picture taken beside them."""

    def answer(
        self, turn: Turn, outcomes: Sequence[Outcome | ActionError], look: Outcome | None = None
    ) -> list[dict[str, Any]]:
        """The vendor's results for a turn whose first ``len(outcomes)`` parts were run."""
        return self.results(turn, call_results(turn.verbs, turn.parts, outcomes), look)

    def refuse(self, reply: Any, error: ActionError, look: Outcome | None = None) -> list[dict[str, Any]]:
        """The vendor's results for a reply of which nothing was sent, for ``error``."""
        try:
            calls = self.calls(reply)
        except BatchRefused:
            calls = []
        culprit = getattr(error, "index", None) or 0
        told = [
            CallResult(number, "failed" if number == culprit else "not sent", str(error) if number == culprit else "")
            for number in range(max(1, len(calls)))
        ]
        return self.results(Turn(calls, [""] * len(told)), told, look)

    # -- for the adapters --------------------------------------------------------------------------------------------

    def _turn(self, calls: list[dict[str, Any]], say: str, words: Callable[[dict[str, Any], int], Words]) -> Turn:
        """Read every call in its order; ``words`` gives its verb and arguments.

        Raises:
            BatchRefused: One is not right, or follows one that ends the run.
        """
        self.finish = None
        steps = []
        for number, call in enumerate(calls):
            if self.finish is not None:
                raise BatchRefused(f"the run ends with {self.last}: nothing may follow it", number)
            steps.append(self._step(number, *words(call, number)))
        return Turn(calls, [step.verb for step in steps], self._parts(steps), finish=self.finish, say=say)

    def _step(self, number: int, name: Any, given: Any, verbs: Verbs | None = None) -> Step:
        """Read one call by its verb's function, and check what comes out. Raises BatchRefused with the call's place."""
        try:
            verb = (self.verbs if verbs is None else verbs).named(name, self.tool)
            fields = Fields(verb.name, given)
            actions = verb.read(self, fields)
            fields.finish()
            for action in actions:
                self._check(verb.name, action)
        except BatchRefused as error:
            error.index = number
            raise
        return Step(number, verb.name, actions)

    def _check(self, verb: str, action: Action) -> None:
        """What can be known without the display: types, ranges, key names, positions within the space."""
        try:
            parsed: Any = parse_action(action)
            space = Space(self.space, self.screen)
            if getattr(parsed, "x", None) is not None:
                space.point(parsed.x, parsed.y)
            for x, y in getattr(parsed, "path", ()):
                space.point(x, y)
            if action["action"] == "zoom":
                space.region(parsed.region)
            for chord in [*([parsed.keys] if hasattr(parsed, "keys") else []), *getattr(parsed, "modifiers", ())]:
                parse_chord(chord)
            if action["action"] == "type":
                check_text(parsed.text)
        except (ValueError, BatchRefused) as error:
            raise BatchRefused(f"{verb}: {without_index(str(error))}") from None

    def _parts(self, steps: Sequence[Step]) -> list[Part]:
        """The steps as batches: one ends where the model wants to see (``screenshot``, ``zoom``), or at 100 actions."""
        parts: list[Part] = []
        actions: list[Action] = []
        owners: list[int] = []

        def close() -> None:
            if actions:
                envelope = {"actions": list(actions), "space": self.space, "picture": self.wish}
                parts.append(Part(envelope, list(owners)))
                actions.clear()
                owners.clear()

        for step in steps:
            if len(step.actions) > MAX_ACTIONS:
                count = len(step.actions)
                raise BatchRefused(
                    f"{step.verb[:60]}: it comes to {count} actions and {MAX_ACTIONS} is the most: send it in parts",
                    step.call,
                )
            if len(actions) + len(step.actions) > MAX_ACTIONS:
                close()
            actions.extend(step.actions)
            owners.extend([step.call] * len(step.actions))
            looks = bool(step.actions) and step.actions[-1]["action"] in ("screenshot", "zoom")
            if looks or self.picture_each_call:
                close()
        close()
        return parts
