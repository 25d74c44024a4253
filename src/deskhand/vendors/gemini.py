"""Gemini's computer use: predefined functions, with positions in thousandths (0 to 999) of the picture.

Read in the ``google-genai`` SDK 3.6.1: ``types.py`` (ComputerUse, FunctionCall, FunctionResponse), and
``_gaos/types/interactions`` (function call and result steps of the Interactions API). The SDK has no types for the
functions themselves: Gemini Enterprise Agent Platform documentation, Computer use, Supported actions (read November
2026), which gives one set for the desktop, one for the browser, and the older names for the browser.

``safety_decision`` in the arguments wants a person's yes, which goes back as ``safety_acknowledgement``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from deskhand.backends.base import Outcome
from deskhand.errors import BatchRefused
from deskhand.pictures import GOOGLE, Limits, Size
from deskhand.vendors.base import Adapter, Ask, Turn
from deskhand.vendors.chat import media_type
from deskhand.vendors.fields import Fields, plain
from deskhand.vendors.results import CallResult
from deskhand.vendors.verbs import Action, Verbs, joined, scroll_by

DIRECTIONS = ("up", "down", "left", "right")
NOT_EXECUTED = "Not executed: an earlier action in this turn failed."
NOT_SENT = "Not executed: another action in this turn was refused, so nothing was sent."
#: What ``safety_decision`` says when there is nothing to ask.
ALLOWED = ("regular", "allowed", "allow")

DESKTOP = Verbs()
BROWSER = Verbs()

_CLICKS = {
    "click": ("left", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
    "middle_click": ("middle", 1),
    "right_click": ("right", 1),
}


@DESKTOP.add(*_CLICKS, gives="click", takes="x y")
def _click(adapter: Gemini, fields: Fields) -> list[Action]:
    button, count = _CLICKS[fields.verb]
    return [{"action": "click", **fields.at(), "button": button, "count": count}]


@DESKTOP.add("mouse_down", gives="mouse_down", takes="x y")
def _mouse_down(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "mouse_down", **fields.at()}]


@DESKTOP.add("mouse_up", gives="mouse_up", takes="x y")
def _mouse_up(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "mouse_up", **fields.at()}]


@DESKTOP.add("move", gives="move", takes="x y")
def _move(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "move", **fields.at()}]


@DESKTOP.add("type", gives="type key", takes="text press_enter=false")
def _type(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "type", "text": fields.string("text")}, *_enter(fields.boolean("press_enter", False))]


@DESKTOP.add("drag_and_drop", gives="drag", takes="start_x start_y end_x end_y")
def _drag(adapter: Gemini, fields: Fields) -> list[Action]:
    return _drag_between(fields, ("start_x", "start_y"), ("end_x", "end_y"))


@DESKTOP.add("wait", gives="wait", takes="seconds=1")
def _wait(adapter: Gemini, fields: Fields) -> list[Action]:
    """at most 60 s a call"""
    return [{"action": "wait", "seconds": fields.number("seconds", 1, 0, 60)}]


@DESKTOP.add("press_key", gives="key", takes="key")
def _press_key(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "key", "keys": fields.string("key")}]


@DESKTOP.add("key_down", gives="key_down", takes="key")
def _key_down(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "key_down", "keys": fields.string("key")}]


@DESKTOP.add("key_up", gives="key_up", takes="key")
def _key_up(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "key_up", "keys": fields.string("key")}]


@DESKTOP.add("hotkey", gives="key", takes="keys")
def _hotkey(adapter: Gemini, fields: Fields) -> list[Action]:
    """a list, all at once"""
    return [{"action": "key", "keys": joined(fields.strings("keys"))}]


@DESKTOP.add("take_screenshot", gives="screenshot")
def _take_screenshot(adapter: Gemini, fields: Fields) -> list[Action]:
    return [{"action": "screenshot"}]


@DESKTOP.add("scroll", gives="scroll", takes="x y direction magnitude_in_pixels=300")
def _scroll(adapter: Gemini, fields: Fields) -> list[Action]:
    """pixels, 100 a notch and at least one; `magnitude_in_wheel_clicks` instead counts notches"""
    at, direction = fields.at(), fields.one_of("direction", DIRECTIONS)
    if fields.has("magnitude_in_wheel_clicks"):
        if fields.has("magnitude_in_pixels"):
            raise fields.refusal("magnitude_in_pixels and magnitude_in_wheel_clicks are both given: give one")
        notches = fields.integer("magnitude_in_wheel_clicks", low=1, high=100)
        return [{"action": "scroll", **at, **scroll_by(direction, notches)}]
    pixels = fields.number("magnitude_in_pixels", 300, 1, 10_000)
    return [{"action": "scroll", **at, **scroll_by(direction, pixels), "unit": "pixels"}]


# -- the browser's own, which act on the browser that has the focus ----------------------------------------------------

BROWSER.update(DESKTOP)


@BROWSER.add("go_back", gives="key")
def _go_back(adapter: Gemini, fields: Fields) -> list[Action]:
    """Alt+Left"""
    return [{"action": "key", "keys": "alt+Left"}]


@BROWSER.add("go_forward", gives="key")
def _go_forward(adapter: Gemini, fields: Fields) -> list[Action]:
    """Alt+Right"""
    return [{"action": "key", "keys": "alt+Right"}]


@BROWSER.add("navigate", gives="key type", takes="url")
def _navigate(adapter: Gemini, fields: Fields) -> list[Action]:
    """Ctrl+L, the address, Return"""
    return _go_to(fields.string("url"))


@BROWSER.add("open_web_browser", gives="launch")
def _open_web_browser(adapter: Gemini, fields: Fields) -> list[Action]:
    """the application `browser` of the adapter; refused without one"""
    if adapter.browser is None:
        raise fields.refusal("no browser is set here: open one from the screen")
    return [{"action": "launch", "app": adapter.browser}]


@BROWSER.add("search", gives="key type")
def _search(adapter: Gemini, fields: Fields) -> list[Action]:
    """to the address `search` of the adapter; refused without one"""
    if adapter.search is None:
        raise fields.refusal("no search page is set here: use navigate with its address")
    return _go_to(adapter.search)


@BROWSER.add("wait_5_seconds", gives="wait")
def _wait_5_seconds(adapter: Gemini, fields: Fields) -> list[Action]:
    """older name"""
    return [{"action": "wait", "seconds": 5}]


@BROWSER.add("click_at", gives="click", takes="x y")
def _click_at(adapter: Gemini, fields: Fields) -> list[Action]:
    """older name"""
    return [{"action": "click", **fields.at()}]


@BROWSER.add("hover_at", gives="move", takes="x y")
def _hover_at(adapter: Gemini, fields: Fields) -> list[Action]:
    """older name"""
    return [{"action": "move", **fields.at()}]


@BROWSER.add("type_text_at", gives="click key type", takes="x y text press_enter=true clear_before_typing=true")
def _type_text_at(adapter: Gemini, fields: Fields) -> list[Action]:
    """older name; clearing is Ctrl+A, BackSpace"""
    found: list[Action] = [{"action": "click", **fields.at()}]
    if fields.boolean("clear_before_typing", True):
        found += [{"action": "key", "keys": "ctrl+a"}, {"action": "key", "keys": "BackSpace"}]
    text = fields.string("text")
    if text:
        found.append({"action": "type", "text": text})
    return [*found, *_enter(fields.boolean("press_enter", True))]


@BROWSER.add("key_combination", gives="key", takes="keys")
def _key_combination(adapter: Gemini, fields: Fields) -> list[Action]:
    """older name; one string, such as `Control+A`"""
    return [{"action": "key", "keys": fields.string("keys")}]


@BROWSER.add("scroll_document", gives="key scroll", takes="direction")
def _scroll_document(adapter: Gemini, fields: Fields) -> list[Action]:
    """older name; Page Up or Page Down, and half a screen sideways (as Google's reference loop does)"""
    direction = fields.one_of("direction", DIRECTIONS)
    if direction in ("up", "down"):
        return [{"action": "key", "keys": "Prior" if direction == "up" else "Next"}]
    half = min(10_000, max(1, adapter.screen[0] // 2))
    return [{"action": "scroll", **scroll_by(direction, half), "unit": "pixels"}]


@BROWSER.add("scroll_at", gives="scroll", takes="x y direction magnitude=800")
def _scroll_at(adapter: Gemini, fields: Fields) -> list[Action]:
    """older name; thousandths of the screen, which are pixels at 100 a notch, at least one"""
    at, direction = fields.at(), fields.one_of("direction", DIRECTIONS)
    edge = adapter.screen[1 if direction in ("up", "down") else 0]
    pixels = fields.number("magnitude", 800, 1, 1000) * edge / 1000
    return [{"action": "scroll", **at, **scroll_by(direction, max(1, min(10_000, pixels))), "unit": "pixels"}]


@BROWSER.add("drag_and_drop", gives="drag", takes="start_x start_y end_x end_y")
def _browser_drag(adapter: Gemini, fields: Fields) -> list[Action]:
    """or, older: `x y destination_x destination_y`"""
    if not fields.has("destination_x") and not fields.has("destination_y"):
        return _drag(adapter, fields)
    return _drag_between(fields, ("x", "y"), ("destination_x", "destination_y"))


def _drag_between(fields: Fields, start: tuple[str, str], end: tuple[str, str]) -> list[Action]:
    path = [[fields.integer(name) for name in pair] for pair in (start, end)]
    return [{"action": "drag", "path": path}]


def _enter(wanted: bool) -> list[Action]:
    return [{"action": "key", "keys": "Return"}] if wanted else []


def _go_to(url: str) -> list[Action]:
    return [{"action": "key", "keys": "ctrl+l"}, {"action": "type", "text": url}, *_enter(True)]


class Gemini(Adapter):
    """The tool ``computer_use`` of the Gemini API.

    Args:
        screen: The root window's width and height in pixels.
        environment: ``desktop``, or ``browser`` where a browser has the focus; the older models know only that one.
        api: ``generate_content`` or ``interactions``: the form of calls and results.
        browser: The application that ``open_web_browser`` launches; without one it is refused.
        search: The address that ``search`` goes to; without one it is refused.
        url: What a result of the browser gives as the page's address.
        custom: Functions of the caller's own, whose calls are left to it.
        limits: What pictures the model takes, when it is not the default.
    """

    vendor = "Gemini"
    tool = "computer_use"
    verbs: ClassVar[Verbs] = BROWSER
    source = "google-genai 3.6.1 (calls and results), Google documentation (functions)"
    default_limits = GOOGLE

    def __init__(
        self,
        screen: Size,
        environment: str = "desktop",
        api: str = "generate_content",
        browser: str | None = None,
        search: str | None = None,
        url: str = "about:blank",
        custom: Collection[str] = (),
        limits: Limits | None = None,
    ) -> None:
        if environment not in ("desktop", "browser"):
            raise ValueError("environment must be desktop or browser")
        if api not in ("generate_content", "interactions"):
            raise ValueError("api must be generate_content or interactions")
        super().__init__(screen, limits)
        self.environment = environment
        self.api = api
        self.browser = browser
        self.search = search
        self.url = url
        self.custom = frozenset(custom)

    @property
    def space(self) -> Any:
        return {"grid": 999}

    def tools(self) -> list[dict[str, Any]]:
        if self.api == "interactions":
            return [{"type": "computer_use", "environment": self.environment}]
        return [{"computer_use": {"environment": f"ENVIRONMENT_{self.environment.upper()}"}}]

    def calls(self, reply: Any) -> list[dict[str, Any]]:
        return [call for call in _function_calls(plain(reply)) if str(call.get("name")) not in self.custom]

    def read(self, reply: Any) -> Turn:
        calls = self.calls(reply)
        steps = []
        asks = []
        verbs = BROWSER if self.environment == "browser" else DESKTOP
        for number, call in enumerate(calls):
            name, given = call.get("name"), call.get("args", call.get("arguments"))
            if isinstance(name, str) and name in BROWSER and name not in verbs:
                known = ", ".join(DESKTOP)
                raise BatchRefused(f"{name} is a browser's function, and this is a desktop: use {known}", number)
            decision = None
            if isinstance(given, dict):
                decision = given.get("safety_decision")
                given = {key: value for key, value in given.items() if key not in ("intent", "safety_decision")}
            steps.append(self._step(number, name, given, verbs))
            ask = _ask(number, str(name), decision)
            asks += [ask] if ask else []
        return Turn(calls, [step.verb for step in steps], self._parts(steps), asks, say=_text(plain(reply)))

    def results(self, turn: Turn, results: Sequence[CallResult], look: Outcome | None) -> list[dict[str, Any]]:
        """One part (``function_response``) or step (``function_result``) for every call, each with the newest picture
        of its batch, as in Google's own loops.
        """
        answers = []
        owner = {call: part for part in turn.parts for call in part.owners}
        shown = [result for result in results if result.picture and result.call in owner]
        pictures = {id(owner[result.call]): result.picture for result in shown}
        for call, result in zip(turn.calls, results, strict=False):
            response: dict[str, Any] = {} if self.environment == "desktop" else {"url": self.url}
            if result.ok:
                response["output"] = " ".join(["Done.", result.text]).strip()
            else:
                response["error"] = {"skipped": NOT_EXECUTED, "not sent": NOT_SENT}.get(result.status) or result.text
            given = call.get("args", call.get("arguments"))
            asked = _ask(0, "", given.get("safety_decision")) if isinstance(given, dict) else None
            if asked is not None and turn.parts:
                response["safety_acknowledgement"] = "true"
            picture = pictures.get(id(owner.get(result.call))) or (look.picture if look else None)
            if result.status in ("skipped", "not sent"):
                picture = None
            form = self._step_result if self.api == "interactions" else self._part_result
            answers.append(form(call, response, picture))
        return answers

    def _part_result(self, call: dict[str, Any], response: dict[str, Any], picture: bytes | None) -> dict[str, Any]:
        told: dict[str, Any] = {"name": call.get("name"), "response": response}
        if call.get("id"):
            told["id"] = call["id"]
        if picture is not None:
            told["parts"] = [{"inline_data": {"mime_type": media_type(picture), "data": picture}}]
        return {"function_response": told}

    def _step_result(self, call: dict[str, Any], response: dict[str, Any], picture: bytes | None) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": json.dumps(response, ensure_ascii=False)}]
        if picture is not None:
            data = base64.b64encode(picture).decode()
            content.append({"type": "image", "mime_type": media_type(picture), "data": data})
        told = {"type": "function_result", "call_id": call.get("id"), "name": call.get("name"), "result": content}
        return {**told, "is_error": True} if "error" in response else told


def _ask(number: int, verb: str, decision: Any) -> Ask | None:
    """What a safety decision wants of a person: anything that is not plainly allowed is asked."""
    if not decision:
        return None
    facts = decision if isinstance(decision, dict) else {"decision": decision}
    if str(facts.get("decision", "")).lower() in ALLOWED:
        return None
    reason = facts.get("explanation") or f"the safety decision is {facts.get('decision')}"
    return Ask(number, verb, "gemini safety decision", str(reason), facts)


def _content_parts(value: Any) -> list[dict[str, Any]]:
    """The parts of a response, a candidate's content, or steps of an interaction, in order."""
    if isinstance(value, list):
        return [part for item in value for part in _content_parts(item)]
    if not isinstance(value, dict):
        return []
    for name in ("candidates", "content", "parts", "steps"):
        inner = value.get(name)
        if isinstance(inner, (list, dict)):
            return _content_parts(inner[:1] if name == "candidates" and isinstance(inner, list) else inner)
    return [value]


def _function_calls(value: Any) -> list[dict[str, Any]]:
    calls = []
    for part in _content_parts(value):
        call = part.get("function_call") or part.get("functionCall")
        if isinstance(call, dict):
            calls.append(call)
        elif part.get("type") == "function_call" or ("type" not in part and "name" in part and "response" not in part):
            calls.append(part)
    return calls


def _text(value: Any) -> str:
    parts = [part for part in _content_parts(value) if not part.get("thought")]
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
