"""The forms of DISPLAY."""

from __future__ import annotations

import pytest

from deskhand.hand.errors import NoDisplay
from deskhand.hand.x11.display_name import DisplayName, parse_display, running_displays
from deskhand.testing import XServer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":1", ("", 1, 0)),
        (":1.0", ("", 1, 0)),
        (":12.3", ("", 12, 3)),
        ("unix:1", ("", 1, 0)),
        ("unix/:1", ("", 1, 0)),
        ("localhost:10.0", ("localhost", 10, 0)),
        ("host.example:2", ("host.example", 2, 0)),
        ("tcp/host:2", ("host", 2, 0)),
        ("[::1]:3", ("::1", 3, 0)),
        ("192.0.2.7:0", ("192.0.2.7", 0, 0)),
    ],
)
def test_forms(text: str, expected: tuple[str, int, int]) -> None:
    assert parse_display(text) == DisplayName(*expected)


@pytest.mark.parametrize(
    "text", ["", "1", ":", ":x", ":1.", "host", ":-1", ": 1", ":1 ", ":1\n", ":123456", "a:b:1", "::"]
)
def test_what_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(NoDisplay, match="is not a display name") as caught:
        parse_display(text)
    assert "\n" not in str(caught.value)
    assert "':1'" in str(caught.value)


def test_running_displays_names_a_server(display: XServer) -> None:
    assert display.display in running_displays()
