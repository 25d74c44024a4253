"""The desktop of an Inspect AI sandbox (``inspect-ai`` 0.3.285), for the models that are evaluated in it.

::

    Task(dataset, solver=[use_tools(desktop_tools()), generate()], sandbox="docker")

The image needs a running desktop and ``python3`` 3.9 or newer, and nothing of ours: the hand is sent there as one file,
and each call of a tool is one exec in the sandbox. For a desktop outside it there is the MCP server, by Inspect's own
``mcp_server_stdio(command="deskhand", args=["mcp", "--display", ":71"])``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from deskhand.approvals import Approve, Policy
from deskhand.backends.guest import Finished, Guest
from deskhand.errors import ActionError, Unsupported
from deskhand.extras import needs
from deskhand.session import Session
from deskhand.tools import DEFAULT_LIMITS, ComputerTools, limits_for, refusal, tools

with needs("The desktop for Inspect AI", "inspect", "inspect_ai"):
    from inspect_ai.model import ContentImage, ContentText, get_model
    from inspect_ai.tool import Tool, ToolDef, ToolError, ToolParams
    from inspect_ai.util import SandboxEnvironment, sandbox

#: Seconds that one call may take in the sandbox, a batch of long waits included.
PATIENCE = 900
#: A sandbox's exec gives text, and the hand's answer holds the picture's bytes.
_AS_TEXT = (
    "import base64,subprocess,sys;"
    "d=subprocess.run(sys.argv[1:],stdin=sys.stdin.buffer,stdout=subprocess.PIPE);"
    "sys.stdout.write(base64.b64encode(d.stdout).decode());sys.exit(d.returncode)"
)


def desktop_tools(
    display: str = ":0",
    xauthority: str | None = None,
    *,
    max_actions: int | None = None,
    sandbox_name: str | None = None,
    user: str | None = None,
    python: str = "python3",
    policy: Policy | None = None,
    approve: Approve | None = None,
) -> list[Tool]:
    """The three tools. Each sample has a session of its own.

    Args:
        display: The display's name in the sandbox.
        xauthority: The cookie file there; None: what the hand finds by itself.
        max_actions: How many actions a sample may take.
        sandbox_name: Which of the sample's sandboxes; None: the default one.
        user: The user to run the hand as; None: the sandbox's.
        python: The Python there.
        policy: What needs a person; by default nothing. Inspect's own approval policies are asked before a call gets
            here, by the tool's name.
        approve: Asks a person; without it what needs one is declined.
    """
    opened: WeakKeyDictionary[SandboxEnvironment, ComputerTools] = WeakKeyDictionary()

    async def call(name: str, arguments: dict[str, Any]) -> list[ContentText | ContentImage]:
        place = sandbox(sandbox_name)
        if place not in opened:
            guest = Guest(_runs_in(place, user, python), display, xauthority, python)
            limits = limits_for(str(get_model())) if get_model() is not None else DEFAULT_LIMITS
            session = Session(guest, max_actions, name="inspect", policy=policy, approve=approve)
            opened[place] = ComputerTools(session, limits=limits)  # at once: two calls may come side by side
        try:
            answer = await opened[place].call_or_raise(name, arguments)
        except (ActionError, Unsupported) as error:
            raise ToolError(refusal(error).text) from None
        content: list[ContentText | ContentImage] = [ContentText(text=answer.text)]
        if answer.picture is not None:
            data = base64.b64encode(answer.picture).decode("ascii")
            content.append(ContentImage(image=f"data:{answer.mime_type};base64,{data}"))
        return content

    async def act(actions: list[dict[str, Any]], expect: dict[str, Any] | None = None) -> Any:
        given = {"actions": actions} if expect is None else {"actions": actions, "expect": expect}
        return await call("computer_act", given)

    async def screenshot(region: list[float] | None = None) -> Any:
        return await call("computer_screenshot", {} if region is None else {"region": region})

    async def apps() -> Any:
        return await call("computer_apps", {})

    by_name: dict[str, Callable[..., Awaitable[Any]]] = {
        "computer_act": act,
        "computer_screenshot": screenshot,
        "computer_apps": apps,
    }
    return [
        ToolDef(
            by_name[tool.name],
            tool.name,
            tool.description,
            ToolParams.model_validate(tool.parameters),
            parallel=False,
            max_output=0,
        ).as_tool()
        for tool in tools()
    ]


def _runs_in(
    place: SandboxEnvironment, user: str | None, python: str
) -> Callable[[Sequence[str], bytes], Awaitable[Finished]]:
    async def run(argv: Sequence[str], stdin: bytes) -> Finished:
        # Never again by itself: input can not be unsent.
        done = await place.exec(
            [python, "-c", _AS_TEXT, *argv], input=stdin, user=user, timeout=PATIENCE, timeout_retry=False
        )
        try:
            output = base64.b64decode(done.stdout, validate=True)
        except binascii.Error:
            output = b""  # no whole answer: the guest says that nobody knows what happened
        return Finished(done.returncode, output, done.stderr.encode())

    return run
