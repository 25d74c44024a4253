"""Waiting for what a button does that a key has pressed: toolkits show it pressed first, and nothing else changes."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.settle_windows import FIXTURES, PYTHON

from deskhand.hand.hand import Hand
from deskhand.hand.keyboard import Chord, parse_keys
from deskhand.testing import XServer

GREEN, BLUE = b"\x00\xff\x00", b"\x00\x00\xff"


@pytest.fixture
def hand(openbox_display: XServer) -> Iterator[Hand]:
    with Hand(openbox_display.display) as hand:
        yield hand


@contextmanager
def button_window(server: XServer, hand: Hand, mode: str) -> Iterator[None]:
    if subprocess.run([PYTHON, "-c", "import gi"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has no gi")
    process = subprocess.Popen([PYTHON, str(FIXTURES / "settle_button_gtk.py"), mode], env=server.env)
    try:
        title = "behind" if mode == "window" else "over it"
        act(hand, {"action": "wait_window", "title": title, "focused": True, "timeout": 30})
        yield
    finally:
        process.kill()
        process.wait()


def act(hand: Hand, action: dict[str, Any], picture: bool = False) -> tuple[dict[str, Any], bytes]:
    answer, taken = hand.act(
        {"actions": [action], "settle": {"timeout": 20}, "picture": {"format": "png"} if picture else False}
    )
    assert answer["ok"], answer
    return answer, taken.content if taken is not None else b""


def middle(hand: Hand, content: bytes) -> bytes:
    """The colour in the middle of the window "behind"."""
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(content)).convert("RGB")
    x, y, width, height = next(one["rect"] for one in hand.windows() if one["title"] == "behind")
    return bytes(image.getpixel((x + width // 2, y + height // 2)))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["window", "dialog", "twice"])
@pytest.mark.parametrize(
    "action", [{"action": "key", "keys": "Return"}, {"action": "type", "text": "more\n"}], ids=["key", "type"]
)
def test_the_picture_shows_what_the_button_did(
    openbox_display: XServer, hand: Hand, mode: str, action: dict[str, Any]
) -> None:
    with button_window(openbox_display, hand, mode):
        answer, content = act(hand, action, picture=True)
        assert answer["settle"] == "settled"
        assert middle(hand, content) == GREEN
        assert [one["title"] for one in hand.windows()] == ["behind"]


@pytest.mark.slow
def test_a_button_that_does_nothing_is_not_waited_for_until_the_timeout(openbox_display: XServer, hand: Hand) -> None:
    with button_window(openbox_display, hand, "stubborn"):
        answer, _picture = act(hand, {"action": "key", "keys": "Return"})
        assert answer["settle"] == "settled"
        assert len(hand.windows()) == 2


@pytest.mark.parametrize(
    ("keys", "presses"),
    [
        ("Return", True), ("KP_Enter", True), ("space", True), ("alt+s", True), ("alt+shift+s", False),
        ("a", False), ("ctrl+Return", False), ("alt+Tab", False), ("alt+F4", False), ("Escape", False), ("alt", False),
    ],
)  # fmt: skip
def test_which_keys_press_a_button(keys: str, presses: bool) -> None:
    chord: Chord = parse_keys(keys)
    assert chord.presses_button is presses
