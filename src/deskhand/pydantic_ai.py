"""A desktop for agents of Pydantic AI (``pydantic-ai-slim`` 2.68): a capability, and the toolset it is made of.

::

    agent = Agent("anthropic:...", capabilities=[Computer(display=":71")])

Each run has a session of its own, opened and closed with the run. A run that ends in ``DeferredToolRequests`` for one
of our calls is parked: it keeps its session and its desktop, and the run that brings the answers goes on with them.

Pydantic AI documentation: Capabilities; Toolsets; Deferred tools, Human-in-the-loop tool approval; Message history.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deskhand.approvals import Answer, Ask, Policy
from deskhand.backends.base import Backend
from deskhand.errors import ActionError, BatchRefused, BudgetSpent, DesktopInUse, Unsupported
from deskhand.extras import needs
from deskhand.pictures import Limits
from deskhand.session import CloseLaunched, Session
from deskhand.tools import ComputerTools, ToolAnswer, limits_for, refusal, tools
from deskhand.trace import TraceRecorder
from deskhand.turns import PARKED, terms_at

with needs("The Pydantic AI capability", "pydantic-ai", "pydantic_ai", "pydantic_core"):
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities.abstract import WrapRunHandler
    from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
    from pydantic_ai.messages import (
        BinaryContent,
        InstructionPart,
        ModelMessage,
        ModelRequest,
        ModelResponse,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import AgentDepsT, DeferredToolRequests, RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema

#: Corrections of refused calls in a row: each refusal says what to do, so a model gets more than the usual one.
_RETRIES = 5
_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
_LEFT_OUT = "(an earlier picture of the screen, left out)"


class ComputerToolset(AbstractToolset[AgentDepsT]):
    """The three tools over a session that somebody else opens and closes.

    Args:
        session: The desktop.
        limits: What pictures the model takes; None: by the run's model.
        id: As every toolset's.
    """

    def __init__(self, session: Session, *, limits: Limits | None = None, id: str | None = "deskhand") -> None:
        self.session = session
        self._limits = limits
        self._id = id
        self._tools: ComputerTools | None = None
        #: The calls that wait for a person: tool call id to what was asked.
        self.waiting: dict[str, list[Ask]] = {}
        #: When the last of them was asked, in seconds since the epoch.
        self.asked_at: float | None = None

    def not_allowed(self, answer: Answer) -> None:
        """Record what became of the calls that wait, and wait for them no longer."""
        for asks in self.waiting.values():
            for ask in asks:
                self.session.answered(ask, answer, self.asked_at)
        self.waiting.clear()

    @property
    def id(self) -> str | None:
        return self._id

    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> InstructionPart:
        return InstructionPart(content=(await self._open(ctx)).instructions)

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=tool.parameters,
                    sequential=True,  # one screen, one pointer
                    metadata={"read_only": tool.read_only},
                ),
                max_retries=_RETRIES,
                args_validator=_ARGUMENTS,
            )
            for tool in tools()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Call a tool.

        Raises:
            ModelRetry: It was refused before anything was sent, and can be corrected.
            ToolFailed: It did not work, or can not be done here.
            ApprovalRequired: A person has to allow it first.
            BackendError, NoDisplay: The desktop is lost, which is not for the model to decide on.
        """
        computer = await self._open(ctx)
        approved = ctx.tool_call_approved
        call = ctx.tool_call_id or ""
        if approved:
            for ask in self.waiting.pop(call, []):
                self.session.answered(ask, "allowed", self.asked_at)
        try:
            # With a person at hand to be asked, the session asks; else the run ends with what it needs.
            if name == "computer_act" and not approved and self.session.approve is None:
                await self._ask(computer, call, tool_args)
            answer = await computer.call_or_raise(name, tool_args, approved)
        except BudgetSpent as error:
            raise ToolFailed(refusal(error).text) from None
        except BatchRefused as error:
            raise ModelRetry(refusal(error).text) from None
        except (ActionError, Unsupported, DesktopInUse) as error:
            raise ToolFailed(refusal(error).text) from None
        return _returned(answer)

    async def _ask(self, computer: ComputerTools, call: str, arguments: Mapping[str, Any]) -> None:
        if self.session.policy.asks_nothing:
            return
        asks = await computer.asks("computer_act", arguments)
        if asks:
            self.waiting[call] = asks
            self.asked_at = time.time()
            told = [{"action": ask.call, "verb": ask.verb, "source": ask.source, "reason": ask.reason} for ask in asks]
            raise ApprovalRequired(metadata={"asks": told})

    async def _open(self, ctx: RunContext[AgentDepsT]) -> ComputerTools:
        if self._tools is None:
            limits = self._limits
            if limits is None:
                limits = limits_for(getattr(ctx.model, "model_name", None), getattr(ctx.model, "system", None))
            self._tools = await ComputerTools.open(self.session, limits)
        return self._tools


