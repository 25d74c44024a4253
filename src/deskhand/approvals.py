"""What needs a person: one object for it, whoever asks.

A vendor's protocol asks (OpenAI's ``pending_safety_checks``, Gemini's ``safety_decision``, Anthropic's confirm), or the
policy of whoever runs the agent does (launching, quitting by force, typing a secret, acting in certain windows, acting
at all). Each becomes an ``Ask``, and an ``Approve`` answers it. By default the policy asks nothing: a sandbox or an
embedded desktop is the agent's to use. A session is parked while a person thinks: see ``Session.parked``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from deskhand.errors import BatchRefused, DeskhandError
from deskhand.hand.coordinates import Space


@dataclass(frozen=True)
class Ask:
    """Something that a person has to allow before anything of it is done.

    ``call`` is the place of the vendor's call, or of the action in its batch; ``verb`` what it wants to do. ``source``
    is who asks (``anthropic confirm``, ``openai safety check``, ``gemini safety decision``, ``policy: launch``),
    ``reason`` why, for the person to read; ``facts`` is what was asked for, as it came. ``once``: a yes holds for the
    rest of the session.
    """

    call: int
    verb: str
    source: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    once: bool = False


#: Asks a person; allowed when it gives True, and for nothing else.
Approve = Callable[[Ask], Awaitable[bool]]

#: What became of an ask. ``nobody``: there is nobody to ask; ``no answer``: none came in time; ``cancelled``: the call
#: that needed it ended before the answer.
Answer = Literal["allowed", "declined", "nobody", "no answer", "cancelled"]


async def answer_of(approve: Approve, ask: Ask, seconds: float) -> Answer:
    """Ask a person, who has ``seconds`` to answer."""
    import asyncio

    try:
        async with asyncio.timeout(seconds) as deadline:
            # Nothing else is a yes: what a person typed ("no") is as true as any text.
            return "allowed" if await approve(ask) is True else "declined"
    except TimeoutError:
        if deadline.expired():
            return "no answer"
        raise


class Declined(BatchRefused):
    """A person said no, or nobody was there to ask. Nothing was sent."""


def declined(ask: Ask) -> str:
    """What the model reads when the person says no (the wording of the Anthropic SDK's ConfirmDeclinedError)."""
    return f"The user did not grant permission to run '{ask.verb}'. Do not retry it unless the user asks you to."


@dataclass(frozen=True)
class Policy:
    """What needs a person, by what is to be done.

    Args:
        launch: Opening an application.
        forced_quit: Ending an application by force.
        secret: Typing a text marked secret.
        windows: Acting in windows whose application id is one of these, or whose title contains one, whatever the case;
            and launching what may be one of these. It knows the windows that are there before the batch.
        input: Everything that types, clicks or changes something, once a session: for a person's own screen.
    """

    launch: bool = False
    forced_quit: bool = False
    secret: bool = False
    windows: tuple[str, ...] = ()
    input: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.windows, str) or not all(isinstance(one, str) and one for one in self.windows):
            raise TypeError("windows must be a list of names, none of them empty")

    @classmethod
    def parse(cls, rules: Sequence[str]) -> Policy:
        """From words: ``launch``, ``forced-quit``, ``secret``, ``input``, and ``window:NAME`` for each window.

        Raises:
            ValueError: A rule that is none of these.
        """
        flags: dict[str, bool] = {}
        windows: list[str] = []
        for rule in rules:
            kind, _, name = rule.partition(":")
            if kind == "window" and name:
                windows.append(name)
            elif rule in _RULES:
                flags[rule.replace("-", "_")] = True
            else:
                raise ValueError(f"{rule!r} is none of {', '.join(_RULES)}, window:NAME")
        return cls(**flags, windows=tuple(windows))

    @property
    def asks_nothing(self) -> bool:
        return self == Policy()

    def asks(
        self, batch: Mapping[str, Any], windows: Sequence[Mapping[str, Any]] = (), screen: tuple[int, int] = (1, 1)
    ) -> list[Ask]:
        """What in ``batch`` needs a person, in order; one that is no batch needs none, as it will be refused.

        ``windows`` are those of ``Backend.windows``, and ``screen`` the size of the root window in pixels; both are
        looked at only when the policy names windows. A pointer action counts for every listed window that holds its
        position, covered or not; a keyboard action counts while a listed window is on the screen, as keys may move the
        focus there.
        """
        actions = batch.get("actions")
        if not isinstance(actions, list):
            return []
        listed = [window for window in windows if window.get("viewable") and self._names(window)]
        found: list[Ask] = []
        for number, action in enumerate(actions):
            if isinstance(action, dict) and isinstance(action.get("action"), str):
                found += self._asks_of(number, action, batch.get("space", "screen"), listed, screen)
        return found

    def _asks_of(
        self,
        number: int,
        action: Mapping[str, Any],
        space: Any,
        listed: Sequence[Mapping[str, Any]],
        screen: tuple[int, int],
    ) -> list[Ask]:
        verb = str(action["action"])
        secret = action.get("secret") not in (None, False)
        shown = {name: value for name, value in action.items() if name != "text" or not secret}
        found: list[Ask] = []

        def ask(rule: str, reason: str, once: bool = False) -> None:
            found.append(Ask(number, verb, f"policy: {rule}", reason, shown, once))

        if self.launch and verb == "launch":
            ask("launch", f"open the application {action.get('app')!r}")
        if self.forced_quit and verb == "quit" and action.get("force"):
            ask("forced quit", f"end {action.get('app') or action.get('window')!r} by force: what is not saved is lost")
        if self.secret and verb == "type" and action.get("secret"):
            ask("secret", "type a secret text")
        for window in listed:
            if _touches(action, verb, space, window, screen):
                ask("window", f"{verb} in the window {window.get('title')!r}")
        if verb == "launch" and self._may_mean(str(action.get("app"))):
            ask("window", f"open {action.get('app')!r}")
        if self.input and verb in ACTING:
            ask("input", f"{verb} on this screen, and from then on whatever it does here", once=True)
        return found

    def _names(self, window: Mapping[str, Any]) -> bool:
        title, app = str(window.get("title")).casefold(), str(window.get("app_id")).casefold()
        return any(name.casefold() == app or name.casefold() in title for name in self.windows)

    def _may_mean(self, app: str) -> bool:
        """Whether what is launched may be on the list: by its id or its name ("firefox-esr", "Firefox ESR")."""
        asked = _letters(app)
        return any(_letters(name) in asked or (asked and asked in _letters(name)) for name in self.windows)


