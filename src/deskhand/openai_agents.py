"""A desktop for agents of the OpenAI Agents SDK (``openai-agents`` 0.24): its ``AsyncComputer``, over a session.

::

    async with Session(LocalDisplay(":71"), lease=LeaseTerms()) as session:
        computer = await DesktopComputer.open(session)
        agent = Agent(name="desk", tools=computer.tools())
        result = await Runner.run(agent, "Write a note", run_config=computer.run_config())

The SDK's computer tool has no way to tell the model of an error, and ends the run at the first one. With
``run_config()`` what went wrong is told in a message beside the picture, and the rest of that call is not run. What a
person has to allow is asked by the session (``Session(policy=, approve=)``), OpenAI's safety checks too.

Read in the SDK: ``agents/computer.py``; ``agents/run_internal/tool_actions.py``, ComputerAction; ``agents/tool.py``.
"""

from __future__ import annotations

import base64
import json
from typing import Any, cast

from deskhand.approvals import Ask
from deskhand.backends.base import in_words
from deskhand.errors import ActionError, ActionFailed, DesktopInUse, Unsupported
from deskhand.extras import needs
from deskhand.pictures import OPENAI_PREVIEW, Limits
from deskhand.session import Session
from deskhand.tools import ComputerTools, Launching, launching_at, refusal, tools
from deskhand.vendors import openai

with needs("The OpenAI Agents computer", "openai-agents", "agents", "openai"):
    from agents.run_config import CallModelData, ModelInputData
    from agents.tool import ComputerToolSafetyCheckData
    from agents.tool_context import ToolContext

    from agents import AsyncComputer, Button, ComputerTool, Environment, FunctionTool, RunConfig, Tool

_LAUNCH_PARAMETERS = {
    "type": "object",
    "properties": {"app": {"type": "string", "minLength": 1, "maxLength": 255}},
    "required": ["app"],
    "additionalProperties": False,
}


