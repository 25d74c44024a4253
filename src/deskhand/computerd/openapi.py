"""What stands in the OpenAPI document beside the routes' own names."""

from __future__ import annotations

from typing import Any

from deskhand.computerd import schema
from deskhand.computerd.problems import MEANINGS, MEDIA_TYPE

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_NAMES = {
    "deskhand-session": "names the session, whose newest picture and held keys are its own",
    "deskhand-lease": "the lease's token; needed while a lease is held",
    "idempotency-key": "a request that comes again with its key is answered from memory, and never carried out again",
    "if-none-match": "the ETag of the picture that is known already",
}


def problems(*statuses: int) -> Schema:
    """The problems a route may answer with, beside those that each may."""
    answers: Schema = {}
    for status in sorted({400, 401, 403, 408, 413, 415, 500, 503, *statuses}):
        titles = [meaning.title for meaning in MEANINGS.values() if meaning.status == status]
        answers[str(status)] = {"description": "; ".join(titles), "content": {MEDIA_TYPE: {"schema": _ref("Problem")}}}
    return answers


def any_header(name: str) -> Schema:
    """A header that a request may have, and of which any value will do: one that says nothing counts for none."""
    return {**header(name), "schema": _STRING}


def header(name: str, longest: int = 200) -> Schema:
    """A header that a request may have."""
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": _NAMES[name],
        "schema": {"type": "string", "minLength": 1, "maxLength": longest, "pattern": "^[!-~]+$"},
    }


def query(name: str, description: str, of: Schema) -> Schema:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": of}


def answer(description: str, of: Schema, media_type: str = "application/json") -> Schema:
    return {"description": description, "content": {media_type: {"schema": of}}}


def body(of: Schema) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": of}}}


def of(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


SHARED: Schema = {
    "Batch": schema.batch_schema(),
    "Outcome": schema.outcome_schema(with_base64=True),
    "Picture": schema.picture_facts(),
    "Problem": schema.problem_schema(),
    "App": of(id=_STRING, name=_STRING, path=_STRING),
    "Window": {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "title": _STRING,
            "app_id": {"type": ["string", "null"]},
            "pid": {"type": ["integer", "null"]},
            "rect": {"type": "array", "items": {"type": "integer"}, "minItems": 4, "maxItems": 4},
        },
        "required": ["id", "title", "app_id", "pid", "rect"],
    },
}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def complete(document: Schema) -> Schema:
    """The document, with the shared schemas and the token."""
    components = document.setdefault("components", {})
    components["schemas"] = SHARED
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    return document


ref = _ref
