"""S8: a screen so large and so full that a picture of it could end a conversation, served by the image."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from PIL import Image

from deskhand.hand.picture import MAX_BYTES, MAX_EDGE
from tests.image.computers import Computer, picture_of, started
from tests.image.entries import desk_environment

WIDTH, HEIGHT = 4880, 2560
#: Noise over the whole screen, which no encoder makes small. It stays when its client leaves (SetCloseDownMode).
NOISE = """
import os, struct, sys
from deskhand.hand.x11 import Connection, core
width, height = int(sys.argv[1]), int(sys.argv[2])
with Connection.open() as conn:
    window = core.create_window(conn, 0, 0, width, height, background=0)
    context = conn.new_id()
    core.map_window(conn, window)
    conn.send(55, 0, struct.pack("=III", context, window, 0))
    rows = 200_000 // (4 * width)
    for y in range(0, height, rows):
        count = min(rows, height - y)
        place = struct.pack("=IIHHhhBBxx", window, context, width, count, 0, y, 0, 24)
        conn.send(72, 2, place + os.urandom(4 * width * count))
    conn.send(112, 1)
    conn.sync()
print(1)
"""


@pytest.fixture(scope="module")
def noisy() -> Iterator[Computer]:
    """A computer with a huge screen, all of it noise."""
    with started(environment={"DESKHAND_SIZE": f"{WIDTH}x{HEIGHT}"}) as computer:
        computer.wait_until_healthy()
        computer.python(NOISE, str(WIDTH), str(HEIGHT), environment=desk_environment(computer))
        yield computer


@pytest.mark.parametrize("wish", [True, {"format": "jpeg"}, {"format": "webp"}, {"max_edge": MAX_EDGE}], ids=str)
def test_s8_a_picture_of_noise_on_a_huge_screen_keeps_its_limits(
    noisy: Computer, wish: bool | dict[str, object]
) -> None:
    answer = noisy.done({"action": "screenshot"}, picture=wish, settle="none")
    facts, content = answer["picture"], picture_of(answer)
    assert len(content) <= MAX_BYTES
    with Image.open(io.BytesIO(content)) as picture:
        assert max(picture.size) <= MAX_EDGE
        assert picture.size == (facts["width"], facts["height"])
        assert len(set(picture.convert("L").resize((64, 64), Image.Resampling.NEAREST).tobytes())) > 20, "no noise"
    assert (facts["screen"], facts["region"]) == ([WIDTH, HEIGHT], [0, 0, WIDTH, HEIGHT])
    assert facts["scale"] == pytest.approx(facts["width"] / WIDTH, abs=0.001)


def test_s8_a_plain_screenshot_keeps_them_too_and_the_desktop_goes_on(noisy: Computer) -> None:
    for query in ("", "?format=jpeg", "?format=webp"):
        answer = noisy.request("GET", f"/screenshot{query}", timeout=60)
        assert answer.status == 200
        assert len(answer.body) <= MAX_BYTES
    assert noisy.health() == 200
    corner = noisy.done(
        {"action": "move", "x": WIDTH - 1, "y": HEIGHT - 1}, {"action": "cursor_position"}, settle="none"
    )
    assert corner["results"][1]["point"] == [WIDTH - 1, HEIGHT - 1]
