"""UI-TARS: text that ends in ``Action: click(point='<point>200 300</point>')``, one or more calls.

There is no SDK to depend on: the verbs and their reading are those of the UI-TARS repository, README (prompts) and
codes/ui_tars/action_parser.py, version 0.1 of November 2026; the text is read as a syntax tree and never run.

Positions are thousandths (UI-TARS 1.0 and the hosted Doubao models) or pixels of the picture as the model resizes it
(1.5). A ``scroll`` is 5 notches and a ``wait`` 5 s, as in its own loop.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from deskhand.backends.base import Outcome
from deskhand.errors import BatchRefused
from deskhand.pictures import UI_TARS, Limits, Size, resized_by_model
from deskhand.vendors.base import Adapter, Finish, Turn
from deskhand.vendors.chat import chat_message, data_url, reply_text, said
from deskhand.vendors.fields import Fields
from deskhand.vendors.results import CallResult
from deskhand.vendors.verbs import Action, Verbs, joined, scroll_by

DIRECTIONS = ("up", "down", "left", "right")
SCROLL_NOTCHES = 5
WAIT_SECONDS = 5
_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"

VERBS = Verbs()

_CLICKS = {"click": ("left", 1), "left_single": ("left", 1), "left_double": ("left", 2), "right_single": ("right", 1)}


@VERBS.add(*_CLICKS, gives="click", takes="point")
def _click(adapter: UiTars, fields: Fields) -> list[Action]:
    button, count = _CLICKS[fields.verb]
    return [{"action": "click", **_at(fields), "button": button, "count": count}]


@VERBS.add("hover", gives="move", takes="point")
def _hover(adapter: UiTars, fields: Fields) -> list[Action]:
    return [{"action": "move", **_at(fields)}]


@VERBS.add("drag", "select", gives="drag", takes="start_point end_point")
def _drag(adapter: UiTars, fields: Fields) -> list[Action]:
    points = [_point(fields, ("start_point", "start_box")), _point(fields, ("end_point", "end_box"))]
    return [{"action": "drag", "path": [[point["x"], point["y"]] for point in points]}]


@VERBS.add("hotkey", gives="key", takes="key")
def _hotkey(adapter: UiTars, fields: Fields) -> list[Action]:
    """keys parted by spaces, all at once"""
    return [{"action": "key", "keys": _keys(fields, ("key", "hotkey"))}]


@VERBS.add("press", "keydown", gives="key_down", takes="key")
def _press(adapter: UiTars, fields: Fields) -> list[Action]:
    """down, and stays down"""
    return [{"action": "key_down", "keys": _keys(fields, ("key", "press"))}]


@VERBS.add("release", "keyup", gives="key_up", takes="key")
def _release(adapter: UiTars, fields: Fields) -> list[Action]:
    return [{"action": "key_up", "keys": _keys(fields, ("key", "press"))}]


@VERBS.add("type", gives="type", takes="content")
def _type(adapter: UiTars, fields: Fields) -> list[Action]:
    """a newline is Return"""
    return [{"action": "type", "text": fields.string("content")}]


@VERBS.add("scroll", gives="scroll", takes="point? direction")
def _scroll(adapter: UiTars, fields: Fields) -> list[Action]:
    """5 notches"""
    at = {}
    if any(fields.has(name) for name in ("point", "start_box")):
        at = _at(fields)
    by = scroll_by(fields.one_of("direction", DIRECTIONS), SCROLL_NOTCHES)
    return [{"action": "scroll", **at, **by}]


@VERBS.add("wait", gives="wait")
def _wait(adapter: UiTars, fields: Fields) -> list[Action]:
    """5 s"""
    return [{"action": "wait", "seconds": WAIT_SECONDS}]


@VERBS.add("finished", gives="", takes="content?")
def _finished(adapter: UiTars, fields: Fields) -> list[Action]:
    """ends the run with what it says"""
    adapter.finish = Finish(fields.string("content", "") or "the model says that it is done")
    return []


@VERBS.add("call_user", gives="", takes="content?")
def _call_user(adapter: UiTars, fields: Fields) -> list[Action]:
    """ends the run: a person is needed"""
    adapter.finish = Finish(fields.string("content", "") or "the model asks for a person", success=False)
    return []


def _at(fields: Fields) -> dict[str, float]:
    return _point(fields, ("point", "start_box"))


def _point(fields: Fields, names: tuple[str, str]) -> dict[str, float]:
    """``<point>x y</point>``, ``(x,y)``, or the middle of ``(x1,y1,x2,y2)``, with or without box tokens."""
    name = names[0] if fields.has(names[0]) or not fields.has(names[1]) else names[1]
    text = re.sub(r"<\|box_(?:start|end)\|>|</?point>|</?bbox>", "", fields.string(name)).strip()
    for pattern in (rf"\(?{_NUMBER}[,\s]{_NUMBER}\)?", rf"[(\[]?{','.join([_NUMBER] * 4)}[)\]]?"):
        found = re.fullmatch(pattern, text)
        if found:
            numbers = [float(number) for number in found.groups()]
            x, y = (numbers[0] + numbers[-2]) / 2, (numbers[1] + numbers[-1]) / 2
            return {"x": int(x) if x.is_integer() else x, "y": int(y) if y.is_integer() else y}
    raise fields.refusal(f"{name} must be '<point>x y</point>', not {text[:40]!r}")


def _keys(fields: Fields, names: tuple[str, str]) -> str:
    name = names[0] if fields.has(names[0]) or not fields.has(names[1]) else names[1]
    keys = fields.string(name).split()
    if not keys:
        raise fields.refusal(f"{name} is empty: name a key, such as 'ctrl c'")
    return keys[0] if len(keys) == 1 else joined(keys)


#: UI-TARS repository, README, the prompt for a computer, with the action space as its parser reads it.
PROMPT = """\
You are a GUI agent. You are given a task and your action history, with screenshots. You need to perform the next \
action to complete the task.

