"""The lines of ``trace.jsonl`` as what the page shows: a step for each thing that happened."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deskhand.trace.marks import Space, View, marks_of, numbers, zoomed_region
from deskhand.trace.model_turns import model_step
from deskhand.trace.words import action_in_words, as_json, shortened

# A refused batch may hold thousands of actions, an answer a whole file; the page shows this much, the trace all.
_ACTIONS = 100
_STRING = 20_000
_ITEMS = 1_000

_COUNTS = ("batches", "actions", "failed", "tools", "errors", "approvals")
_SAID_ELSEWHERE = frozenset({"action", "status", "error", "point", "path"})


def read_events(trace: Path) -> tuple[list[dict[str, Any]], int]:
    """The events of a trace, and the number of lines that can not be read (one, when the run was killed in it)."""
    events: list[dict[str, Any]] = []
    broken = 0
    for line in trace.read_bytes().splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            broken += 1
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            events.append(event)
        else:
            broken += 1
    return events, broken


class Steps:
    """Walks through the events once; ``steps`` and ``head`` are the page's data (plain JSON types)."""

    def __init__(self, events: list[dict[str, Any]], broken: int = 0) -> None:
        self.steps: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        self._said: list[str] = []
        self._began = _number(events[0].get("time")) if events else 0.0
        self._screen: tuple[int, int] | None = None
        self._views: dict[str, View] = {}
        self._last_picture: str | None = None
        #: Of a run that a model did: its turns, seconds, tokens, and cost where prices were known.
        self._model_total: dict[str, Any] | None = None
        self.head: dict[str, Any] = {"goal": "", "title": "", "facts": {}, "outcome": None, "text": "", "checks": []}
        for event in events:
            walk = {"start": self._start, "say": self._say, "tool": self._tool, "error": self._error}
            walk.update({"batch": self._batch, "finish": self._finish, "model": self._model})
            walk["approval"] = self._approval
            if event["event"] in walk:
                walk[event["event"]](event)
        if self._said:
            self._add({"time": events[-1].get("time")}, kind="say", name="words", badge="none")
        self.head["started"] = self._began
        self.head["elapsed_s"] = max((_number(e.get("time")) - self._began for e in events), default=0.0)
        self.head["counts"] = {name: self.counts[name] for name in _COUNTS}
        self.head["broken_lines"] = broken
        self.head["model"] = self._model_total

    def _start(self, event: dict[str, Any]) -> None:
        self.head.update({name: event[name] for name in ("goal", "title", "facts") if name in event})
        size = numbers(_mapping(event.get("facts")).get("screen"), 2)
        if size:
            self._screen = (int(size[0]), int(size[1]))

    def _say(self, event: dict[str, Any]) -> None:
        self._said.append(str(event.get("text", "")))

    def _tool(self, event: dict[str, Any]) -> None:
        answer = event.get("answer")
        bad = isinstance(answer, Mapping) and (answer.get("ok") is False or bool(answer.get("error")))
        self.counts["tools"] += 1
        self._add(event, kind="tool", name=str(event.get("name")), badge="failed" if bad else "ok", rows=_rows(answer))

    def _model(self, event: dict[str, Any]) -> None:
        step = model_step(event)
        total = self._model_total or {
            "turns": 0,
            "elapsed_s": 0.0,
            "tokens": dict.fromkeys(step["tokens"], 0),
            "cost": None,
        }
        total["turns"] += 1
        total["elapsed_s"] += _number(event.get("elapsed_s"))
        for name, count in step["tokens"].items():
            total["tokens"][name] += count
        if step["cost"] is not None:
            total["cost"] = (total["cost"] or 0.0) + step["cost"]
        self._model_total = total
        if event.get("text"):
            self._said.append(str(event["text"]))
        self._add(event, **step)

    def _approval(self, event: dict[str, Any]) -> None:
        ask, answer = _mapping(event.get("ask")), str(event.get("outcome"))
        facts = _mapping(ask.get("facts"))
        shown = action_in_words(facts) if "action" in facts else shortened(as_json(facts), 600) if facts else ""
        self.counts["approvals"] += 1
        self._add(
            event,
            kind="approval",
            name=str(ask.get("reason")),
            # A word nobody knows is no yes.
            badge="ok" if answer == "allowed" else "refused",
            answer=answer,
            verb=str(ask.get("verb")),
            source=str(ask.get("source")),
            once=ask.get("once") is True,
            asked=shown,
        )

    def _error(self, event: dict[str, Any]) -> None:
        self.counts["errors"] += 1
        self._add(event, kind="error", name="error", badge="failed", error=str(event.get("text", "")))

    def _finish(self, event: dict[str, Any]) -> None:
        checks = [_check(check) for check in event.get("checks") or []]
        self.head.update({"outcome": event.get("outcome"), "text": event.get("text", ""), "checks": checks})
        self._add(event, kind="finish", name="the end", badge=str(event.get("outcome")))

    def _batch(self, event: dict[str, Any]) -> None:
        envelope, answer = _mapping(event.get("envelope")), _mapping(event.get("answer"))
        before, after = event.get("before"), event.get("after")
        space = Space(envelope.get("space"), self._screen)
        region = zoomed_region(envelope, answer, space)
        facts = _mapping(answer.get("picture"))
        if self._screen is None and region is None and after:
            self._learn_screen(facts)
            space = Space(envelope.get("space"), self._screen)
        if event.get("before_facts") is not None:
            given = _mapping(event["before_facts"])
            self._views[str(before)] = _view(given, numbers(given.get("region"), 4))
        actions = envelope.get("actions")
        actions = actions if isinstance(actions, list) else []
        results = answer.get("results")
        results = results if isinstance(results, list) else []
        shown = [_action(a, results[i] if i < len(results) else None) for i, a in enumerate(actions[:_ACTIONS])]
        before_view = self._views.get(str(before), View())
        after_view = _view(facts, region)
        if after:
            self._views[str(after)] = after_view
        moved = answer.get("moving")
        rects = [numbers(rect, 4) for rect in moved] if isinstance(moved, list) and after else []
        moving = [after_view.rect(*rect) for rect in rects if rect]
        badge = "ok" if answer.get("ok") else "refused" if answer.get("sent") == "none" else "failed"
        self.counts["batches"] += 1
        self.counts["actions"] += len(actions)
        self.counts["failed"] += badge != "ok"
        self._add(
            event,
            kind="batch",
            name=shown[0]["words"] if shown else "an empty batch",
            badge=badge,
            error=_words_of_error(answer.get("error")),
            sent=answer.get("sent"),
            actions=shown,
            more_actions=max(0, len(actions) - _ACTIONS),
            space=envelope.get("space"),
            settle=answer.get("settle"),
            settle_ms=answer.get("settle_ms"),
            window=_window(answer.get("window")),
            before=before,
            after=after,
            comparable=bool(before and after) and before_view == after_view,
            marks=marks_of({"actions": actions[:_ACTIONS]}, answer, space, before_view) if before else [],
            moving=moving,
        )

    def _learn_screen(self, facts: Mapping[str, Any]) -> None:
        size = numbers([facts.get("width"), facts.get("height")], 2)
        scale = _number(facts.get("scale")) or 1.0
        if size:
            self._screen = (round(size[0] / scale), round(size[1] / scale))

    def _add(self, event: dict[str, Any], **step: Any) -> None:
        after = step.get("after")
        at = event.get("started", event.get("time"))
        self.steps.append(
            {
                "n": len(self.steps) + 1,
                "at": max(0.0, _number(at) - self._began),
                "elapsed_s": event.get("elapsed_s"),
                "said": self._said,
                "last": self._last_picture,
                "raw": _cut(event) if "event" in event else None,
                **step,
            }
        )
        self._said = []
        self._last_picture = after or self._last_picture