def _returned(answer: ToolAnswer) -> ToolReturn[Any]:
    content: list[Any] = [answer.text]
    if answer.picture is not None:
        # OpenAI's models see it in this detail, which does not scale a picture of this size; the others ignore it.
        detail = {"detail": "high"}
        content.append(BinaryContent(answer.picture, media_type=answer.mime_type, vendor_metadata=detail))
    return ToolReturn(return_value=content if len(content) > 1 else answer.text, metadata=answer.data)


def keep_last_pictures(keep: int) -> Callable[[list[ModelMessage]], list[ModelMessage]]:
    """A history processor that leaves out all but the last pictures: at least ``keep``, and less than twice as many.

    It leaves out ``keep`` at a time, so that the beginning of the history, which vendors cache, changes only once in
    ``keep`` pictures. What it leaves out depends on the history alone.

    Raises:
        ValueError: ``keep`` is less than 1.
    """
    if keep < 1:
        raise ValueError("keep_pictures must be 1 or more")

    def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        count = sum(_pictures_in(part) for message in messages for part in message.parts)
        drop = max(0, count - keep) // keep * keep
        if not drop:
            return messages
        processed: list[ModelMessage] = []
        for message in messages:
            if isinstance(message, ModelRequest) and drop and any(_pictures_in(part) for part in message.parts):
                parts = []
                for part in message.parts:
                    found = _pictures_in(part)
                    if found and drop:
                        drop -= found
                        part = _without_pictures(part)
                    parts.append(part)
                message = replace(message, parts=parts)
            processed.append(message)
        return processed

    return process


def _pictures_in(part: Any) -> int:
    """How many pictures of ours a part of a message holds: each of our results has one at most."""
    if not isinstance(part, ToolReturnPart) or not part.tool_name.endswith(("computer_act", "computer_screenshot")):
        return 0
    return int(isinstance(part.content, list) and any(_is_picture(item) for item in part.content))


def _without_pictures(part: Any) -> Any:
    content = [_LEFT_OUT if _is_picture(item) else item for item in part.content]
    return replace(part, content=content)


def _is_picture(item: Any) -> bool:
    return isinstance(item, BinaryContent) and item.is_image


@dataclass
class _Run:
    """What belongs to one run, and to the runs that resume it."""

    session: Session
    toolset: ComputerToolset[Any]
    parking: contextlib.AsyncExitStack | None = None
    timer: asyncio.TimerHandle | None = None


