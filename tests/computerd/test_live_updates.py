"""What a viewer is sent: only what differs from what it has, and exactly, once it is still."""

from __future__ import annotations

import io
import random

import pytest
from PIL import Image

from deskhand.computerd.live import updates
from deskhand.computerd.live.tiles import Frame, frame_of
from deskhand.computerd.live.updates import Encoder, Piece, View
from deskhand.hand.pixels import Layout
from deskhand.hand.screen import Capture

RGB = Layout(4, 32, False, (0xFF0000, 0xFF00, 0xFF))
WIDTH, HEIGHT = 640, 400


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def frame(image: Image.Image) -> Frame:
    data = image.convert("RGB").tobytes("raw", "BGRX")
    return frame_of(Capture(data, (0, 0, *image.size), image.size, RGB, 0.0, (0, 0)))


def plain(colour: str = "navy", size: tuple[int, int] = (WIDTH, HEIGHT)) -> Image.Image:
    return Image.new("RGB", size, colour)


def photo(seed: int = 1) -> Image.Image:
    """Something that JPEG is good at."""
    small = Image.new("RGB", (40, 25))
    numbers = random.Random(seed)
    small.putdata([tuple(numbers.randrange(256) for _ in range(3)) for _ in range(1000)])
    return small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)


def shown(pieces: list[Piece], screen: Image.Image) -> Image.Image:
    for piece in pieces:
        screen.paste(Image.open(io.BytesIO(piece.content)).convert("RGB"), piece.rect[:2])
    return screen


def test_the_first_update_is_all_of_it_and_the_second_nothing(clock: list[float]) -> None:
    view, encoder, now = View(), Encoder(), frame(plain())
    assert view.due(now) == 0.0
    pieces = view.update(now, encoder)
    assert shown(pieces, plain("white")).tobytes() == plain().tobytes()
    assert view.due(now) is None
    assert view.update(now, encoder) == []
    assert view.update(frame(plain()), encoder) == []  # drawn anew, with the same pixels


def test_a_small_change_is_few_bytes(clock: list[float]) -> None:
    view, encoder = View(), Encoder()
    image = photo()
    view.update(frame(image), encoder)
    clock[0] += 10
    view.update(frame(image), encoder)
    image.paste("red", (100, 100, 104, 116))
    flat = plain()
    view.update(frame(flat), encoder)
    flat.paste("red", (100, 100, 104, 116))
    pieces = view.update(frame(flat), encoder)
    assert [piece.rect for piece in pieces] == [(64, 64, 64, 64)]
    assert len(pieces[0].content) < 400


def test_what_changed_and_changed_back_is_not_sent(clock: list[float]) -> None:
    view, encoder = View(), Encoder()
    view.update(frame(plain()), encoder)
    _never_taken_up = frame(plain("red"))
    assert view.due(frame(plain())) is None


def test_a_photo_is_sent_with_loss_and_then_exactly(clock: list[float]) -> None:
    view, encoder, image = View(), Encoder(), photo()
    now = frame(image)
    pieces = view.update(now, encoder)
    assert {piece.format for piece in pieces} == {"jpeg"}
    screen = shown(pieces, plain())
    assert screen.tobytes() != image.tobytes()
    assert view.due(now) == clock[0] + updates.STILL
    assert view.update(now, encoder) == []
    clock[0] += updates.STILL
    while view.due(now) is not None:
        pieces = view.update(now, encoder)
        assert {piece.format for piece in pieces} == {"png"}
        assert sum(w * h for _x, _y, w, h in (piece.rect for piece in pieces)) <= updates.MOST_AGAIN * 64 * 64
        screen = shown(pieces, screen)
    assert screen.tobytes() == image.tobytes()


def test_what_still_moves_is_not_sent_exactly(clock: list[float]) -> None:
    view, encoder = View(), Encoder()
    for seed in range(6):
        pieces = view.update(frame(photo(seed)), encoder)
        assert {piece.format for piece in pieces} == {"jpeg"}
        clock[0] += updates.STILL / 2


def test_flat_areas_are_exact_at_once(clock: list[float]) -> None:
    pieces = View().update(frame(plain()), Encoder())
    assert [(piece.rect, piece.format) for piece in pieces] == [((0, 0, WIDTH, HEIGHT), "png")]


def test_another_size_is_sent_whole(clock: list[float]) -> None:
    view, encoder = View(), Encoder()
    view.update(frame(plain()), encoder)
    smaller = frame(plain("red", (200, 100)))
    assert [piece.rect for piece in view.update(smaller, encoder)] == [(0, 0, 200, 100)]


def test_viewers_share_what_was_encoded(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, now = Encoder(), frame(photo())
    first = View().update(now, encoder)
    monkeypatch.setattr(updates, "_encode", None)
    assert View().update(now, encoder) == first


def test_what_is_kept_is_bounded(clock: list[float]) -> None:
    encoder, view = Encoder(), View()
    for seed in range(2 * updates._KEPT):
        image = plain()
        image.paste((seed, 0, 0), (0, 0, 5, 5))
        view.update(frame(image), encoder)
    assert len(encoder._kept) == updates._KEPT
    assert encoder._bytes == sum(len(piece.content) for _tiles, piece in encoder._kept.values())


def test_pillow_makes_the_jpeg_where_nothing_faster_is(clock: list[float]) -> None:
    from deskhand.hand import accelerators

    accelerators.without("simplejpeg")
    try:
        assert {piece.format for piece in View().update(frame(photo()), Encoder())} == {"jpeg"}
    finally:
        accelerators.again()


def test_much_is_sent_in_parts(clock: list[float]) -> None:
    size = (2560, 1440)
    numbers = random.Random(5)
    noise = Image.frombytes("RGB", size, numbers.randbytes(3 * size[0] * size[1]))
    view, encoder, now, screen = View(), Encoder(), frame(noise), plain("white", size)
    updates_sent = 0
    while (due := view.due(now)) is not None:
        clock[0] = max(clock[0], due)
        pieces = view.update(now, encoder)
        assert pieces
        assert sum(len(piece.content) for piece in pieces[:-1]) < updates.MOST_BYTES
        screen = shown(pieces, screen)
        updates_sent += 1
    assert updates_sent > 10
    assert screen.tobytes() == noise.tobytes()
