"""A hand that leaves nothing pressed when a signal ends the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deskhand.errors import DeskhandError
from deskhand.hand.hand import Hand


@contextmanager
def interruptible(hand: Hand) -> Iterator[Hand]:
    """Closes ``hand`` at the end; when something else than an error of ours ends the block, also in the middle of a
    request, releases what is held."""
    try:
        yield hand
    except DeskhandError:
        _close(hand)
        raise
    except BaseException:
        try:
            hand.abandon()
        except DeskhandError:
            pass  # the display is gone, and what was held on it
        raise
    else:
        _close(hand)


def _close(hand: Hand) -> None:
    try:
        hand.close()
    except DeskhandError:
        pass  # the display went away after the answer was complete
