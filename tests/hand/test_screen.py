"""Captures of real screens: right pixels at every depth and size, never an older picture, never a wrong size."""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.xservers import open_fds, put_pixels, resize, xcb, xvfb_with

from deskhand.hand import pixels
from deskhand.hand.errors import CaptureFailed, DisplayLost, DisplayTimeout, Unsupported
from deskhand.hand.screen import Capture, Screen
from deskhand.hand.x11 import Connection, core, shm, xfixes, xtest
from deskhand.testing import XServer, xvfb


@pytest.fixture
def connection(display: XServer) -> Iterator[Connection]:
    with Connection.open(display.display) as opened:
        yield opened


def at(taken: Capture, x: int, y: int) -> tuple[int, ...]:
    start = 3 * ((y - taken.region[1]) * taken.width + x - taken.region[0])
    return tuple(taken.rgb()[start : start + 3])


def pixel_of(conn: Connection, red: int, green: int, blue: int) -> int:
    """The pixel value of an 8-bit colour on the root's visual."""
    visual = conn.setup.visuals[conn.screen.root_visual]
    value = 0
    for part, mask in ((red, visual.red_mask), (green, visual.green_mask), (blue, visual.blue_mask)):
        low = (mask & -mask).bit_length() - 1
        top = mask >> low
        value |= (part * top + 127) // 255 << low
    return value


COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (18, 52, 86), (200, 100, 50), (1, 2, 3)]


