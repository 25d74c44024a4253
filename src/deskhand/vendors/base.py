"""What every vendor's adapter does: a model's calls become our batches, and the outcomes become the vendor's results.

An adapter belongs to one run: it remembers the size of the picture the model saw last, as the model's positions are
pixels of that. Everything in a reply is checked before anything is sent: a verb that is not known, a position that is
missing or outside, a wrong type are refused with a sentence for the model. Nothing is guessed.

Calls and results are plain JSON values; objects of the vendor's SDK are taken too, by their ``model_dump``. No SDK is
imported here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from deskhand.backends.base import Outcome
from deskhand.errors import ActionError, BatchRefused
from deskhand.hand.coordinates import Space
from deskhand.hand.envelope import parse_action
from deskhand.hand.key_names import parse_chord
from deskhand.hand.text import check_text
from deskhand.pictures import Limits, Size, picture_size
from deskhand.vendors.fields import Fields, plain
from deskhand.vendors.results import CallResult, Part, call_results, without_index

Action = dict[str, Any]
MAX_ACTIONS = 100


@dataclass(frozen=True)
class Verb:
    """One thing a vendor's model can ask for.

    ``gives`` names the actions it may become, ``takes`` its fields as the vendor calls them (``?`` may be left out).
    """

    name: str
    read: Callable[[Any, Fields], list[Action]]
    gives: tuple[str, ...]
    takes: str
    note: str


class Verbs(dict[str, Verb]):
    """A vendor's verbs by name."""

    def add(self, *names: str, gives: str, takes: str = "") -> Callable[[Any], Any]:
        """Decorate the function that reads the fields of these verbs; its docstring is the note in the table."""

        def add(read: Callable[[Any, Fields], list[Action]]) -> Callable[[Any, Fields], list[Action]]:
            note = " ".join((read.__doc__ or "").split())
            for name in names:
                self[name] = Verb(name, read, tuple(gives.split()), takes, note)
            return read

        return add

    def named(self, name: Any, tool: str) -> Verb:
        """Raises BatchRefused with the nearest names when there is no such verb."""
        import difflib

        if isinstance(name, str) and name in self:
            return self[name]
        if not isinstance(name, str):
            raise BatchRefused(f"the call of {tool} names no action: use one of {', '.join(self)}")
        near = difflib.get_close_matches(name[:60], list(self), 1, 0.6)
        which = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(self)}"
        raise BatchRefused(f"{tool} has no action {name[:60]!r}: {which}")


