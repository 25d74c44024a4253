"""How long does a click take, beside xdotool and the bindings?

Ours is a move confirmed, and a press of at least 8 ms of server time confirmed by a round trip; xdotool is run as
agents run it: a process a click.

    python -m bench.click
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from bench.sides import NotInstalled, compare, timed
from deskhand.hand.display import Display
from deskhand.testing import XServer, xvfb


def by_xdotool(server: XServer) -> Callable[[], float]:
    def click() -> None:
        subprocess.run(["xdotool", "mousemove", "200", "200", "click", "1"], env=server.env, check=True)

    return timed(click)


def by_xlib(server: XServer) -> Callable[[], float]:
    """python-xlib, held, without any time between press and release."""
    try:
        from Xlib import X
        from Xlib.display import Display as XlibDisplay
        from Xlib.ext import xtest
    except ImportError:
        return _not_installed
    held = XlibDisplay(server.display)

    def click() -> None:
        xtest.fake_input(held, X.MotionNotify, x=200, y=200)
        xtest.fake_input(held, X.ButtonPress, 1)
        xtest.fake_input(held, X.ButtonRelease, 1)
        held.sync()

    return timed(click)


def _not_installed() -> float:
    raise NotInstalled


def main() -> int:
    with xvfb() as server, Display(server.display) as display:
        turn = [0]

        def click() -> None:
            turn[0] += 1
            display.pointer.move((200 + turn[0] % 50, 200))
            display.pointer.click("left")

        sides = {
            "ours": timed(click),
            "xdotool": by_xdotool(server),
            "python-xlib, no press time": by_xlib(server),
        }
        compare("click", sides)
    return 0


if __name__ == "__main__":
    sys.exit(main())
