"""What the loop needs of a model, whoever serves it: a conversation of this vendor's, asked one reply at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from deskhand.agents.history import KEEP, prune, without_pictures
from deskhand.agents.usage import Usage
from deskhand.backends.base import Outcome
from deskhand.errors import ModelUnavailable, SetupError
from deskhand.pictures import Size
from deskhand.tools import Tool, ToolAnswer
from deskhand.vendors.base import Adapter

#: Tokens of one reply, thinking included. The Anthropic SDK wants a stream for more than 21,333.
MAX_TOKENS = 16_384
#: Seconds that a server may be silent; a reply with much thinking takes minutes.
SILENCE_SECONDS = 300.0
#: Seconds for one reply, the SDK's own retries included.
REPLY_SECONDS = 900.0


@dataclass(frozen=True)
class Call:
    """A model's call of a tool of ours. ``arguments`` is None when they were no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None


Stop = Literal["acts", "says", "cut", "malformed", "paused", "refused", "full"]
"""Why a reply ended.

``acts``: it holds calls; ``says``: words only; ``cut``: it ran out of tokens; ``malformed``: the vendor could not read
its own model's call; ``paused``: to be asked again as it is; ``refused``: the model or its server will not go on;
``full``: the conversation is longer than the model can read.
"""


@dataclass
class Reply:
    """One reply.

    ``pieces`` is what it asks for, in order: a ``Call`` of ours, or a run of calls on the computer in the form that the
    vendor's adapter reads. ``raw`` is the reply as plain JSON, ``reason`` the vendor's word for why it ended.
    """

    stop: Stop
    raw: Any
    say: str = ""
    pieces: list[Any] = field(default_factory=list)
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


class Model(ABC):
    """A conversation with one model.

    Args:
        name: The model's name, as its server knows it.
        base_url: The server's address, when it is not the SDK's own.
        keep: Pictures that are kept in the conversation, see ``history``.
    """

    vendor: ClassVar[str]
    #: The model's name begins with this in ``--model``.
    prefix: ClassVar[str]
    #: The logger on which the SDK says that it tries again.
    retry_logger: ClassVar[str]
    #: The variables of the environment that hold the key, the first one first.
    keys: ClassVar[tuple[str, ...]]
    #: The model has a verb of its own that ends the run, so it needs no tool for that.
    ends_by_itself: bool = False
    #: Tools of ours can be offered to it.
    takes_tools: bool = True

    def __init__(self, name: str, base_url: str | None = None, keep: int = KEEP) -> None:
        self.name = f"{self.prefix}:{name}"
        self.model = name
        self.base_url = base_url
        self.keep = keep
        self.history: list[Any] = []
        #: Pictures in the last request.
        self.pictures_sent = 0
        #: What the last request held that the one before did not, for the trace.
        self.given: list[Any] = []

    @abstractmethod
    def begin(self, screen: Size) -> Adapter | None:
        """Begin a conversation at a screen of that size: the vendor's adapter, None where our own tools do it all."""

    @abstractmethod
    def open(self, instructions: str, tools: Sequence[Tool], goal: str, look: Outcome) -> None:
        """The instructions, the tools of ours beside the vendor's, and the first message: the goal and a picture."""

    async def ask(self) -> Reply:
        """Send the conversation and read the reply, which becomes part of it unless nothing of it can be used.

        Raises:
            ModelUnavailable: No reply came; what to do is in the sentence. Nothing was sent to the desktop.
        """
        self.pictures_sent = prune(self.history, self.is_picture, self.stand_in, self.keep)
        try:
            return await self._ask()
        finally:
            self.given = []

    @abstractmethod
    async def _ask(self) -> Reply: ...

    def hear(self, results: list[dict[str, Any]]) -> None:
        """The results of the last reply's calls, in the calls' order, in the vendor's form."""
        self.given += without_pictures(results, self.is_picture)
        self._hear(results)

    @abstractmethod
    def _hear(self, results: list[dict[str, Any]]) -> None: ...

    def tell(self, text: str) -> None:
        """A sentence from us, as the user's."""
        self.given.append(text)
        self._tell(text)

    @abstractmethod
    def _tell(self, text: str) -> None: ...

    @abstractmethod
    def result(self, call: Call, answer: ToolAnswer) -> list[dict[str, Any]]:
        """The vendor's result for a call of ours."""

    @staticmethod
    @abstractmethod
    def is_picture(node: dict[str, Any]) -> bool:
        """Whether a node of the conversation is a picture that can be left out."""

    @staticmethod
    @abstractmethod
    def stand_in(node: dict[str, Any]) -> dict[str, Any] | None:
        """What takes the place of a picture that is left out."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections."""

    def unavailable(self, error: Exception) -> ModelUnavailable:
        """An SDK's error in one sentence, with what to do."""
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        if not isinstance(status, int):
            return self._unreachable(error)
        said = str(getattr(error, "api_message", None) or getattr(error, "message", None) or error)
        said = " ".join(said.split())[:300].rstrip(".")
        if status in (401, 403):
            return ModelUnavailable(f"{self.vendor} refuses the key in {self.keys[0]} ({said}): set another one")
        if status == 404:
            return ModelUnavailable(f"{self.vendor} knows no model {self.model!r} ({said}): name another with --model")
        if status == 429:
            return ModelUnavailable(
                f"{self.vendor} still limits the rate after several tries ({said}): try again later"
            )
        if status >= 500:
            return ModelUnavailable(f"{self.vendor} can not answer now ({status}: {said}): try again later")
        return ModelUnavailable(f"{self.vendor} refuses the request ({status}: {said}): another --model may take it")

    def unreadable(self) -> ModelUnavailable:
        """For an answer that is not what the vendor's API gives."""
        where = f" at {self.base_url}" if self.base_url else ""
        return ModelUnavailable(f"what answers{where} does not speak {self.vendor}'s protocol: look at the address")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around the reading of a reply: the SDKs check none, so anything may stand where a list or an object should.

        Raises:
            ModelUnavailable: Something in it has not the form that the vendor's API gives.
        """
        try:
            yield
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self.unreadable() from error

    def _unreachable(self, error: Exception) -> ModelUnavailable:
        if isinstance(error, TimeoutError) and not str(error):
            error = TimeoutError(f"nothing whole came within {REPLY_SECONDS:g} s")
        cause: BaseException = error
        while cause.__cause__ is not None or cause.__context__ is not None:
            cause = cause.__cause__ or cause.__context__ or cause
        said = " ".join(str(cause).split())[:200] or type(cause).__name__
        where = f" at {self.base_url}" if self.base_url else ""
        return ModelUnavailable(
            f"no answer from {self.vendor}{where} ({said}): look at the network and the address, then run it again"
        )


def need(module: str, extra: str) -> SetupError:
    """The error for an SDK that is not installed."""
    return SetupError(f"the package {module!r} is not installed: install it with: pip install 'deskhand[{extra}]'")