@dataclass
class Computer(AbstractCapability[AgentDepsT]):
    """A Linux desktop.

    Args:
        display: The X display, such as ":71"; None: DISPLAY.
        xauthority: The cookie file; None: what the hand finds by itself.
        backend: Makes the backend of a run, instead of ``display``: a sandbox for each run, a guest.
        max_actions: How many actions a run may take.
        keep_pictures: How many of the last pictures the model is shown; see ``keep_last_pictures``.
        limits: What pictures the model takes; None: by its name.
        queue_s: Seconds to wait while another session has the desktop; 0: the run fails at once, with its name.
        close_launched: What becomes of the applications a run opened, see ``Session``.
        idle_s: For ``close_launched="idle"``.
        policy: What needs a person: such calls become deferred tool requests; by default nothing does.
        trace: A directory; every run leaves a trace in one of its own there.
        name: What others are told who has the desktop.
    """

    display: str | None = None
    xauthority: str | None = None
    backend: Callable[[], Backend] | None = None
    max_actions: int | None = None
    keep_pictures: int = 3
    limits: Limits | None = None
    queue_s: float = 0.0
    close_launched: CloseLaunched = "never"
    idle_s: float = 600.0
    policy: Policy | None = None
    trace: str | Path | None = None
    name: str = "pydantic-ai"

    _run: _Run | None = field(default=None, init=False, repr=False, compare=False)
    #: Parked runs by the tool calls that wait; shared with the copies that runs work with.
    _parked: dict[str, _Run] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._prune = keep_last_pictures(self.keep_pictures)

    @classmethod
    def from_spec(cls, *args: Any, **kwargs: Any) -> Computer[Any]:
        """From plain values: ``{"Computer": {"display": ":71", "policy": {"launch": true}}}``."""
        kinds: dict[str, Any] = {"policy": Policy, "limits": Limits}
        for name, kind in kinds.items():
            given = kwargs.get(name)
            if isinstance(given, Mapping):
                values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
                kwargs[name] = kind(**values)
        if "backend" in kwargs:
            raise ValueError("a backend can not be named in a specification: use display")
        return cls(*args, **kwargs)

    async def for_run(self, ctx: RunContext[AgentDepsT]) -> Computer[AgentDepsT]:
        """A copy for one run, with a session that is not opened yet; or with that of the parked run it resumes."""
        bound = copy.copy(self)
        bound._run = self._parked_run(ctx.messages) or self._new_run(ctx)
        return bound

    def get_toolset(self) -> AbstractToolset[AgentDepsT] | None:
        return self._run.toolset if self._run is not None else None

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        run = self._run
        assert run is not None, "for_run comes first"
        outcome: tuple[str, str] = ("stopped", "the run ended without saying how it went")
        try:
            await self._enter(run)
            result = await handler()
            outcome = ("done", str(result.output))
            if self._waits(run, result):
                await self._park(run)
            return result
        except Exception as error:
            outcome = ("failed", str(error))
            raise
        finally:
            if run.parking is None:
                await _end(run, *outcome)

    async def prepare_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self._run is not None:
            # The run goes on, so everything was answered; what was allowed has been called, and waits no more.
            self._run.toolset.not_allowed("declined")
        request_context.messages = self._prune(list(request_context.messages))
        return request_context

    def _new_run(self, ctx: RunContext[AgentDepsT]) -> _Run:
        backend = self.backend() if self.backend is not None else _local(self.display, self.xauthority)
        trace = None
        if self.trace is not None:
            goal = ctx.prompt if isinstance(ctx.prompt, str) else "a run of Pydantic AI"
            trace = TraceRecorder(Path(self.trace) / str(ctx.run_id), goal=goal, facts={"way in": "Pydantic AI"})
        session = Session(
            backend,
            self.max_actions,
            trace,
            name=self.name,
            lease=terms_at(backend, self.queue_s),
            close_launched=self.close_launched,
            idle_s=self.idle_s,
            policy=self.policy,
        )
        return _Run(session, ComputerToolset(session, limits=self.limits, id=self.id or "deskhand"))

    # -- parking ------------------------------------------------------------------------------------------------------

    def _parked_run(self, messages: Sequence[ModelMessage]) -> _Run | None:
        """The parked run that a history ends in."""
        if not messages or not isinstance(messages[-1], (ModelResponse, ModelRequest)):
            return None
        responses = [message for message in messages if isinstance(message, ModelResponse)]
        calls = (
            [part.tool_call_id for part in responses[-1].parts if isinstance(part, ToolCallPart)] if responses else []
        )
        return next((self._parked[call] for call in calls if call in self._parked), None)

    @staticmethod
    def _waits(run: _Run, result: AgentRunResult[Any]) -> bool:
        output = result.output
        if not isinstance(output, DeferredToolRequests):
            return False
        return any(call.tool_call_id in run.toolset.waiting for call in output.approvals)

    async def _park(self, run: _Run) -> None:
        stack = contextlib.AsyncExitStack()
        await stack.enter_async_context(run.session.parked())
        run.parking = stack
        self._parked.update(dict.fromkeys(run.toolset.waiting, run))
        loop = asyncio.get_running_loop()

        def give_up() -> None:
            ending.append(loop.create_task(self._give_up(run)))

        ending: list[asyncio.Task[None]] = []  # a task that nobody refers to may be collected before it has run
        run.timer = loop.call_later(PARKED, give_up)

    async def _enter(self, run: _Run) -> None:
        if run.parking is None:
            await run.session.__aenter__()
            return
        self._forget(run)
        stack, run.parking = run.parking, None
        await stack.aclose()

    async def _give_up(self, run: _Run) -> None:
        """Nobody came back: let go of the desktop."""
        if run.parking is not None:
            self._forget(run)
            stack, run.parking = run.parking, None
            await stack.aclose()
            run.toolset.not_allowed("no answer")
            await _end(run, "stopped", "nobody answered what the run asked for")

    def _forget(self, run: _Run) -> None:
        if run.timer is not None:
            run.timer.cancel()
            run.timer = None
        for call in [call for call, parked in self._parked.items() if parked is run]:
            del self._parked[call]

    async def aclose(self) -> None:
        """End the runs that are parked and that nobody will resume."""
        for run in {id(run): run for run in self._parked.values()}.values():
            await self._give_up(run)


async def _end(run: _Run, outcome: Any, text: str) -> None:
    try:
        await run.session.aclose()
    finally:
        if run.session.trace is not None:
            run.session.trace.finish(outcome, text)


def _local(display: str | None, xauthority: str | None) -> Backend:
    from deskhand.backends.local import LocalDisplay

    return LocalDisplay(display, xauthority)
