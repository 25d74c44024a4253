"""The JSON Schema of what ``POST /act`` takes and answers, made from the action model (``tool_schema``).

Unlike a tool's, which a model reads at every turn, it is complete: every range, and what holds between two fields.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from deskhand.hand.actions import KINDS, MAX_ACTIONS
from deskhand.hand.envelope import SETTLE_MODES
from deskhand.hand.picture import FORMATS
from deskhand.tool_schema import action_schema, field_limits

Schema = dict[str, Any]

#: JSON Schema of a position, whose range is its space's to say.
_POSITION: Schema = {"type": "number", "minimum": -1e9, "maximum": 1e9}


def batch_schema() -> Schema:
    """A batch's envelope."""
    return {
        "type": "object",
        "description": "A batch: actions in order, stopped at the first failure; see docs/reference/actions.md.",
        "properties": {
            "actions": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_ACTIONS,
                "items": {"oneOf": [_action(name, kind) for name, kind in KINDS.items()]},
            },
            "space": _space(),
            "expect": _nullable_object(
                sequence={"type": ["integer", "null"], "minimum": 0, "maximum": 1 << 53},
                window={"type": ["integer", "null"], "minimum": 1, "maximum": 0xFFFFFFFF},
            ),
            "settle": _nullable_object(
                mode={"type": "string", "enum": list(SETTLE_MODES)},
                timeout={"type": "number", "minimum": 0, "maximum": 60, "default": 2.0},
                strict={"type": "boolean", "default": False},
            ),
            "picture": {"anyOf": [{"type": ["boolean", "null"]}, _picture()]},
        },
        "required": ["actions"],
        "additionalProperties": False,
    }


def outcome_schema(with_base64: bool = False) -> Schema:
    """What a batch came to."""
    return {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "sent": {"type": "string", "enum": ["none", "part", "all", "unknown"]},
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "action": {"type": "string"},
                        "status": {"type": "string", "enum": ["ok", "failed", "skipped"]},
                        "error": {"type": "string"},
                    },
                    "required": ["action", "status"],
                },
            },
            "settled": {"type": "boolean"},
            "settle": {"type": "string", "enum": ["settled", "timeout", "animating", "none"]},
            "settle_ms": {"type": "integer"},
            "moving": {"type": "array", "items": _rect()},
            "error": {"type": "string"},
            "picture": picture_facts(with_base64),
        },
        "required": ["ok", "sent", "results", "settled", "settle", "settle_ms", "moving"],
    }


def picture_facts(with_base64: bool = False) -> Schema:
    """The facts of a picture."""
    integer = {"type": "integer"}
    facts: Schema = {
        "format": {"type": "string", "enum": list(FORMATS)},
        "width": integer,
        "height": integer,
        "scale": {"type": "number"},
        "sequence": integer,
        "time": {"type": "number"},
        "hash": {"type": "string"},
        "blank": {"type": "boolean"},
        "region": _rect(),
        "cursor": {"type": "array", "items": integer, "minItems": 2, "maxItems": 2},
        "screen": {"type": "array", "items": integer, "minItems": 2, "maxItems": 2},
    }
    required = list(facts)
    if with_base64:
        facts["base64"] = {"type": "string", "contentEncoding": "base64"}
    return {"type": "object", "properties": facts, "required": required}


def problem_schema() -> Schema:
    """Problem Details for HTTP APIs, with what every answer of the hand has."""
    string = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "type": string,
            "title": string,
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "what happened, and what to do"},
            "kind": string,
            "ok": {"type": "boolean", "enum": [False]},
            "sent": {"type": "string", "enum": ["none", "part", "all", "unknown"]},
        },
        "required": ["type", "title", "status", "detail", "kind", "ok", "sent"],
    }


def _action(name: str, kind: Any) -> Schema:
    schema = action_schema(name, kind)
    properties = schema["properties"]
    for field in fields(kind):
        if field.name == "action":
            continue
        told = properties[field.name]
        low, high = field_limits(field.metadata["check"])
        if told["type"] in ("number", "integer"):
            told.update(minimum=low, maximum=high)
        elif told["type"] == "string" and "enum" not in told:
            told.update(minLength=low, maxLength=high)
        elif field.name == "modifiers":
            told["items"] = {"type": "string", "minLength": 1, "maxLength": 32}
        elif field.name == "region":
            told["items"] = _POSITION
        elif field.name == "path":
            told["items"] = {"type": "array", "items": _POSITION, "minItems": 2, "maxItems": 2}
        if field.default is None:
            told["type"] = [told["type"], "null"]
        if field.default_factory is not MISSING and field.name != "modifiers":
            raise TypeError(f"{name}.{field.name}: a list that is not known here")
    schema.update(_together(name, properties))
    return schema


def _together(name: str, properties: Schema) -> Schema:
    """What holds between the fields of one action; ``hand/envelope.py`` checks the same."""
    if name in ("wait_window", "resize"):
        wanted = ("title", "app") if name == "wait_window" else ("x", "y", "width", "height")
        return {"anyOf": [_given(field) for field in wanted]}
    if name == "quit":
        return {"oneOf": [_given("app"), _given("window")]}
    if name == "scroll":
        turned = {"type": "number", "not": {"enum": [0]}}
        notches = {"type": "integer", "minimum": -100, "maximum": 100}
        return {
            "anyOf": [{"properties": {way: turned}, "required": [way]} for way in ("dx", "dy")],
            "if": {"properties": {"unit": {"enum": ["pixels"]}}, "required": ["unit"]},
            "else": {"properties": dict.fromkeys(("dx", "dy"), notches)},
            **_both_or_neither(),
        }
    if "x" in properties and properties["x"]["type"] != "number":
        return _both_or_neither()
    return {}


def _both_or_neither() -> Schema:
    """x and y are both given, or neither; null is as good as not given."""
    neither = {name: {"type": "null"} for name in ("x", "y")}
    both: Schema = {"properties": {name: {"type": "number"} for name in ("x", "y")}, "required": ["x", "y"]}
    return {"oneOf": [both, {"properties": neither}]}


def _given(name: str) -> Schema:
    return {"properties": {name: {"not": {"type": "null"}}}, "required": [name]}


def _space() -> Schema:
    pixels = {"type": "integer", "minimum": 1, "maximum": 65535}
    return {
        "oneOf": [
            {"type": "string", "enum": ["screen"]},
            _object(picture={"type": "array", "items": pixels, "minItems": 2, "maxItems": 2}),
            _object(grid={"type": "integer", "minimum": 2, "maximum": 65535}),
        ],
        "default": "screen",
    }


def _picture() -> Schema:
    return {
        "type": "object",
        "properties": {
            "format": {"type": "string", "enum": list(FORMATS), "default": "png"},
            "max_edge": {"type": ["integer", "null"], "minimum": 16, "maximum": 16384},
            "region": {
                "type": ["array", "null"],
                "items": {"type": "number", "minimum": 0, "maximum": 1e6},
                "minItems": 4,
                "maxItems": 4,
            },
            "cursor": {"type": "boolean", "default": False},
        },
        "additionalProperties": False,
    }


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _nullable_object(**properties: Schema) -> Schema:
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _rect() -> Schema:
    return {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4}
