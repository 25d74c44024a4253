"""An E2B desktop sandbox: made when it is first needed, with our hand inside, and ended with the backend.

Read in e2b 2.63.0 (the SDK) and e2b-dev/infra, packages/envd (what runs commands in the sandbox).
"""

from __future__ import annotations

import asyncio
from typing import Any

from deskhand.backends.answers import raise_error
from deskhand.backends.e2b_desktop import find_desktop, wait_for_manager
from deskhand.backends.e2b_sandbox import E2BSandbox
from deskhand.backends.guest import Guest
from deskhand.turns import longest

__all__ = ["E2B"]


class E2B(Guest):
    """The desktop of an E2B sandbox.

    The sandbox is made when the first call needs it, and lives until the backend is closed; see ``Guest`` for the rest.
    One that is gone is never replaced: the next call says so.

    Args:
        template: What it is made from.
        sandbox_id: Use this one instead, which is left running at the end.
        api_key: E2B's key; None: the variable E2B_API_KEY.
        timeout: Seconds it lives after the last call, should nobody end it.
        keep: Whether it is left running at the end; None: only one that was there before.
        size: Pixels of the screen, where no desktop runs there yet.
        display: The display's name over there; None: the one that runs there, or else a new one with its desktop.
        xauthority: The cookie file over there; None: what the hand finds by itself.
        python: The Python 3.9 or newer to run the hand with.
        resident: Keep one hand running for all batches; else each is a command of its own, some requests more.
        connection: What the SDK takes beside these (``ApiParams``): ``domain``, ``proxy``, ``request_timeout``.

    Raises:
        ImportError: The SDK is not installed; names the extra.
    """

    def __init__(
        self,
        template: str = "desktop",
        *,
        sandbox_id: str | None = None,
        api_key: str | None = None,
        timeout: float = 300.0,
        keep: bool | None = None,
        size: tuple[int, int] = (1280, 800),
        display: str | None = None,
        xauthority: str | None = None,
        python: str = "python3",
        resident: bool = True,
        **connection: Any,
    ) -> None:
        if not timeout > 0:
            raise ValueError("timeout must be more than 0 seconds")
        if api_key is not None:
            connection["api_key"] = api_key
        kept = sandbox_id is not None if keep is None else keep
        self._sandbox = E2BSandbox(template, sandbox_id, timeout, kept, connection)
        self._size = size
        self._find = display is None
        super().__init__(self._sandbox, display or ":0", xauthority, python, resident=resident)

    @property
    def sandbox_id(self) -> str | None:
        """The sandbox's id; None while it has not been made."""
        return self._sandbox.id

    async def aclose(self) -> None:
        try:
            await super().aclose()
        finally:
            ending = asyncio.create_task(self._sandbox.end())
            await asyncio.shield(ending)

    async def _install(self) -> None:
        if self._path is not None:
            return
        new = False
        if self._find:
            self._display, new = await find_desktop(self._sandbox, self._python, self._size)
        await super()._install()
        if new:
            await wait_for_manager(self._info)

    async def _info(self) -> dict[str, Any]:
        answer, _ = await self._request({"request": "info"})
        raise_error(answer)
        return answer

    async def _request(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes | None]:
        await self._sandbox.stay(longest(request))
        return await super()._request(request)
