"""How long does a picture of the whole screen take, as PNG, beside the usual programs and libraries?

Ours is one capture and its PNG over a connection that is held, as the daemon and the resident form do it: with what is
installed, and with the standard library alone. Programs are run as agents run them: a process a picture.

    python -m bench.screenshot
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable

from PIL import Image, ImageDraw

from bench.sides import NotInstalled, compare, timed
from deskhand.hand import accelerators
from deskhand.hand.picture import make_picture
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection
from deskhand.testing import XServer, xvfb


def show_busy_screen(connection: Connection) -> None:
    """Put windows full of text and a photo-like gradient with grain on the root window."""
    rng = random.Random(1)
    image = Image.new("RGB", (1280, 800), "#30506e")
    grain = Image.effect_noise((480, 360), 40)
    image.paste(
        Image.merge("RGB", (grain, grain.rotate(180), Image.linear_gradient("L").resize(grain.size))), (760, 60)
    )
    draw = ImageDraw.Draw(image)
    for left, top, width, height in ((20, 30, 700, 500), (120, 380, 600, 400), (740, 450, 520, 330)):
        draw.rectangle((left, top, left + width, top + height), fill="white", outline="black")
        draw.rectangle((left, top, left + width, top + 24), fill="#dddddd", outline="black")
        for line in range(top + 30, top + height - 12, 14):
            words = " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randrange(2, 9))) for _ in range(12))
            draw.text((left + 8, line), words[: (width - 16) // 7], fill="black")
    data = image.tobytes("raw", "BGRX")
    context, rows = connection.new_id(), 40
    connection.send(55, 0, struct.pack("=III", context, connection.root, 0))  # CreateGC
    for y in range(0, 800, rows):
        strip = data[4 * 1280 * y : 4 * 1280 * (y + rows)]
        head = struct.pack("=IIHHhhBB2x", connection.root, context, 1280, rows, 0, y, 0, 24)
        connection.send(72, 2, head + strip)  # PutImage
    connection.sync()


def program(server: XServer, *command: str) -> Callable[[], float]:
    def run() -> None:
        subprocess.run(command, env=server.env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return timed(run)


def by_mss(server: XServer) -> Callable[[], float]:
    try:
        import mss
        import mss.tools
    except ImportError:
        return _not_installed
    held = mss.MSS(display=server.display)

    def take() -> None:
        shot = held.grab(held.monitors[0])
        mss.tools.to_png(shot.rgb, shot.size, level=1)

    return timed(take)


def _not_installed() -> float:
    raise NotInstalled


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, xvfb() as server, Connection.open(server.display) as connection:
        show_busy_screen(connection)
        screen = Screen(connection)
        path = os.path.join(folder, "picture.png")

        def take() -> None:
            make_picture(screen.capture(), 1)

        def alone() -> None:
            accelerators.without()
            try:
                make_picture(screen.capture(), 1)
            finally:
                accelerators.again()
                accelerators.deflate()
                accelerators.pillow()

        compare(
            "screenshot",
            {
                "ours": timed(take),
                "ours, standard library": timed(alone),
                "capture alone": timed(screen.capture),
                "mss, held": by_mss(server),
                "import": program(server, "import", "-window", "root", path),
                "scrot": program(server, "scrot", "-o", path),
                "maim": program(server, "maim", path),
            },
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
