"""``python3 -m deskhand.computerd.launcher``: the launcher where nothing but Python is installed for its account."""

from __future__ import annotations

import argparse
import os
import pwd
import sys

from ...hand.errors import DeskhandError, SetupError
from .listening import DEFAULT_SOCKET, serve

_MOST_UID = 2**32 - 2


def main(arguments: list[str]) -> int:
    """Serve until a signal; one line on standard error when that can not be."""
    parser = argparse.ArgumentParser("deskhand launcher", description="List and launch applications for computerd.")
    parser.add_argument("--socket", default=DEFAULT_SOCKET, metavar="PATH")
    parser.add_argument("--serve-uid", required=True, metavar="UID|NAME", help="the one account that is served")
    parser.add_argument("--display", metavar="NAME", help="the X display, such as :71; else DISPLAY")
    parser.add_argument("--xauthority", metavar="FILE", help="the cookie file; else XAUTHORITY")
    parser.add_argument("--new-privs", action="store_true", help="let applications gain privileges (sudo)")
    given = parser.parse_args(arguments)
    try:
        serve(given.socket, uid_of(given.serve_uid), display_of(given.display), given.xauthority, given.new_privs)
    except DeskhandError as error:
        print(f"deskhand: {error}", file=sys.stderr)
        return 1
    return 0


def display_of(name: str | None) -> str:
    """The display to serve: ``name``, else DISPLAY.

    Raises:
        SetupError: there is neither.
    """
    name = name or os.environ.get("DISPLAY")
    if not name:
        raise SetupError("no display is named: set DISPLAY or pass --display")
    return name


def uid_of(text: str) -> int:
    """The uid of an account given by its number or its name.

    Raises:
        SetupError: there is no such account.
    """
    if text.isascii() and text.isdigit() and int(text) <= _MOST_UID:
        return int(text)
    try:
        return pwd.getpwnam(text).pw_uid
    except (KeyError, ValueError):
        raise SetupError(f"there is no account {text!a}: give --serve-uid the name or uid of computerd's") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