@dataclass(frozen=True)
class Ask:
    """Something in a reply that a person has to allow before anything of it is done.

    ``source`` is who asks (``anthropic confirm``, ``openai safety check``, ``gemini safety decision``), ``reason`` why,
    for the person to read; ``facts`` is what the vendor sent.
    """

    call: int
    verb: str
    source: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


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
                raise BatchRefused(
                    f"{step.verb}: it comes to {len(step.actions)} actions and {MAX_ACTIONS} is the most: send it in parts",
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


class Acts(Protocol):
    """What ``run_turn`` needs of a session."""

    async def act(self, batch: Mapping[str, Any]) -> Outcome: ...

    async def screenshot(self, **wish: Any) -> Outcome: ...


Approve = Callable[[Ask], Awaitable[bool]]


async def first_look(adapter: Adapter, session: Acts) -> Outcome:
    """The picture a run begins with, in the size the model takes."""
    outcome = await session.screenshot(**adapter.wish)
    adapter.saw(outcome)
    return outcome


async def run_turn(
    adapter: Adapter, reply: Any, session: Acts, approve: Approve | None = None
) -> tuple[list[dict[str, Any]], Finish | None]:
    """Do what a model's reply asks for: the vendor's results, and the end of the run when the reply held it.

    What needs a person is asked of ``approve`` first, before anything is sent; without one it is declined.

    Raises:
        BackendError: The desktop was lost; how much was sent is not for the model to decide on.
        SetupError: The desktop can not be reached, or can not do it.
    """
    try:
        turn = adapter.read(reply)
        for ask in turn.asks:
            if approve is None or not await approve(ask):
                raise BatchRefused(declined(ask), ask.call)
    except BatchRefused as error:
        look = await first_look(adapter, session) if adapter.needs_picture else None
        return adapter.refuse(reply, error, look), None
    outcomes: list[Outcome | ActionError] = []
    for part in turn.parts:
        try:
            outcome = await session.act(part.envelope)
        except ActionError as error:
            outcomes.append(error)
            break
        outcomes.append(outcome)
        adapter.saw(outcome)
        if not outcome.ok:
            break
    failed = bool(outcomes) and not (isinstance(outcomes[-1], Outcome) and outcomes[-1].ok)
    shown = any(isinstance(outcome, Outcome) and outcome.picture for outcome in outcomes[-1:])
    look = await first_look(adapter, session) if adapter.needs_picture and not shown and turn.calls else None
    return adapter.answer(turn, outcomes, look), None if failed else turn.finish


def declined(ask: Ask) -> str:
    """What the model reads when the person says no (the wording of the Anthropic SDK's ConfirmDeclinedError)."""
    return f"The user did not grant permission to run '{ask.verb}'. Do not retry it unless the user asks you to."


def modifiers(verb: str, chord: str | None) -> dict[str, Any]:
    """The ``modifiers`` of an action from a chord to hold, such as ``"ctrl+shift"``; nothing when there is none.

    Raises:
        BatchRefused: A key is not known.
    """
    if not chord:
        return {}
    try:
        return {"modifiers": parse_chord(chord)}
    except ValueError as error:
        raise BatchRefused(f"{verb}: {error}") from None


def joined(keys: Sequence[str]) -> str:
    """A list of keys as one chord; the plus key is spelt out, as ``+`` joins."""
    return "+".join("plus" if key == "+" else key for key in keys)


def scroll_by(direction: str, amount: float) -> dict[str, Any]:
    """``dx`` or ``dy`` of a scroll towards ``up``, ``down``, ``left`` or ``right``."""
    axis = "dy" if direction in ("up", "down") else "dx"
    return {axis: amount if direction in ("down", "right") else -amount}


def drag_from_pointer(x: float, y: float, button: str = "left") -> list[Action]:
    """Press where the pointer is, and release at a position.

    Two moves, the last one short: what is dragged onto must see the pointer come in before the release.
    """
    near = x - 1 if x >= 1 else x + 1
    return [
        {"action": "mouse_down", "button": button},
        {"action": "move", "x": near, "y": y},
        {"action": "move", "x": x, "y": y},
        {"action": "mouse_up", "button": button},
    ]


def data_url(result: CallResult | Outcome) -> str | None:
    """A picture as a ``data:`` address; None when there is none."""
    import base64

    picture = result.picture
    return None if picture is None else f"data:{media_type(picture)};base64,{base64.b64encode(picture).decode()}"


def media_type(picture: bytes) -> str:
    """By the file's own first bytes (PNG, JPEG and WebP are what the hand makes)."""
    if picture[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    return "image/webp" if picture[:4] == b"RIFF" else "image/png"


def chat_message(text: str, picture: str | None) -> dict[str, Any]:
    """A user message in the form of OpenAI's chat completions, which vLLM and most local servers speak."""
    content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": picture}}] if picture else []
    content.append({"type": "text", "text": text})
    return {"role": "user", "content": content}


def code_block(text: str) -> str | None:
    """What stands in the last fenced code block of a text; None without one."""
    blocks = re.findall(r"```[ \t]*(?:python|py)?[ \t]*\n?(.*?)```", text, re.DOTALL)
    return blocks[-1].strip() if blocks else None


__all__ = [
    "Acts", "Adapter", "Approve", "Ask", "CallResult", "Finish", "Part", "Step", "Turn", "Verb", "Verbs", "first_look",
    "plain", "run_turn",
]  # fmt: skip
