"""The three tools an agent gets, whatever it is written in, and the instructions that go with its desktop.

- ``computer_act(actions)``: a batch; answers with its results and one picture;
- ``computer_screenshot(region?)``: look only;
- ``computer_apps()``: the applications that can be launched; read-only, costs no budget.

Positions are pixels of the last whole-screen picture the agent was given, whatever size that was scaled to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from deskhand.backends.base import Outcome
from deskhand.errors import BatchRefused, DeskhandError
from deskhand.session import Session

#: Long edge, in pixels, of the pictures a model is given unless its vendor's limit is known better.
MAX_EDGE = 1568

#: What is known of opening applications: by name (a sandbox), not at all (a person's own screen), or not known.
Launching = Literal["by_name", "not_here", "unknown"]

_COMMON = (
    "You use a Linux desktop through three tools. computer_act runs a batch of actions in order, stops at the first that"
    " fails, waits until the screen has settled and answers with what happened and one picture; put several actions into"
    " one batch when you are sure of them. computer_screenshot only looks. Positions are pixels of the last whole-screen"
    " picture you were given, origin top left. After a shortcut that opens a window, wait for it (wait_window) or look,"
    " before you type into it. An error says what was sent: only 'none' is safe to send again; else look first."
)
_LAUNCHING: dict[Launching, str] = {
    "by_name": (
        " Open applications with the launch action, by the name computer_apps lists; never by hunting for an icon."
        " A launch returns when the application's window is there, so it needs no waiting."
    ),
    "not_here": (
        " Neither launch nor computer_apps works on this desktop: open applications with the computer's own launcher"
        " (the Super key, or the application menu)."
    ),
    "unknown": (
        " Call computer_apps first: when it answers, open applications with the launch action by the name it lists;"
        " when it is refused, use the computer's own launcher (the Super key, or the application menu)."
    ),
}


@dataclass(frozen=True)
class Tool:
    """A tool as every protocol wants it described: ``parameters`` is JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool call came to. ``text`` is for the model, ``data`` the same for programs, ``picture`` an encoded file.

    ``is_error`` tells that the call was refused or failed; the text then says what to do.
    """

    text: str
    data: dict[str, Any]
    picture: bytes | None = None
    picture_format: str = "png"
    is_error: bool = False

    @property
    def mime_type(self) -> str:
        return f"image/{self.picture_format}"


def instructions(launching: Launching) -> str:
    """What to tell the model, for a desktop where opening applications works like that."""
    return _COMMON + _LAUNCHING[launching]


@cache
def tools() -> tuple[Tool, ...]:
    """The three tools, with schemas made from the action model."""
    return (
        Tool(
            "computer_act",
            "Run 1 to 100 actions in order on the desktop, stop at the first that fails, let the screen settle, and"
            " answer with one result an action and one picture.",
            _act_parameters(),
            read_only=False,
        ),
        Tool(
            "computer_screenshot",
            "Take a picture of the screen, or of a region of it at full detail. Changes nothing.",
            {
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
            },
            read_only=True,
        ),
        Tool(
            "computer_apps",
            "List the applications that can be opened with the launch action, by the name the desktop shows.",
            {"type": "object", "properties": {}, "additionalProperties": False},
            read_only=True,
        ),
    )


class ComputerTools:
    """The three tools over one session. A call never raises for what a model can do wrong: it answers so."""

    def __init__(self, session: Session, launching: Launching = "by_name", max_edge: int = MAX_EDGE) -> None:
        self.session = session
        self.launching: Launching = launching
        self.max_edge = max_edge
        #: The size of the last whole-screen picture: the space the model's positions are in.
        self.picture_size: tuple[int, int] | None = None

    @property
    def instructions(self) -> str:
        return instructions(self.launching)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool by name, as a protocol does. What the backend can not survive is raised, the rest answered."""
        try:
            if name == "computer_act":
                _only(arguments, ("actions", "expect", "settle"))
                return await self.act(arguments.get("actions"), arguments.get("expect"), arguments.get("settle"))
            if name == "computer_screenshot":
                _only(arguments, ("region",))
                return await self.screenshot(arguments.get("region"))
            if name == "computer_apps":
                _only(arguments, ())
                return await self.apps()
            raise BatchRefused(f"there is no tool {name!r}: use computer_act, computer_screenshot or computer_apps")
        except DeskhandError as error:
            return _refusal(error)

    async def act(self, actions: Any, expect: Any = None, settle: Any = None) -> ToolAnswer:
        """``computer_act``.

        Raises:
            DeskhandError: It was refused, or the desktop was lost.
        """
        batch: dict[str, Any] = {"actions": actions, "space": await self._space(), "picture": self._wish()}
        batch.update({name: value for name, value in (("expect", expect), ("settle", settle)) if value is not None})
        return self._answer(await self.session.act(batch))

    async def screenshot(self, region: Sequence[float] | None = None) -> ToolAnswer:
        """``computer_screenshot``. A region comes at full detail and does not change the space of positions.

        Raises:
            DeskhandError: It was refused, or the desktop was lost.
        """
        if region is None:
            return self._answer(await self.session.screenshot(**self._wish()))
        space = await self._space()
        return self._answer(await self.session.screenshot(space=space, **self._wish(), region=list(region)))

    async def apps(self) -> ToolAnswer:
        """``computer_apps``.

        Raises:
            DeskhandError: There is no lookup on this desktop; says what to do instead.
        """
        found = await self.session.apps()
        listed = [{"name": app["name"], "id": app["id"]} for app in found]
        return ToolAnswer("\n".join(f"{app['name']} ({app['id']})" for app in listed), {"apps": listed})

    def _wish(self) -> dict[str, Any]:
        return {"format": "png", "max_edge": self.max_edge}

    async def _space(self) -> Any:
        """The space of the model's positions: before its first picture, the size the first one will have."""
        if self.picture_size is None:
            from deskhand.hand.pixels import fit

            width, height = (await self.session.backend.info())["size"]
            self.picture_size = fit(width, height, self.max_edge)
        return {"picture": list(self.picture_size)}

    def _answer(self, outcome: Outcome) -> ToolAnswer:
        answer = outcome.answer
        facts = answer.get("picture")
        if facts is not None and facts["region"] == [0, 0, *facts["screen"]]:
            self.picture_size = (facts["width"], facts["height"])
        form = facts["format"] if facts is not None else "png"
        return ToolAnswer(_in_text(outcome), answer, outcome.picture, form, is_error=not outcome.ok)


