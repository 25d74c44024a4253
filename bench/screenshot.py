"""How long does a picture of the whole screen take, as PNG, beside the usual programs and libraries?

Ours is one capture and its PNG over a connection that is held, as the daemon and the resident form do it: with what is
installed, and with the standard library alone. Programs are run as agents run them: a process a picture; libraries are
held.
"""

from __future__ import annotations

import os
import random
import struct
import tempfile

from PIL import Image, ImageDraw

from bench.click import MODAL
from bench.sides import PEERS_PYTHON, Answer, HeldPeer, in_turns, program, timed
from deskhand.hand import accelerators
from deskhand.hand.picture import make_picture
from deskhand.hand.screen import Screen
from deskhand.hand.x11 import Connection
from deskhand.testing import xvfb

_SHOT = (
    MODAL
    + """
options = ScreenshotOptions(format="png")
def act(given): do(backend.screenshot_bytes(options, prefer_native_png=True))
"""
)
WORDS = "a PNG of the whole screen"
SIZES = ((1280, 800), (1920, 1080))


def show_screen(connection: Connection, size: tuple[int, int], busy: bool) -> None:
    """Put windows full of text on the root window, and when ``busy`` a photo-like gradient with grain."""
    rng = random.Random(1)
    width_, height_ = size
    image = Image.new("RGB", size, "#30506e")
    grain = Image.effect_noise((480, 360), 40)
    if busy:
        photo = Image.merge("RGB", (grain, grain.rotate(180), Image.linear_gradient("L").resize(grain.size)))
        image.paste(photo, (760, 60))
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
    for y in range(0, height_, rows):
        strip = data[4 * width_ * y : 4 * width_ * (y + rows)]
        head = struct.pack("=IIHHhhBB2x", connection.root, context, width_, min(rows, height_ - y), 0, y, 0, 24)
        connection.send(72, 2, head + strip)  # PutImage
    connection.sync()


_MSS = """
import mss, mss.tools
held = mss.MSS() if hasattr(mss, "MSS") else mss.mss()
def act(given):
    shot = held.grab(held.monitors[0])
    mss.tools.to_png(shot.rgb, shot.size, level=1)
"""
_PILLOW = """
import io
from PIL import ImageGrab
def act(given): ImageGrab.grab(xdisplay="").save(io.BytesIO(), "PNG", compress_level=1)
"""


def ask(rounds: int) -> Answer:
    answer = Answer("screenshot", WORDS)
    for size in SIZES:
        for busy in (True, False):
            _ask(answer, rounds, size, busy)
    return answer


def _ask(answer: Answer, rounds: int, size: tuple[int, int], busy: bool) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        xvfb(*size) as server,
        Connection.open(server.display) as connection,
        HeldPeer(PEERS_PYTHON, _MSS, server.env) as mss,
        HeldPeer(PEERS_PYTHON, _PILLOW, server.env) as pillow,
        HeldPeer(PEERS_PYTHON, _SHOT, {**server.env, "BENCH_SIZE": f"{size[0]}x{size[1]}"}) as modal,
    ):
        show_screen(connection, size, busy)
        screen = Screen(connection)
        path = os.path.join(folder, "picture.png")

        def take() -> None:
            make_picture(screen.capture(), 1)

        def alone() -> float:
            accelerators.without()
            try:
                return timed(take)()
            finally:
                accelerators.again()
                accelerators.deflate()
                accelerators.pillow()

        sides = {
            "ours": timed(take),
            "ours, standard library": alone,
            "capture alone": timed(screen.capture),
            "mss": mss.seconds,
            "Pillow ImageGrab": pillow.seconds,
            "modal-computer-use, in process": modal.seconds,
            "import": timed(program("import", "-window", "root", path, env=server.env)),
            "scrot": timed(program("scrot", "-o", path, env=server.env)),
            "maim": timed(program("maim", path, env=server.env)),
        }
        case = f"{size[0]}x{size[1]}, {'busy' if busy else 'plain'}"
        answer.add(case, in_turns(sides, rounds, answer))