@pytest.mark.parametrize("size", ["1280x800", "1279x801", "1x1", "3x2", "641x7"])
@pytest.mark.parametrize("depth", [16, 24, 30])
@pytest.mark.parametrize("memory", ["shared", "not shared"])
def test_right_colours(depth: int, size: str, memory: str) -> None:
    width, height = (int(part) for part in size.split("x"))
    with xvfb_with(screen=f"{size}x{depth}") as name, Connection.open(name) as connection:
        screen = Screen(connection)
        if memory != "shared":
            screen._use_shm = False
        stripe = max(1, width // len(COLOURS))
        shown = COLOURS[: max(1, width // stripe)][: len(COLOURS)]
        put_pixels(connection, connection.root, 0, 0, width, height, 0)
        for number, colour in enumerate(shown):
            put_pixels(connection, connection.root, number * stripe, 0, stripe, height, pixel_of(connection, *colour))
        taken = screen.capture()
        assert taken.region == (0, 0, width, height)
        assert taken.screen == (width, height)
        assert len(taken.rgb()) == 3 * width * height
        exact = {16: 8, 24: 0, 30: 0}[depth]
        for number, colour in enumerate(shown):
            for y in {0, height // 2, height - 1}:
                for x in {number * stripe, min(width, (number + 1) * stripe) - 1}:
                    assert all(abs(a - b) <= exact for a, b in zip(at(taken, x, y), colour)), (x, y)  # noqa: B905
        assert (screen._map is not None) is (memory == "shared")


def test_depth_16_as_xcffib_and_the_masks_say() -> None:
    with xvfb_with(screen="257x9x16") as name, Connection.open(name) as connection, xcb(name) as theirs:
        for x in range(257):
            put_pixels(connection, connection.root, x, 0, 1, 9, x * 255 & 0xFFFF)
        taken = Screen(connection).capture()
        data = theirs.core.GetImage(2, connection.root, 0, 0, 257, 9, 0xFFFFFFFF).reply().data.buf()
        assert taken.data == data
        stride = len(data) // 9
        assert stride == 516  # 257 pixels of two bytes, padded to four
        for x in range(257):
            (value,) = struct.unpack_from("=H", data, stride * 4 + 2 * x)
            red, green, blue = value >> 11, value >> 5 & 63, value & 31
            assert at(taken, x, 4) == tuple(
                round(part * 255 / top) for part, top in ((red, 31), (green, 63), (blue, 31))
            )


def test_the_same_picture_as_others_take(display: XServer, connection: Connection, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = random.Random(7)
    for _ in range(60):
        x, y, pixel = rng.randrange(1200), rng.randrange(700), rng.randrange(1 << 24)
        put_pixels(connection, connection.root, x, y, rng.randrange(1, 80), rng.randrange(1, 90), pixel)
    rgb = Screen(connection).capture().rgb()
    if shutil.which("import"):
        path = tmp_path / "import.png"
        subprocess.run(["import", "-window", "root", str(path)], env=display.env, check=True)
        assert image.open(path).convert("RGB").tobytes() == rgb
    mss = pytest.importorskip("mss")
    with mss.MSS(display=display.display) as theirs:
        assert theirs.grab({"left": 0, "top": 0, "width": 1280, "height": 800}).rgb == rgb
    grab = pytest.importorskip("PIL.ImageGrab")
    assert grab.grab(xdisplay=display.display).convert("RGB").tobytes() == rgb


def test_a_palette_is_refused_with_what_to_do() -> None:
    told = r"depth 8 and a palette.*start the X server with depth 16, 24 or 30"
    with xvfb_with(screen="320x200x8") as name, Connection.open(name) as conn, pytest.raises(Unsupported, match=told):
        Screen(conn).capture()


def test_regions(connection: Connection) -> None:
    screen = Screen(connection)
    put_pixels(connection, connection.root, 100, 50, 1, 1, 0xABCDEF)
    assert screen.capture((100, 50, 101, 51)).rgb() == b"\xab\xcd\xef"
    assert screen.capture((0, 0, 1280, 800)).region == (0, 0, 1280, 800)
    assert screen.capture((1279, 799, 1280, 800)).width == 1
    whole = screen.capture()
    part = screen.capture((90, 40, 113, 67))
    assert (part.width, part.height, part.screen) == (23, 27, (1280, 800))
    for x, y in ((90, 40), (100, 50), (112, 66)):
        assert at(part, x, y) == at(whole, x, y)
    for wrong in ((0, 0, 0, 10), (0, 0, 10, 0), (10, 10, 5, 20), (-1, 0, 5, 5), (0, 0, 1281, 5), (0, 0, 5, 801)):
        with pytest.raises(ValueError, match="is not inside the 1280x800 screen"):
            screen.capture(wrong)


def test_over_tcp_without_shared_memory() -> None:
    with xvfb_with("-listen", "tcp", "-ac") as name, Connection.open("127.0.0.1" + name) as connection:
        screen = Screen(connection)
        put_pixels(connection, connection.root, 3, 4, 5, 6, 0x00FF00)
        taken = screen.capture()
        assert at(taken, 4, 5) == (0, 255, 0)
        assert screen._map is None
        with pytest.raises(ValueError, match="can not be passed over TCP"):
            shm.attach_fd(connection, 0)


@pytest.mark.parametrize("missing", ["no MIT-SHM", "memfd fails", "no memfd", "attach refused"])
def test_when_there_is_no_shared_memory(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("-extension", "MIT-SHM") if missing == "no MIT-SHM" else ()
    with xvfb_with(*options) as name, Connection.open(name) as connection:
        if missing == "memfd fails":
            monkeypatch.setattr(os, "memfd_create", lambda *_: (_ for _ in ()).throw(OSError(1, "not allowed")))
        elif missing == "no memfd":
            monkeypatch.delattr(os, "memfd_create")
        elif missing == "attach refused":
            # A pipe can not be mapped by the server, which then gives an error, asynchronously.
            monkeypatch.setattr(shm, "attach_fd", refused_attach)
        before = open_fds()
        screen = Screen(connection)
        put_pixels(connection, connection.root, 3, 4, 5, 6, 0x00FF00)
        for _ in range(3):
            assert at(screen.capture(), 4, 5) == (0, 255, 0)
        assert screen._map is None
        assert open_fds() == before
        connection.sync()


def refused_attach(conn: Connection, _fd: int) -> int:
    reader, writer = os.pipe()
    try:
        extension = conn.extension("MIT-SHM")
        assert extension is not None
        conn.check(conn.send(extension.major, 6, struct.pack("=IB3x", conn.new_id(), 0), fds=(reader,)))
    finally:
        os.close(reader)
        os.close(writer)
    return 0


def test_an_error_of_somebody_elses_request_does_not_cost_shared_memory(connection: Connection) -> None:
    screen = Screen(connection)
    connection.send(10, 0, struct.pack("=I", 0x77))  # UnmapWindow of a window that is not there
    screen.capture()
    assert screen._map is not None
    with pytest.raises(Exception, match="UnmapWindow"):
        connection.sync()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_as_another_user_than_the_servers(display: XServer) -> None:
    with Connection.open(display.display) as connection:
        put_pixels(connection, connection.root, 0, 0, 1280, 800, 0x0A0B0C)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from deskhand_hand.screen import Screen; from deskhand_hand.x11 import Connection;"
        "s = Screen(Connection.open(sys.argv[2])); t = s.capture();"
        "print(t.rgb() == bytes([10, 11, 12]) * (1280 * 800), s._map is not None)"
    )
    from deskhand.hand import build

    file = Path(tempfile.gettempdir(), f"deskhand-test-{os.getpid()}.pyz")  # a place another user may read
    build(str(file))
    as_nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    try:
        done = subprocess.run(
            [*as_nobody, "/usr/bin/python3", "-c", program, str(file), display.display],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        file.unlink()
    assert (done.stdout.strip(), done.stderr) == ("True True", "")


def test_the_screen_changes_its_size(connection: Connection, display: XServer) -> None:
    screen = Screen(connection)
    with Connection.open(display.display) as other:
        for width, height in ((640, 480), (1280, 800), (1001, 333), (1280, 801 - 1)):
            resize(other, width, height)
            put_pixels(other, other.root, 0, 0, width, height, 0x111111)
            put_pixels(other, other.root, width - 1, height - 1, 1, 1, 0xFEDCBA)
            taken = screen.capture()
            assert taken.screen == (width, height) == screen.size()
            assert taken.region == (0, 0, width, height)
            assert at(taken, width - 1, height - 1) == (0xFE, 0xDC, 0xBA)
        resize(other, 300, 200)
        with pytest.raises(ValueError, match="not inside the 300x200 screen"):
            screen.capture((0, 0, 400, 100))


def test_a_size_that_changes_in_the_middle(connection: Connection, display: XServer, monkeypatch: Any) -> None:
    """Between the size and the picture: a grown screen would give a cropped picture, a shrunk one an error."""
    screen = Screen(connection)
    with Connection.open(display.display) as other:
        resize(other, 640, 480)
        real = shm.get_image
        sizes = [(1280, 800), (800, 600), (1024, 768)]

        def late(*arguments: Any) -> Any:
            if sizes:
                resize(other, *sizes.pop(0))
            return real(*arguments)

        monkeypatch.setattr(shm, "get_image", late)
        for _ in range(2):
            taken = screen.capture()
            now = core.get_geometry(connection, connection.root)
            assert taken.screen == (taken.width, taken.height) == (now.width, now.height)
            assert len(taken.rgb()) == 3 * now.width * now.height


def test_the_cursor(connection: Connection) -> None:
    screen = Screen(connection)
    put_pixels(connection, connection.root, 0, 0, 1280, 800, 0x808080)
    for x, y in ((300, 200), (0, 0), (1279, 799)):  # in the middle, and reaching outside
        xtest.fake_input(connection, xtest.MOTION, 0, x, y)
        connection.sync()
        without, drawn = screen.capture(), screen.capture(cursor=True)
        assert without.cursor == drawn.cursor == (x, y)
        assert set(without.rgb()) == {0x80}
        image = xfixes.get_cursor_image(connection)
        left, top = image.x - image.hot_x, image.y - image.hot_y
        argb = struct.unpack(f"={image.width * image.height}I", image.argb)
        rgb, expected = drawn.rgb(), bytearray(without.rgb())
        for row in range(image.height):
            for column in range(image.width):
                px, py = left + column, top + row
                if 0 <= px < 1280 and 0 <= py < 800:
                    value = argb[row * image.width + column]
                    alpha = value >> 24
                    for channel in range(3):
                        part = value >> (16 - 8 * channel) & 0xFF
                        expected[3 * (1280 * py + px) + channel] = min(255, part + 0x80 * (255 - alpha) // 255)
        assert rgb == bytes(expected)
        assert rgb != without.rgb()
        corner = (max(0, x - 5), max(0, y - 5), min(1280, x + 5), min(800, y + 5))
        part_of_it = screen.capture(corner, cursor=True)
        assert at(part_of_it, x, y) == at(drawn, x, y)


@pytest.mark.parametrize("depth", [16, 30])
def test_the_cursor_at_other_depths(depth: int) -> None:
    with xvfb_with(screen=f"333x200x{depth}") as name, Connection.open(name) as connection:
        xtest.fake_input(connection, xtest.MOTION, 0, 100, 100)
        put_pixels(connection, connection.root, 0, 0, 333, 200, 0)
        screen = Screen(connection)
        assert screen.capture().rgb() != screen.capture(cursor=True).rgb()


def test_two_pictures_with_a_change_between_always_differ(connection: Connection, display: XServer) -> None:
    screen = Screen(connection)
    rng = random.Random(3)
    with Connection.open(display.display) as other:
        put_pixels(other, other.root, 0, 0, 1280, 800, 0)
        before = screen.capture().rgb()
        for number in range(300):
            x, y = rng.randrange(1280), rng.randrange(800)
            colour = number % 255 + 1
            put_pixels(other, other.root, x, y, 1, 1, colour)  # confirmed by that client's round trip
            taken = screen.capture()
            after = taken.rgb()
            assert at(taken, x, y) == (0, 0, colour)
            assert after != before
            before = after
        assert screen.capture().rgb() == before  # and without one they are the same


def test_the_pad_byte_makes_no_difference(connection: Connection) -> None:
    screen = Screen(connection)
    put_pixels(connection, connection.root, 0, 0, 1280, 800, 0x00112233)
    one = screen.capture()
    put_pixels(connection, connection.root, 0, 0, 1280, 800, 0x7F112233)
    two = screen.capture()
    assert one.rgb() == two.rgb()


def test_a_lost_server_is_an_error_and_no_picture() -> None:
    with xvfb() as server, Connection.open(server.display, timeout=5) as connection:
        screen = Screen(connection)
        screen.capture()
        os.kill(server.pid, signal.SIGTERM)
        with pytest.raises(DisplayLost):
            connection.wait(lambda: False, 20)
        with pytest.raises(DisplayLost):
            screen.capture()
        screen.close()


def test_a_server_that_hangs_in_the_middle(display: XServer) -> None:
    with Connection.open(display.display, timeout=0.3) as connection:
        screen = Screen(connection)
        screen.capture()
        os.kill(display.pid, signal.SIGSTOP)
        try:
            with pytest.raises(DisplayTimeout):
                screen.capture()
        finally:
            os.kill(display.pid, signal.SIGCONT)


def test_a_picture_that_can_not_be_taken_twice_is_an_error(connection: Connection, monkeypatch: Any) -> None:
    screen = Screen(connection)
    screen.capture()

    def refused(conn: Connection, _drawable: int, *rest: int) -> Any:
        return shm_get_image(conn, 0x4321, *rest)

    shm_get_image = shm.get_image
    monkeypatch.setattr(shm, "get_image", refused)
    with pytest.raises(CaptureFailed, match=r"no picture could be taken of display .*MIT-SHM GetImage: BadDrawable"):
        screen.capture()
    monkeypatch.undo()
    assert screen.capture().width == 1280  # the next is right again


def test_a_segment_the_server_lost_is_made_anew(connection: Connection) -> None:
    screen = Screen(connection)
    screen.capture()
    shm.detach(connection, screen._segment)
    assert screen.capture().width == 1280


def test_a_wayland_session_is_told(connection: Connection, monkeypatch: Any) -> None:
    real = core.get_image
    monkeypatch.setattr(core, "get_image", lambda conn, _root, *rest: real(conn, 0x4321, *rest))
    with pytest.raises(Unsupported, match="belongs to a Wayland session"):
        Screen(connection)


def clients(display: str) -> int:
    with xcb(display) as theirs:
        import xcffib.res

        extension = theirs(xcffib.res.key)
        extension.QueryVersion(1, 2).reply()
        return int(extension.QueryClients().reply().num_clients)


@pytest.mark.parametrize("count", [50, pytest.param(500, marks=pytest.mark.long)])
def test_many_pictures_leave_nothing_behind(display: XServer, count: int) -> None:
    import threading

    from deskhand.hand.envelope import PictureWish
    from deskhand.hand.hand import Hand

    with Hand(display.display) as hand:
        hand.screenshot()
        before = clients(display.display), open_fds(), threading.active_count()
        numbers = [hand.screenshot(wish=PictureWish(max_edge=320)).sequence for _ in range(count)]
        assert (clients(display.display), open_fds(), threading.active_count()) == before
        assert numbers == list(range(numbers[0], numbers[0] + count))


def test_layout_is_of_the_servers_formats() -> None:
    assert sys.byteorder == "little" or pytest.skip("written for little-endian machines")
    with xvfb_with(screen="64x48x24") as name, Connection.open(name) as connection:
        taken = Screen(connection).capture()
        assert taken.layout == pixels.Layout(4, 32, False, (0xFF0000, 0xFF00, 0xFF))
        assert taken.time > 0