## Output Format
```
Thought: ...
Action: ...
```

## Action Space
click(point='<point>x1 y1</point>')
left_double(point='<point>x1 y1</point>')
right_single(point='<point>x1 y1</point>')
drag(start_point='<point>x1 y1</point>', end_point='<point>x2 y2</point>')
hotkey(key='ctrl c') # Split keys with a space and use lowercase.
type(content='xxx') # Use escape characters \\', \\", and \\n in content part to ensure we can parse the content in \
normal python string format.
scroll(point='<point>x1 y1</point>', direction='down or up or right or left')
wait() # Sleep for 5s and take a screenshot to check for any changes.
finished(content='xxx')
call_user() # Submit the task and call the user when the task is unsolvable, or when you need the user's help.

## Note
- Write a small plan and finally summarize your next action (with its target element) in one sentence in Thought.
"""


class UiTars(Adapter):
    """UI-TARS, which answers in text.

    Args:
        screen: The root window's width and height in pixels.
        positions: ``thousandths`` (1.0, Doubao), or ``resized``: pixels of the picture as the model resizes it (1.5).
        limits: What pictures the model takes, when it is not the default.
    """

    vendor = "UI-TARS"
    tool = "the action space"
    verbs: ClassVar[Verbs] = VERBS
    source = "the UI-TARS repository (no SDK)"
    default_limits = UI_TARS
    last = "finished or call_user"

    def __init__(self, screen: Size, positions: str = "resized", limits: Limits | None = None) -> None:
        if positions not in ("thousandths", "resized"):
            raise ValueError("positions must be thousandths or resized")
        super().__init__(screen, limits)
        self.positions = positions

    @property
    def space(self) -> Any:
        if self.positions == "thousandths":
            return {"grid": 1000}
        return {"picture": list(resized_by_model(self.picture))}

    def tools(self) -> list[dict[str, Any]]:
        return []

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        pieces = _pieces(_parted(_reply_text(reply))[1] or "")
        return [{"text": piece} for piece in pieces]

    def read(self, reply: Any) -> Turn:
        say, text = _parted(_reply_text(reply))
        if text is None:
            example = "Action: click(point='<point>1 2</point>')"
            raise BatchRefused(f"the reply holds no action: end it with a line such as {example}")
        calls = self.calls(reply)
        if not calls:
            raise BatchRefused("nothing follows Action: name one, such as wait()")
        return self._turn(calls, say, lambda call, number: _parse_call(call["text"], number))

    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """One user message of chat completions: the newest picture, and what has to be said."""
        picture = None if look is None else data_url(look)
        lines = []
        for result in results:
            picture = data_url(result) or picture
            if not result.ok or result.text:
                lines.append(said(result))
        return [chat_message("\n".join(lines) or "Done.", picture)]


def _reply_text(reply: Any) -> str:
    text = reply_text(reply)
    if text is None:
        raise BatchRefused("the reply holds no text")
    return text


def _parted(text: str) -> tuple[str, str | None]:
    """What the model says, and what follows its last ``Action:``; None when there is none.

    One at the beginning of a line counts before one in the middle: a text to type may hold the word too.
    """
    marks = list(re.finditer(r"^[ \t]*Action:", text, re.MULTILINE)) or list(re.finditer("Action:", text))
    return (text[: marks[-1].start()].strip(), text[marks[-1].end() :]) if marks else (text.strip(), None)


def _pieces(text: str) -> list[str]:
    """The calls of a text: one a paragraph, as the repository's parser cuts them."""
    return [piece.strip() for piece in re.split(r"(?<=\))\s*\n\s*(?=\w+\()", text.strip()) if piece.strip()]


def _parse_call(text: str, number: int) -> tuple[str, dict[str, Any]]:
    """A call and its arguments, from its syntax tree."""
    given: dict[str, Any] = {}
    try:
        tree = ast.parse(text.replace("\n", "\\n"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        name, content = _unescaped(text, number)
        return name, {"content": content}
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.args:
        raise BatchRefused(f"{text[:60]!r} is not an action such as click(point='<point>1 2</point>')", number)
    for keyword in tree.keywords:
        if keyword.arg is None or not isinstance(keyword.value, ast.Constant):
            raise BatchRefused(f"{tree.func.id}: every argument must be name='value'", number)
        if keyword.arg in given:
            raise BatchRefused(f"{tree.func.id}: {keyword.arg} is given twice", number)
        if keyword.value.value != "":
            given[keyword.arg] = keyword.value.value
    return tree.func.id, given


def _unescaped(text: str, number: int) -> tuple[str, str]:
    """``type(content='it's')``: a text whose quotes were not escaped stands between the first quote and the last."""
    found = re.fullmatch(r"(type|finished|call_user)\(content=(['\"])(.*)\2\)", text, re.DOTALL)
    if not found:
        raise BatchRefused(f"{text[:60]!r} can not be read: write it like click(point='<point>1 2</point>')", number)
    plain_text = {"n": "\n", "t": "\t"}
    content = re.sub(r"\\([nt'\"\\])", lambda match: plain_text.get(match[1], match[1]), found[3])
    return found[1], content
