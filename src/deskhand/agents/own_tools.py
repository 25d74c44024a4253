"""Tools of ours that a model gets beside its vendor's computer tool: applications by name, and the end of the run.

A vendor's tool can only click: without these a model hunts for icons, and its last words have to be taken for success.
Where a vendor has no computer tool, our three tools (``deskhand.tools``) stand here with the one that ends the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deskhand.agents.loop import Done
from deskhand.backends.base import Outcome, in_words
from deskhand.errors import BatchRefused, DeskhandError
from deskhand.hand.envelope import parse_batch
from deskhand.session import Session
from deskhand.tools import ComputerTools, Launching, Tool, ToolAnswer, tools
from deskhand.vendors.base import Adapter

LAUNCH = Tool(
    "launch",
    "Open an application by the name or id that computer_apps lists, and return when its window is there.",
    {
        "type": "object",
        "properties": {"app": {"type": "string", "minLength": 1, "maxLength": 255}},
        "required": ["app"],
        "additionalProperties": False,
    },
    read_only=False,
)
FINISH = Tool(
    "finish",
    "End the run: say whether the goal is reached, and in one or two sentences what was done or why it can not be.",
    {
        "type": "object",
        "properties": {"success": {"type": "boolean"}, "summary": {"type": "string"}},
        "required": ["success", "summary"],
        "additionalProperties": False,
    },
    read_only=True,
)


class OwnTools:
    """Those tools, over one session.

    Args:
        session: The session they act in.
        adapter: The vendor's computer tool they stand beside; None offers our own three instead.
        launching: What is known of opening applications at this desktop.
        finish: Whether the model needs ``finish``, having no verb of its own for it.
    """

    def __init__(
        self, session: Session, adapter: Adapter | None, launching: Launching = "by_name", finish: bool = True
    ) -> None:
        self._session = session
        self._adapter = adapter
        self._computer = ComputerTools(session, launching)
        offered = [tool for tool in tools() if tool.name == "computer_apps"] + [LAUNCH]
        if launching == "not_here":
            offered = []
        self.offered: list[Tool] = list(tools()) if adapter is None else offered
        if finish:
            self.offered.append(FINISH)
        #: Set by ``finish``.
        self.done: Done | None = None

    async def look(self) -> Outcome:
        """A picture of the whole screen, in the size the model takes."""
        wish = await self._computer.wish() if self._adapter is None else self._adapter.wish
        outcome = await self._session.screenshot(**wish)
        facts = outcome.answer["picture"]
        self._computer.picture_size = (facts["width"], facts["height"])
        if self._adapter is not None:
            self._adapter.saw(outcome)
        return outcome

    def check(self, name: str, arguments: Mapping[str, Any] | None) -> None:
        """What can be known of a call before anything of its reply is done.

        Raises:
            BatchRefused: There is no such tool, or its arguments can not be read; worded for the model.
        """
        tool = next((tool for tool in self.offered if tool.name == name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in self.offered) or "none beside the computer"
            raise BatchRefused(f"there is no tool {name[:60]!r}: use one of {names}")
        if arguments is None:
            raise BatchRefused(f"{name}: its arguments must be a JSON object")
        known = tool.parameters["properties"]
        for argument in arguments:
            if argument not in known:
                raise BatchRefused(f"{name}: it has no argument {str(argument)[:60]!r}: it takes {_listed(known)}")
        for argument in tool.parameters.get("required", ()):
            if argument not in arguments:
                raise BatchRefused(f"{name}: {argument} is missing")
        if name == "computer_act":
            parse_batch(dict(arguments))
        if tool is LAUNCH and not (isinstance(arguments["app"], str) and arguments["app"]):
            raise BatchRefused("launch: app must be the name of an application")
        if tool is FINISH:
            if not isinstance(arguments["success"], bool):
                raise BatchRefused("finish: success must be true or false")
            if not isinstance(arguments["summary"], str):
                raise BatchRefused("finish: summary must be a string")

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Do a call that ``check`` let pass.

        Raises:
            ActionError: It was refused or did not work; for the model to read.
            Unsupported: This desktop can not do it; for the model to read too.
            BackendError: The desktop was lost; how much was sent is not for the model to decide on.
            NoDisplay: The desktop can not be reached.
        """
        if name == "finish":
            self.done = Done(arguments["summary"] or "the model gave no summary", arguments["success"])
            return ToolAnswer("The run ends.", {})
        if name == "launch":
            return await self._launch(arguments["app"])
        if name == "computer_act":
            return await self._computer.act(arguments.get("actions"), arguments.get("expect"), arguments.get("settle"))
        if name == "computer_screenshot":
            return await self._computer.screenshot(arguments.get("region"))
        return await self._computer.apps()

    async def _launch(self, app: str) -> ToolAnswer:
        wish = self._adapter.wish if self._adapter is not None else True
        outcome = await self._session.act({"actions": [{"action": "launch", "app": app}], "picture": wish})
        if self._adapter is not None:
            self._adapter.saw(outcome)
        facts = outcome.answer.get("picture") or {}
        text = in_words(outcome) if outcome.ok else f"{outcome.error} (sent: {outcome.answer['sent']})"
        return ToolAnswer(text, outcome.answer, outcome.picture, facts.get("format", "png"), is_error=not outcome.ok)


def refused(error: DeskhandError) -> ToolAnswer:
    """The answer that tells a model of an error of ours."""
    return ToolAnswer(f"{error} (sent: {error.sent})", {}, is_error=True)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
