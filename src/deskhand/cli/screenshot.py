"""``deskhand screenshot``: the screen as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deskhand.cli.elsewhere import DistantHand, TokenFileOption, UrlOption, hand_at
from deskhand.cli.interruption import interruptible
from deskhand.cli.output import DisplayOption, JsonOption, XauthorityOption, print_json, write_file
from deskhand.errors import BatchRefused
from deskhand.hand.envelope import PictureWish, parse_batch
from deskhand.hand.picture import check_format


def add_to(app: typer.Typer) -> None:
    app.command("screenshot")(screenshot)


def screenshot(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Ends in .png, .jpg or .webp.")],
    display: DisplayOption = None,
    xauthority: XauthorityOption = None,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="X0,Y0,X1,Y1", help="A part of the screen only.")
    ] = None,
    max_edge: Annotated[
        int | None, typer.Option("--max-edge", metavar="PIXELS", help="Scale it down to this long edge.")
    ] = None,
    cursor: Annotated[bool, typer.Option("--cursor", help="Draw the pointer in.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take a picture of the whole screen, in full size, and write it to a file."""
    form = format_of(output)
    corners = _corners(region) if region is not None else None
    # The envelope's own checks, so that a picture means the same everywhere.
    wished = {"format": form, "cursor": cursor, **({"max_edge": max_edge} if max_edge is not None else {})}
    parse_batch({"actions": [{"action": "screenshot"}], "picture": wished})
    check_format(form)
    with interruptible(hand_at(url, token_file, display, xauthority)) as hand:
        picture = hand.screenshot(corners, PictureWish(form, max_edge, None, cursor), limits=False)
        facts = {
            **picture.facts(),
            "path": str(output),
            "display": hand.info()["display"] if isinstance(hand, DistantHand) else hand.display.name,
        }
    write_file(output, picture.content)
    if as_json:
        print_json(facts)


#: Names of pictures that we do not make: a PNG under such a name would be taken for what it is not.
_NOT_OURS = (".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".ppm", ".xwd", ".xpm", ".svg", ".pdf", ".ico")


def format_of(path: Path) -> str:
    """The picture format that a file's name asks for; PNG when it asks for none.

    Raises:
        BatchRefused: it asks for one that is not made here.
    """
    if path.suffix.lower() in _NOT_OURS:
        raise BatchRefused(f"a {path.suffix} picture can not be made: name the file .png, .jpg or .webp")
    return {".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}.get(path.suffix.lower(), "png")


def _corners(text: str) -> tuple[int, int, int, int]:
    try:
        x0, y0, x1, y1 = (int(part) for part in text.split(","))
    except ValueError:
        raise BatchRefused(f"--region {text!r} must be four whole numbers: X0,Y0,X1,Y1") from None
    return x0, y0, x1, y1
