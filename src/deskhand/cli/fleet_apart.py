"""The options of ``deskhand fleet up`` that say how far desktops are apart from each other."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from deskhand.errors import BatchRefused

_ISOLATIONS, _HOMES = ("auto", "user", "bwrap"), ("directory", "tmpfs", "overlay")


def _one_of(names: tuple[str, ...]) -> Any:
    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise BatchRefused(f"{value[:60]!r} is none of {', '.join(names)}")
        return value

    return check


IsolationOption = Annotated[
    str,
    typer.Option(
        "--isolation",
        metavar="KIND",
        callback=_one_of(_ISOLATIONS),
        help="auto: as root an account for each desktop; user: that or an error; bwrap: also own files and network.",
    ),
]
HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="KIND",
        callback=_one_of(_HOMES),
        help="directory: on the disk; tmpfs: in memory (with bwrap the default); overlay: over --template-home.",
    ),
]
TemplateOption = Annotated[
    str | None,
    typer.Option("--template-home", metavar="DIRECTORY", help="What every new HOME holds; it is not written to."),
]
HomeSizeOption = Annotated[
    int,
    typer.Option("--home-size", metavar="MIB", min=16, max=1 << 20, help="What a desktop may write, in memory."),
]
SeeOption = Annotated[
    list[str] | None,
    typer.Option("--see", metavar="DIRECTORY", help="With own files: a directory here that desktops see, read-only."),
]


def apart(
    isolation: str, home: str | None, template_home: str | None, home_size: int, see: list[str] | None
) -> dict[str, Any]:
    """What ``fleet.Options`` takes of these.

    Raises:
        BatchRefused: One of them would have no effect without another; says which.
    """
    if see and isolation != "bwrap":
        raise BatchRefused(
            "--see shows a directory to desktops that have files of their own: give --isolation bwrap too"
        )
    return {
        "isolation": isolation,
        "home": home or "",
        "template_home": os.path.abspath(template_home) if template_home else "",
        "home_size": home_size,
        "see": tuple(os.path.abspath(path) for path in see or ()),
    }
