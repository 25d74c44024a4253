"""``deskhand act``: a batch, as JSON on standard input or as words."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from deskhand.backends.base import Outcome, in_words
from deskhand.cli.elsewhere import TokenFileOption, UrlOption, hand_at
from deskhand.cli.interruption import interruptible
from deskhand.cli.output import (
    DisplayOption,
    JsonOption,
    SessionOption,
    TimeoutOption,
    XauthorityOption,
    end,
    write_file,
)
from deskhand.cli.screenshot import format_of
from deskhand.errors import BatchRefused, DeskhandError, SetupError
from deskhand.hand.actions import KINDS
from deskhand.hand.answering import FAILED, Reply, answer, error_reply
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
        list[str] | None,
        typer.Argument(metavar="[ACTION [VALUE | FIELD=VALUE]...]", help="One action in words: click 100 200"),
    ] = None,
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    session: SessionOption = None,
    timeout: TimeoutOption = 5.0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the picture there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a batch: an envelope as JSON on standard input, or one action in words.

    deskhand act click 640 400 · deskhand act key ctrl+s · deskhand act scroll 3 x=100 y=200 · deskhand act type 'Hello'
    """
    try:
        request = in_json(words) if words else read_request(_standard_input())
        if output is not None and isinstance(request, dict) and not request.get("picture"):
            request["picture"] = {"format": format_of(output)}
    except DeskhandError as error:
        reply = error_reply(error)
    else:
        with interruptible(hand_at(url, token_file, display, xauthority, session, timeout)) as hand:
            reply = answer(hand, request)
    if output is not None and reply.picture is not None:
        reply = _write_picture(reply, output)
    end(reply, as_json, _text(reply))


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise BatchRefused("a batch is missing: give an action in words, or an envelope as JSON on standard input")
    return sys.stdin.buffer.read()


def _write_picture(reply: Reply, output: Path) -> Reply:
    """The picture goes to the file, and the answer says so; when it can not, the answer still tells what was done."""
    assert reply.picture is not None
    try:
        write_file(output, reply.picture.content)
    except SetupError as error:
        answer = {name: value for name, value in reply.answer.items() if name != "picture"}
        return Reply({**answer, "ok": False, "error": str(error), "kind": "failed"}, None, reply.status or FAILED)
    picture = {**reply.answer["picture"], "path": str(output)}
    return Reply({**reply.answer, "picture": picture}, None, reply.status)


def in_json(words: list[str]) -> dict[str, Any]:
    """The envelope of one action given in words: ``["click", "100", "200", "button=right"]``.

    Raises:
        BatchRefused: There are more words than the action has fields for.
    """
    name, *values = words
    action: dict[str, Any] = {"action": name}
    if name not in KINDS:
        return {"actions": [action]}  # refused where every batch is, with the nearest name
    known = {field.name for field in fields(KINDS[name])}
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
            raise BatchRefused(
                f"action 0 ({name}): {value!r} is one word too many: give other fields as FIELD=VALUE", 0
            )
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