def _in_text(outcome: Outcome) -> str:
    """The results for a model: one line an action, then how the screen ended."""
    answer = outcome.answer
    lines = []
    for number, result in enumerate(outcome.results):
        facts = {name: value for name, value in result.items() if name not in ("action", "status", "error")}
        detail = f": {result['error']}" if "error" in result else f" {json.dumps(facts, ensure_ascii=False)}" if facts else ""
        lines.append(f"{number} {result['action']} {result['status']}{detail}")
    if answer.get("error") and not any("error" in result for result in outcome.results):
        lines.append(str(answer["error"]))
    if not outcome.ok:
        lines.append(f"sent: {answer['sent']}")
    if answer["settle"] in ("timeout", "animating"):
        lines.append(f"the screen was still changing ({answer['settle']}) at {answer['moving']}")
    return "\n".join(lines)


def _refusal(error: DeskhandError) -> ToolAnswer:
    answer = error.facts.get("answer") or {"ok": False, "sent": error.sent, "results": [], "error": str(error)}
    return ToolAnswer(f"{error} (sent: {error.sent})", answer, is_error=True)


def _only(arguments: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in arguments:
        if name not in names:
            raise BatchRefused(f"the tool has no argument {str(name)[:60]!r}: it takes {', '.join(names) or 'none'}")


def _act_parameters() -> dict[str, Any]:
    """JSON Schema of ``computer_act``: the union of the actions, told apart by ``action``, nothing unknown let in."""
    from pydantic import TypeAdapter

    from deskhand.hand.actions import Action
    from deskhand.hand.envelope import MAX_ACTIONS

    schema = TypeAdapter(list[Action]).json_schema()
    for definition in schema["$defs"].values():
        definition["additionalProperties"] = False
        definition.setdefault("required", [])
        if "action" not in definition["required"]:
            definition["required"].append("action")
        launch = definition["properties"].get("app")
        if launch is not None:
            launch.update({"minLength": 1, "maxLength": 255})
    return {
        "type": "object",
        "properties": {
            "actions": {
                "type": "array",
                "items": schema["items"],
                "minItems": 1,
                "maxItems": MAX_ACTIONS,
            },
            "expect": {
                "type": "object",
                "properties": {"sequence": {"type": "integer"}, "window": {"type": "integer"}},
                "additionalProperties": False,
            },
        },
        "required": ["actions"],
        "additionalProperties": False,
        "$defs": schema["$defs"],
    }