def _action(action: Any, result: Any) -> dict[str, Any]:
    result = _mapping(result)
    shown: dict[str, Any] = {"words": action_in_words(action), "status": str(result.get("status", "none"))}
    if result.get("error") is not None:
        shown["error"] = _words_of_error(result["error"])
    point, asked = numbers(result.get("point"), 2), _mapping(action)
    if point and [asked.get("x"), asked.get("y")] != point:
        shown["point"] = [round(point[0]), round(point[1])]
    facts = {name: value for name, value in result.items() if name not in _SAID_ELSEWHERE}
    if facts:
        shown["facts"] = [[name, shortened(_fact(name, value), 160)] for name, value in facts.items()]
    return shown


def _fact(name: str, value: Any) -> str:
    return (name == "window" and _window(value)) or (value if isinstance(value, str) else as_json(value))


def _words_of_error(error: Any) -> str | None:
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("error") or as_json(error)
    return None if error is None else str(error)


def _window(window: Any) -> str | None:
    if isinstance(window, Mapping):
        return str(window.get("title") or window.get("app") or window.get("id") or "") or None
    return f"0x{window:x}" if isinstance(window, int) else window if isinstance(window, str) else None


def _check(check: Any) -> dict[str, Any]:
    check = _mapping(check)
    name = next((str(check[key]) for key in ("name", "what", "check") if check.get(key) is not None), "check")
    found = [[key, _cut(value)] for key, value in check.items() if key not in ("name", "what", "check", "ok")]
    ok = check.get("ok")
    return {"name": name, "ok": ok if isinstance(ok, bool) else None, "found": found}


def _rows(answer: Any) -> list[str] | None:
    """A tool's list, one line an item, when it is a list (or the one list in a mapping)."""
    if isinstance(answer, Mapping):
        lists = [value for value in answer.values() if isinstance(value, list)]
        answer = lists[0] if len(lists) == 1 else None
    if not isinstance(answer, list):
        return None
    return [_row(item) for item in answer[:_ITEMS]]


def _row(item: Any) -> str:
    if isinstance(item, Mapping) and isinstance(item.get("name"), str):
        return " · ".join(str(item[key]) for key in ("name", "id") if item.get(key))
    return shortened(item if isinstance(item, str) else as_json(item), 160)


def _view(facts: Mapping[str, Any], region: list[float] | None) -> View:
    scale = _number(facts.get("scale"))
    width = _number(facts.get("width"))
    if region and region[2] > region[0]:
        # A region's own width tells its scale where the facts do not.
        return View(region[0], region[1], scale or (width / (region[2] - region[0]) if width else 1.0))
    return View(scale=scale or 1.0)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _STRING:
        return f"{value[:_STRING]} … ({len(value) - _STRING} more characters in trace.jsonl)"
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    if isinstance(value, list):
        rest = len(value) - _ITEMS
        return [*map(_cut, value[:_ITEMS]), *([f"… {rest} more in trace.jsonl"] if rest > 0 else [])]
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
