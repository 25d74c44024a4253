"""``--own-screen``: the display is a person's own, and they come first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from deskhand.approvals import Policy

if TYPE_CHECKING:
    from deskhand.backends import Backend

OwnScreenOption = Annotated[
    bool,
    typer.Option(
        "--own-screen",
        help="Share the screen with the person at it: wait while they type or move the mouse, do nothing while it is"
        " locked, end when they press Escape three times, launch nothing, and ask before the first action.",
    ),
]


def backend_at(
    display: str | None, xauthority: str | None, own_screen: bool, elsewhere: tuple[str, str] | None = None
) -> Backend:
    """The backend of a display, shared with a person or the agent's alone, or of a desktop ``elsewhere``."""
    if elsewhere is not None:
        from deskhand.backends import Daemon

        url, token_file = elsewhere
        return Daemon(url, token_file=token_file)
    if own_screen:
        from deskhand.backends import OwnScreen

        return OwnScreen(display, xauthority)
    from deskhand.backends import LocalDisplay

    return LocalDisplay(display, xauthority)


def policy_of(rules: Sequence[str] | None, own_screen: bool) -> Policy:
    """What ``--ask`` names, and on a person's own screen everything that types or clicks, once."""
    return Policy.parse([*(rules or []), *(["input"] if own_screen else [])])