class DesktopComputer(AsyncComputer):
    """The computer of one run. Whoever made the session closes it.

    Args:
        session: The desktop.
        screen: Its size in pixels.
        launching: What is known of opening applications there.
        limits: What pictures the model takes. The SDK sends them without ``detail``, so they are scaled as "high" is.
    """

    def __init__(
        self,
        session: Session,
        screen: tuple[int, int],
        launching: Launching = "by_name",
        limits: Limits = OPENAI_PREVIEW,
    ) -> None:
        self.session = session
        self._launching: Launching = launching
        self._adapter = openai.Computer(screen, limits)
        self._tells = False
        #: What went wrong since the model was told last.
        self._wrong: list[str] = []
        self._stopped = False

    @classmethod
    async def open(cls, session: Session) -> DesktopComputer:
        """The computer, knowing the session's desktop.

        Raises:
            NoDisplay: It can not be reached.
        """
        launching, screen = await launching_at(session.backend)
        return cls(session, screen, launching)

    # -- for the agent ------------------------------------------------------------------------------------------------

    def tools(self) -> list[Tool]:
        """The computer tool; and where applications are opened by name, ``computer_apps`` and ``launch``."""
        found: list[Tool] = [ComputerTool(computer=self, on_safety_check=self.on_safety_check)]
        if self._launching != "not_here":
            apps = next(tool for tool in tools() if tool.name == "computer_apps")
            words = "Open an application by the name computer_apps lists, and wait for its window."
            found.append(FunctionTool("computer_apps", apps.description, apps.parameters, self._apps, True))
            found.append(FunctionTool("launch", words, _LAUNCH_PARAMETERS, self._launch, False))
        return found

    def run_config(self, **more: Any) -> RunConfig:
        """A run's configuration with which the model is told what went wrong; ``more`` are other fields of it."""
        self._tells = True
        return RunConfig(call_model_input_filter=self._tell, **more)

    async def on_safety_check(self, data: ComputerToolSafetyCheckData) -> bool:
        """For ``ComputerTool(on_safety_check=)``: asks the session's person; without one it is declined.

        The SDK ends the run with ``UserError`` at a no, as it has no way to tell the model of one.
        """
        check = data.safety_check
        reason = str(check.message or check.code or "a safety check is pending")
        facts = check.model_dump(mode="json")
        call = data.tool_call.model_dump(mode="json")
        actions = call.get("actions") or [call.get("action")]
        verb = ", ".join(str(action.get("type")) for action in actions if isinstance(action, dict)) or "computer"
        return await self.session.allow(Ask(0, verb, "openai safety check", reason, facts))

    # -- AsyncComputer ------------------------------------------------------------------------------------------------

    @property
    def environment(self) -> Environment:
        return "ubuntu"  # of the four the SDK knows

    @property
    def dimensions(self) -> tuple[int, int]:
        """The size of the picture the model saw last, or will see first."""
        return self._adapter.picture

    async def screenshot(self) -> str:
        outcome = await self.session.screenshot(**self._adapter.wish)
        self._adapter.saw(outcome)
        self._stopped = False
        assert outcome.picture is not None, "a failed capture is an error"
        return base64.b64encode(outcome.picture).decode("ascii")

    async def click(self, x: int, y: int, button: Button, *, keys: list[str] | None = None) -> None:
        await self._act("click", x=x, y=y, button=button, keys=keys or [])

    async def double_click(self, x: int, y: int, *, keys: list[str] | None = None) -> None:
        await self._act("double_click", x=x, y=y, keys=keys or [])

    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int, *, keys: list[str] | None = None) -> None:
        await self._act("scroll", x=x, y=y, scroll_x=scroll_x, scroll_y=scroll_y, keys=keys or [])

    async def type(self, text: str) -> None:
        await self._act("type", text=text)

    async def wait(self) -> None:
        await self._act("wait")

    async def move(self, x: int, y: int, *, keys: list[str] | None = None) -> None:
        await self._act("move", x=x, y=y, keys=keys or [])

    async def keypress(self, keys: list[str]) -> None:
        await self._act("keypress", keys=keys)

    async def drag(self, path: list[tuple[int, int]], *, keys: list[str] | None = None) -> None:
        await self._act("drag", path=[{"x": x, "y": y} for x, y in path], keys=keys or [])

    # -- how ----------------------------------------------------------------------------------------------------------

    async def _act(self, verb: str, **fields: Any) -> None:
        if self._stopped:
            return  # an earlier action of this call failed, and the model will be told
        call = {"type": "computer_call", "actions": [{"type": verb, **fields}]}
        try:
            for part in self._adapter.read([call]).parts:
                outcome = await self.session.act({**part.envelope, "picture": False})
                if not outcome.ok:
                    raise ActionFailed(outcome.error or "it did not work")
        except (ActionError, Unsupported, DesktopInUse) as error:
            if not self._tells:
                raise
            said = str(error).removeprefix(f"{verb}: ")
            self._wrong.append(f"{verb}: {said}; the rest of that computer call was not executed.")
            self._stopped = True

    async def _tell(self, data: CallModelData[Any]) -> ModelInputData:
        wrong, self._wrong = self._wrong, []
        if not wrong:
            return data.model_data
        message = {"role": "user", "content": [{"type": "input_text", "text": "Error: " + "\n".join(wrong)}]}
        given = data.model_data
        return ModelInputData([*given.input, cast(Any, message)], given.instructions)

    async def _apps(self, context: ToolContext[Any], arguments: str) -> str:
        return (await ComputerTools(self.session, self._launching).call("computer_apps", {})).text

    async def _launch(self, context: ToolContext[Any], arguments: str) -> str:
        try:
            app = json.loads(arguments)["app"]
        except (ValueError, KeyError, TypeError):
            return 'launch needs {"app": NAME} (nothing was sent)'
        try:
            outcome = await self.session.act({"actions": [{"action": "launch", "app": app}]})
        except (ActionError, Unsupported, DesktopInUse) as error:
            return refusal(error).text
        return in_words(outcome)
