"""A model's turn as what the page shows: the calls in the vendor's own form, what it was given, what it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskhand.trace.words import as_json, shortened

_CALLS = frozenset({"tool_use", "computer_call", "function_call"})
_BADGES = {"cut": "failed", "malformed": "failed", "full": "failed", "refused": "refused"}
_TOKENS = ("input", "cache_read", "cache_write", "output")
_LONGEST = 600


def calls_of(reply: Any) -> list[Any]:
    """The calls in a reply, whoever's it is; a field that is only for the next request (a signature) is left out."""
    if isinstance(reply, Mapping):
        calls = reply.get("tool_calls")
        return list(calls) if isinstance(calls, list) else []
    found = []
    for item in reply if isinstance(reply, list) else []:
        if isinstance(item, Mapping) and item.get("type") in _CALLS:
            found.append(item)
        elif isinstance(item, Mapping) and "function_call" in item:
            found.append(item["function_call"])
    return found


def model_step(event: Mapping[str, Any]) -> dict[str, Any]:
    """What a step of the page says of a model's turn."""
    facts = event.get("facts")
    facts = facts if isinstance(facts, Mapping) else {}
    calls = calls_of(event.get("reply"))
    given = event.get("given")
    lines = [text for item in (given if isinstance(given, list) else [given]) for text in _texts(item)]
    return {
        "kind": "model",
        "name": str(event.get("name", "the model")),
        "badge": _BADGES.get(str(facts.get("stop")), "ok"),
        "error": None if facts.get("stop") in (None, "acts", "says", "paused") else _why(facts),
        "calls": [shortened(as_json(call), _LONGEST) for call in calls],
        "asks": [_name(call) for call in calls],
        "given": [shortened(line, _LONGEST) for line in lines],
        "tokens": tokens_of(facts),
        "sent_pictures": facts.get("pictures"),
        "retries": facts.get("retries"),
        "cost": cost_of(facts),
        "reason": facts.get("reason"),
    }


def tokens_of(facts: Mapping[str, Any]) -> dict[str, int]:
    """The four numbers of tokens; 0 where one is not told."""
    told = facts.get("tokens")
    told = told if isinstance(told, Mapping) else {}
    return {name: told[name] if isinstance(told.get(name), int) else 0 for name in _TOKENS}


def cost_of(facts: Mapping[str, Any]) -> float | None:
    """What the turn cost; None when no prices were given."""
    cost = facts.get("cost")
    return float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None


def _name(call: Any) -> str:
    """What a call asks for, in a word or two."""
    call = call if isinstance(call, Mapping) else {}
    function = call.get("function")
    if isinstance(function, Mapping):
        return str(function.get("name"))
    actions = call.get("actions")
    if isinstance(actions, list):
        return ", ".join(str(action.get("type")) for action in actions if isinstance(action, Mapping))
    given = call.get("input")
    verb = given.get("action") if isinstance(given, Mapping) else None
    return str(verb or call.get("name") or call.get("type") or "a call")


def _why(facts: Mapping[str, Any]) -> str:
    words = {
        "cut": "The reply ran out of tokens, and nothing of it was done.",
        "malformed": "The call could not be read, and nothing was done.",
        "full": "The conversation is longer than the model can read.",
        "refused": "The model will not go on.",
    }
    return f"{words.get(str(facts.get('stop')), str(facts.get('stop')))} ({facts.get('reason') or 'no reason given'})"


def _texts(value: Any) -> list[str]:
    """The texts in a vendor's results, without the words of their form."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, Mapping):
        shown = ("content", "text", "output", "error", "response", "parts", "function_response", "image_url")
        return [text for name in shown if name in value for text in _texts(value[name])]
    return []
