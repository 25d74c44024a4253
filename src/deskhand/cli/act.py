"""``deskhand act``: a batch, as JSON on standard input or as words."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from deskhand.agents.loop import in_words
from deskhand.backends.base import Outcome
from deskhand.cli.output import (
    DisplayOption,
    JsonOption,
    SessionOption,
    TimeoutOption,
    XauthorityOption,
    end,
    write_file,
)
from deskhand.errors import BatchRefused, DeskhandError
from deskhand.hand.actions import KINDS
from deskhand.hand.answering import Reply, answer, error_reply
from deskhand.hand.hand import Hand
from deskhand.hand.resident import read_request

#: The fields that words without a name fill, in order.
_IN_ORDER = {
    "click": ("x", "y"),
    "move": ("x", "y"),
    "mouse_down": ("x", "y"),
    "mouse_up": ("x", "y"),
    "scroll": ("dy", "dx"),
    "type": ("text",),
    "key": ("keys",),
    "hold_key": ("keys", "seconds"),
    "key_down": ("keys",),
    "key_up": ("keys",),
    "wait": ("seconds",),
    "wait_window": ("title",),
    "launch": ("app",),
    "quit": ("app",),
    "focus": ("window",),
    "close": ("window",),
    "resize": ("window", "width", "height"),
    "clipboard_set": ("text",),
}
_TEXT = {"text", "keys", "title", "app", "button", "method", "unit"}


def add_to(app: typer.Typer) -> None:
    app.command("act")(act)


def act(
    words: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="[ACTION [VALUE | FIELD=VALUE]...]", help="One action in words: click 100 200"),
    ] = None,
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    session: SessionOption = None,
    timeout: TimeoutOption = 5.0,
    output: Annotated[
        Optional[Path], typer.Option("-o", "--output", metavar="FILE", help="Write the picture there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a batch: an envelope as JSON on standard input, or one action in words.

    deskhand act click 640 400 · deskhand act key ctrl+s · deskhand act scroll 3 x=100 y=200 · deskhand act type 'Hello'
    """
    hand = Hand(display, xauthority, session, timeout)
    try:
        request = in_json(words) if words else read_request(sys.stdin.buffer.read())
        if output is not None and isinstance(request, dict):
            request.setdefault("picture", True)
        reply = answer(hand, request)
    except DeskhandError as error:
        reply = error_reply(error)
    try:
        hand.close()
    except DeskhandError:
        pass  # the display went away after the answer was complete
    if output is not None and reply.picture is not None:
        write_file(output, reply.picture.content)
        picture = {**reply.answer["picture"], "path": str(output)}
        reply = Reply({**reply.answer, "picture": picture}, None, reply.status)
    end(reply, as_json, _text(reply))


def in_json(words: list[str]) -> dict[str, Any]:
    """The envelope of one action given in words: ``["click", "100", "200", "button=right"]``.

    Raises:
        BatchRefused: There are more words than the action has fields for.
    """
    name, *values = words
    action: dict[str, Any] = {"action": name}
    known = {field.name for field in fields(KINDS[name])} if name in KINDS else set()
    order = list(_IN_ORDER.get(name, ()))
    for value in values:
        field, equals, rest = value.partition("=")
        if name == "drag" and "," in value and not equals:
            action.setdefault("path", []).append([_value("x", part) for part in value.split(",")])
        elif name == "zoom" and not equals:
            action.setdefault("region", []).append(_value("x", value))
        elif equals and field in known and not (order and order[0] == "text"):
            action[field] = _value(field, rest)
        elif order:
            field = order.pop(0)
            action[field] = _value(field, value)
        else:
            raise BatchRefused(f"action 0 ({name}): {value!r} is one word too many: give other fields as FIELD=VALUE", 0)
    return {"actions": [action]}


def _value(field: str, text: str) -> Any:
    """Text stays text; the rest is JSON where it can be."""
    if field in _TEXT:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(reply: Reply) -> str:
    if not reply.answer.get("results") or reply.status == 2:
        return ""
    lines = [in_words(Outcome(reply.answer))] if reply.status == 0 else []
    for result in reply.answer["results"]:
        if result["action"] == "clipboard_get" and result["status"] == "ok":
            lines.append(str(result.get("text") or ""))
        if result["action"] == "cursor_position" and result["status"] == "ok":
            lines = ["{} {}".format(*result["point"])]
    return "\n".join(lines)