#: A person's own screen: the first thing that types or clicks is asked for, once.
OWN_SCREEN = Policy(input=True)

_RULES = ("launch", "forced-quit", "secret", "input")
_POINTER = frozenset({"click", "mouse_down", "mouse_up", "drag", "scroll"})
_KEYBOARD = frozenset({"type", "key", "hold_key", "key_down"})
_WINDOW = frozenset({"focus", "close", "resize", "quit"})
#: The actions that type, click or change something.
ACTING = _POINTER | _KEYBOARD | _WINDOW | {"move", "key_up", "launch", "clipboard_set"}


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold())) or name.casefold()


def _touches(
    action: Mapping[str, Any], verb: str, space: Any, window: Mapping[str, Any], screen: tuple[int, int]
) -> bool:
    if verb in _WINDOW:
        return action.get("window") == window["id"] or action.get("app") in (window.get("app_id"), window.get("title"))
    if verb in _KEYBOARD:
        return True
    if verb not in _POINTER:
        return False
    points: Any = action.get("path") if verb == "drag" else [[action.get("x"), action.get("y")]]
    try:
        where = Space(space, screen)
        positions = [where.point(x, y) for x, y in points or []]
    except (DeskhandError, ValueError, TypeError):
        return True  # at the pointer, or nowhere: the window is on the screen, so it may be meant
    x, y, width, height = window["rect"]
    left, right, top, bottom = window.get("frame") or (0, 0, 0, 0)
    return any(x - left <= a < x + width + right and y - top <= b < y + height + bottom for a, b in positions)
