"""Everything about a batch that can be known before its first event: it is checked here, whole, and nothing is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import actions, picture
from .coordinates import Space
from .envelope import Batch
from .errors import BatchRefused, Unsupported
from .screen import Region

if TYPE_CHECKING:
    from .applications import Entry
    from .launcher import Launcher

Point = Tuple[int, int]


class Step(NamedTuple):
    """One action, ready to be carried out: positions in root-window pixels, chords parsed, the application found."""

    action: Any
    point: Optional[Point] = None
    path: List[Point] = []
    region: Optional[Region] = None
    chord: Any = None
    modifiers: List[Any] = []
    entry: Optional[Entry] = None
    #: Why no application was found by the name of what is to be quit.
    unknown: str = ""


class Prepared(NamedTuple):
    """A batch ready to run on a screen of ``screen`` pixels; ``region`` is that of the final picture (None: all)."""

    batch: Batch
    steps: List[Step]
    screen: Tuple[int, int]
    region: Optional[Region]


def prepare(
    batch: Batch,
    screen: Tuple[int, int],
    newest: Optional[int],
    environment: Mapping[str, str],
    launcher: Optional[Launcher] = None,
) -> Prepared:
    """Check ``batch`` for a screen of that size.

    ``newest`` is the number of the picture the session was given last; it matters to a batch that names one.
    ``launcher`` says what applications there are; when it is not given they are those that ``environment``, the
    desktop's, leads to.

    Raises:
        BatchRefused: names the first action that is wrong. Nothing has been sent.
        Unsupported: it launches or quits, and nobody here can.
    """
    lookup = _Lookup(environment, launcher)
    space = Space(batch.space, screen)
    steps = []
    for index, action in enumerate(batch.actions):
        try:
            steps.append(_step(action, space, lookup))
        except ValueError as error:
            facts = dict(getattr(error, "facts", {}))
            raise BatchRefused(f"action {index} ({action.action}): {error}", index, **facts) from None
    if batch.expect.sequence is not None and batch.expect.sequence != newest:
        raise BatchRefused(
            f"the picture {batch.expect.sequence} is not the newest this session was given"
            f" ({newest if newest is not None else 'it was given none'}): look again before acting",
            0,
        )
    region = None
    if batch.picture is not None:
        try:
            picture.check_format(batch.picture.format)
            if batch.picture.region is not None:
                region = space.region(batch.picture.region)
        except (ValueError, Unsupported) as error:
            raise BatchRefused(f"picture: {error}") from None
    return Prepared(batch, steps, screen, region)


def _step(action: Any, space: Space, lookup: _Lookup) -> Step:
    point = None
    pointing = (actions.Click, actions.Move, actions.MouseDown, actions.MouseUp, actions.Scroll)
    if isinstance(action, pointing) and action.x is not None and action.y is not None:
        point = space.point(action.x, action.y)
    modifiers = [_parse_modifiers(name) for name in getattr(action, "modifiers", [])]
    if isinstance(action, actions.Drag):
        return Step(action, path=[space.point(x, y) for x, y in action.path], modifiers=modifiers)
    if isinstance(action, actions.Zoom):
        return Step(action, region=space.region(action.region))
    if isinstance(action, (actions.Key, actions.HoldKey, actions.KeyDown, actions.KeyUp)):
        return Step(action, chord=_parse_keys(action.keys))
    if isinstance(action, actions.Type):
        from .text import check_text

        check_text(action.text)
    if isinstance(action, actions.ClipboardSet):
        _check_whole_characters(action.text)
    if isinstance(action, actions.Launch):
        lookup.check()
        return Step(action, entry=lookup.find(action.app))
    if isinstance(action, actions.Quit):
        lookup.check()
        try:
            return Step(action, entry=None if action.app is None else lookup.find(action.app))
        except _UnknownApplication as error:  # what has been uninstalled since may still run
            return Step(action, unknown=str(error))
    return Step(action, point=point, modifiers=modifiers)


def _check_whole_characters(content: str) -> None:
    """JSON can hold half of a surrogate pair, which UTF-8 can not."""
    try:
        content.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start + 1} of the text is half of a surrogate pair: send whole characters"
        ) from None


class _NoApplication(ValueError):
    """An error of the lookup, with its facts."""

    def __init__(self, message: str, facts: Dict[str, Any]) -> None:
        super().__init__(message)
        self.facts = facts


class _UnknownApplication(_NoApplication):
    """Nothing is called that."""


class _Lookup:
    """Finds the applications that a batch names."""

    def __init__(self, environment: Mapping[str, str], launcher: Optional[Launcher]) -> None:
        self._environment = environment
        self._launcher = launcher

    def check(self) -> None:
        if self._launcher is not None:
            self._launcher.check()

    def find(self, app: str) -> Entry:
        """The entry of an application.

        Raises:
            ValueError: there is none, or not one alone; what to do, with facts.
        """
        # Imported when first needed: the one-file form compiles what it imports, at every start.
        from . import applications

        try:
            if self._launcher is not None:
                return self._launcher.find(app)
            return applications.find(app, self._environment, unlisted=True)
        except applications.UnknownApplication as error:
            raise _UnknownApplication(str(error), error.facts) from None
        except applications.ApplicationError as error:
            raise _NoApplication(str(error), error.facts) from None


def _parse_keys(keys: str) -> Any:
    from .keyboard import parse_keys

    return parse_keys(keys)


def _parse_modifiers(keys: str) -> Any:
    chord = _parse_keys(keys)
    for key in chord.keys:
        if not (key.is_modifier or key.name == "space"):  # a canvas is panned with the space bar down
            raise ValueError(f"{key.name} is no modifier: press it with 'key', or hold it with 'key_down' and 'key_up'")
    return chord
