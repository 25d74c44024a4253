"""The tools' JSON Schema, made from the action model and kept short: a model reads it at every turn.

No ``$ref`` and no ``const``: not every client and vendor takes them.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, Union, get_args, get_origin

from deskhand.hand.actions import KINDS, MAX_ACTIONS

Schema = dict[str, Any]

#: A higher limit is only there to catch nonsense: a model need not read it. (A position's range is its space's to say.)
_TELLING = 10_000
#: What a model has to know and can not see from a name.
_NOTES = {
    ("click", "modifiers"): 'keys held meanwhile, such as ["ctrl"]',
    ("key", "keys"): 'such as "ctrl+shift+t", "Return", "ctrl++"',
    ("launch", "keep_open"): "only when the person asked for it to stay open",
    ("zoom", "region"): "[x0, y0, x1, y1]",
    ("wait_window", "title"): "a part of it is enough",
    ("type", "secret"): "a password: kept out of every record",
}


def act_parameters() -> Schema:
    """The arguments of ``computer_act``: the actions told apart by ``action``, nothing unknown let in."""
    return {
        "type": "object",
        "properties": {
            "actions": {
                "type": "array",
                "description": "what to do, in order",
                "items": {"anyOf": [action_schema(name, kind) for name, kind in KINDS.items()]},
                "minItems": 1,
                "maxItems": MAX_ACTIONS,
            },
            "expect": {
                "type": "object",
                "description": "refuse the batch unless this picture is still your newest, or act in this window only",
                "properties": {"sequence": {"type": "integer"}, "window": {"type": "integer"}},
                "additionalProperties": False,
            },
        },
        "required": ["actions"],
        "additionalProperties": False,
    }


def screenshot_parameters() -> Schema:
    """The arguments of ``computer_screenshot``."""
    return {
        "type": "object",
        "properties": {
            "region": {
                "type": "array",
                "description": "[x0, y0, x1, y1] in pixels of the last whole-screen picture",
                "items": {"type": "number", "minimum": 0},
                "minItems": 4,
                "maxItems": 4,
            }
        },
        "additionalProperties": False,
    }


def no_parameters() -> Schema:
    """The arguments of ``computer_apps``."""
    return {"type": "object", "properties": {}, "additionalProperties": False}


def action_schema(name: str, kind: Any) -> Schema:
    """One action as an object, short."""
    hints = typing.get_type_hints(kind)
    properties: Schema = {"action": {"type": "string", "enum": [name]}}
    required = ["action"]
    for field in fields(kind):
        if field.name == "action":
            continue
        properties[field.name] = _field(field, hints[field.name])
        if (name, field.name) in _NOTES:
            properties[field.name]["description"] = _NOTES[name, field.name]
        if field.default is MISSING and field.default_factory is MISSING:
            required.append(field.name)
    words = " ".join(str(kind.__doc__).split()).replace("``", "")
    return {
        "type": "object",
        "description": words.removesuffix("."),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _field(field: Field[Any], hint: Any) -> Schema:
    schema = _type(hint)
    low, high = field_limits(field.metadata["check"])
    kind = schema["type"]
    if kind in ("number", "integer"):
        if low is not None and high <= _TELLING:
            schema.update(minimum=low, maximum=high)
    elif kind == "string" and "enum" not in schema:
        if low is not None and high <= _TELLING:
            schema.update(minLength=low, maxLength=high)
    elif kind == "array" and low is not None:
        schema.update(minItems=low, maxItems=high)
    if field.default not in (MISSING, None, False):
        schema["default"] = field.default
    return schema


def _type(hint: Any) -> Schema:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        rest = [one for one in inner if one is not type(None)]
        return {"type": "number"} if set(rest) == {int, float} else _type(rest[0])
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is list:
        return {"type": "array", "items": _type(inner[0])}
    if origin is tuple:
        return {"type": "array", "items": _type(inner[0]), "minItems": len(inner), "maxItems": len(inner)}
    return {"type": {int: "integer", float: "number", str: "string", bool: "boolean"}[hint]}


def field_limits(check: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The least and the most of a number, or of a string's or list's length, that a field's check takes.

    (None, None) when it has no limits.
    """
    return getattr(check, "limits", (None, None))
