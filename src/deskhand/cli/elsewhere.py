"""A desktop elsewhere for the commands: ``--url`` and ``--token-file``, or DESKHAND_URL and DESKHAND_TOKEN_FILE."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from deskhand.cli.output import fail
from deskhand.hand.envelope import PictureWish
from deskhand.hand.hand import Answer, Hand
from deskhand.hand.picture import Picture
from deskhand.hand.screen import Region

if TYPE_CHECKING:
    from deskhand.backends.daemon import Daemon

T = TypeVar("T")

UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="A computerd's, such as http://127.0.0.1:8765; else DESKHAND_URL."),
]
TokenFileOption = Annotated[
    str | None, typer.Option("--token-file", metavar="FILE", help="Its token; else DESKHAND_TOKEN_FILE.")
]


def place_of(url: str | None, token_file: str | None, display: str | None) -> tuple[str, str] | None:
    """The address and the token's file of a desktop elsewhere; None: it is one of this machine.

    The environment's address counts only where no display is named.
    """
    if url is not None and display is not None:
        fail("--url and --display name two desktops: give one", 2)
    url = url or (os.environ.get("DESKHAND_URL") if display is None else None)
    if not url:
        return None
    token_file = token_file or os.environ.get("DESKHAND_TOKEN_FILE")
    if not token_file:
        fail("the token is needed: --token-file FILE, or DESKHAND_TOKEN_FILE", 2)
    return url, token_file


def hand_at(
    url: str | None,
    token_file: str | None,
    display: str | None,
    xauthority: str | None,
    session: str | None = None,
    timeout: float | None = None,
) -> Hand:
    """A hand on a display of this machine, or one that computerd moves."""
    place = place_of(url, token_file, display)
    if place is not None:
        return DistantHand(*place, session)
    return Hand(display, xauthority, session, timeout) if timeout is not None else Hand(display, xauthority, session)


class DistantHand(Hand):
    """The hand of a computerd, for one command: it has the calls that commands make, and their errors."""

    def __init__(self, url: str, token_file: str, session: str | None) -> None:
        super().__init__(None, None, session)
        self._place = (url, token_file)

    def act(self, request: Any, alive: Callable[[], bool] = lambda: True) -> tuple[Answer, Picture | None]:
        outcome = self._run(lambda daemon: daemon.act(request))
        answer = dict(outcome.answer)
        facts = answer.pop("picture", None)
        return answer, _picture(facts, outcome.picture) if outcome.picture is not None else None

    def screenshot(self, region: Region | None = None, wish: PictureWish | None = None, limits: bool = True) -> Picture:
        """As ``Hand.screenshot``, within the limits that every picture over HTTP has."""
        wish = wish or PictureWish()
        options = {"format": wish.format, "max_edge": wish.max_edge, "region": region}
        if wish.cursor:
            options["cursor"] = "true"
        return _picture(*self._run(lambda daemon: daemon.screenshot(**options)))

    def windows(self) -> list[dict[str, Any]]:
        return self._run(lambda daemon: daemon.windows())

    def info(self) -> dict[str, Any]:
        return self._run(lambda daemon: daemon.info())

    def apps(self) -> list[dict[str, str]]:
        return self._run(lambda daemon: daemon.apps())

    def listing(self) -> dict[str, Any]:
        """The applications, and where they were searched for."""
        return self._run(lambda daemon: daemon.get("/apps"))

    def _run(self, work: Callable[[Daemon], Awaitable[T]]) -> T:
        import asyncio

        from deskhand.backends.daemon import Daemon

        async def whole() -> T:
            url, token_file = self._place
            daemon = Daemon(url, token_file=token_file, session=self._session)
            try:
                return await work(daemon)
            finally:
                await daemon.aclose()

        return asyncio.run(whole())


def _picture(facts: dict[str, Any], content: bytes) -> Picture:
    region, cursor, screen = (tuple(facts[name]) for name in ("region", "cursor", "screen"))
    return Picture(content, **{**facts, "region": region, "cursor": cursor, "screen": screen})
