"""Places where commands can be started, and the commands as they run there."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

#: Bytes of a line at most: a clipboard of a million characters, each escaped, fits, and a picture as base64.
LONGEST_LINE = 64 << 20


class Input(Protocol):
    """The near end of a command's standard input."""

    def write(self, data: bytes, /) -> None: ...

    async def drain(self) -> None:
        """Raises ConnectionError: it will not arrive."""

    def close(self) -> None: ...


class Process(Protocol):
    """A command that runs; ``asyncio.subprocess.Process`` is one."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> Input | None: ...

    @property
    def stdout(self) -> asyncio.StreamReader | None: ...

    @property
    def stderr(self) -> asyncio.StreamReader | None: ...

    @property
    def returncode(self) -> int | None: ...

    async def communicate(self, input: bytes | None = None, /) -> tuple[bytes, bytes]: ...

    async def wait(self) -> int: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Place(ABC):
    """Where commands can be started whose standard input and output stay connected for as long as they run."""

    #: What a hand must be told there beside ``--stream``.
    hand_options: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    async def start(self, argv: Sequence[str], stream: bool = False) -> Process:
        """Start a command there; ``stream``: it is a hand that reads requests, one a line.

        Raises:
            OSError: No command can be started from here.
            DeskhandError: None can be started there.
        """
