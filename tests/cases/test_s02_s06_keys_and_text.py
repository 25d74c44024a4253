"""S2, S3, S4, S5, S6: keys by any usual name or refused, text exact, nothing left down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deskhand.testing import XServer
from tests.cases.ways import Way
from tests.commands import act, start
from tests.probes import RawWindow, pressed
from tests.toolkits import ToolkitWindow, toolkit_window

# One by one they are quick; together they take minutes.
pytestmark = pytest.mark.slow


@pytest.fixture
def gtk(openbox_display: XServer, tmp_path: Path) -> Iterator[ToolkitWindow]:
    with toolkit_window(openbox_display, "gtk", tmp_path / "gtk.log") as window:
        yield window


@pytest.fixture
def tk(openbox_display: XServer, tmp_path: Path) -> Iterator[ToolkitWindow]:
    with toolkit_window(openbox_display, "tk", tmp_path / "tk.log") as window:
        yield window


# ---- S2: an unknown key name is ignored and the rest is pressed


@pytest.mark.parametrize(
    ("keys", "keysym"),
    [
        ("enter", "Return"), ("Return", "Return"), ("ENTER", "Return"), ("esc", "Escape"), ("Escape", "Escape"),
        ("plus", "plus"), ("minus", "minus"), ("pageup", "Prior"), ("page_down", "Next"), ("backspace", "BackSpace"),
        ("del", "Delete"), ("F5", "F5"), ("up", "Up"), ("ArrowLeft", "Left"), ("space", "space"),
        ("ctrl++", "plus"), ("ctrl+shift+t", "T"), ("ctrl+plus", "plus"), ("é", "eacute"),
    ],
)  # fmt: skip
def test_s2_usual_names_are_keys(openbox_display: XServer, tk: ToolkitWindow, keys: str, keysym: str) -> None:
    answer = act(openbox_display, {"action": "key", "keys": keys})
    assert answer.status == 0, answer
    assert tk.until(lambda w: w.keys())
    assert tk.keys() == [keysym]
    state = next(line["state"] for line in tk.lines if line.get("key") == keysym)
    assert bool(state & 4) == keys.startswith("ctrl")
    assert pressed(openbox_display) == []


@pytest.mark.parametrize("keys", ["cmd+a", "win+a", "super+a", "meta+a", "command+a"])
def test_s2_the_key_with_many_names_is_pressed_with_the_letter(
    openbox_display: XServer, tk: ToolkitWindow, keys: str
) -> None:
    assert act(openbox_display, {"action": "key", "keys": keys}).status == 0
    assert tk.until(lambda w: w.keys())
    held = [key for key in tk.all("key") if str(key).startswith(("Super", "Meta"))]
    assert len(held) == 1, "a bare letter was typed"
    assert tk.keys() == ["a"]


@pytest.mark.parametrize("keys", ["ctrl+nosuch", "nosuch", "ctrl+", "ctrl++a", "", "ctrl+ab", "ctrl a b", "f99"])
@pytest.mark.parametrize("action", ["key", "key_down", "hold_key"])
def test_s2_an_unknown_name_is_refused_and_nothing_is_sent(display: XServer, keys: str, action: str) -> None:
    with RawWindow(display) as window:
        more = {"seconds": 0} if action == "hold_key" else {}
        answer = act(
            display, {"action": "click", "x": 5, "y": 5}, {"action": action, "keys": keys, **more}, {"action": "click"}
        )
        assert (answer.status, answer.json["sent"]) == (2, "none"), answer
        assert answer.json["results"][1]["status"] == "failed"
        assert window.all() == []


@pytest.mark.parametrize("action", ["click", "drag", "scroll"])
def test_s2_an_unknown_modifier_is_refused_too(display: XServer, action: str) -> None:
    more = {"click": {}, "drag": {"path": [[1, 1], [9, 9]]}, "scroll": {"dy": 1}}[action]
    with RawWindow(display) as window:
        answer = act(display, {"action": action, "modifiers": ["ctrl", "nosuch"], **more})  # type: ignore[dict-item]
        assert (answer.status, answer.json["sent"]) == (2, "none")
        assert window.all() == []


# ---- S3: newlines


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a\nb", ["a", "Return", "b"]),
        ("a\r\nb", ["a", "Return", "b"]),
        ("\n\n", ["Return"] * 2),
    ],
)
def test_s3_a_newline_is_one_return(openbox_display: XServer, tk: ToolkitWindow, text: str, keys: list[str]) -> None:
    assert act(openbox_display, {"action": "type", "text": text}).status == 0
    assert tk.until(lambda w: len(w.keys()) >= len(keys))
    assert tk.keys() == keys
    assert len(tk.all("returned")) == keys.count("Return")


def test_s3_a_tab_is_tab(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    assert act(openbox_display, {"action": "type", "text": "a\tb"}).status == 0
    assert gtk.shows("a\tb")
    assert gtk.keys() == ["a", "Tab", "b"]


# ---- S4, S6: exact text

TEXTS = [
    "ÅåÉéÑñ ØøŁł",
    "ẞß ǅ İıĞğ ŒœÆæ",
    "Ελληνικά ΆΈ Привет ЁёЙй",
    "日本語 한국어 🎨👩‍👩‍👧",
    "-1.5 x",
    "--help",
    "$(id) $HOME `x` 'a' \"b\" \\ %s %%",
    "; rm -rf / && | > < * ? [a-z] {a,b} ~ ! #",
    "a  b   c",
    "€ ° § ´ ` ^ ~ ¨",
]


@pytest.mark.parametrize("text", TEXTS)
def test_s4_s6_text_arrives_exactly(openbox_display: XServer, gtk: ToolkitWindow, text: str) -> None:
    answer = act(openbox_display, {"action": "type", "text": text})
    assert answer.status == 0, answer
    assert gtk.shows(text)


@pytest.mark.slow
def test_s4_all_together_several_times(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    text = "\n".join(TEXTS)
    for count in range(1, 4):
        assert act(openbox_display, {"action": "type", "text": text}).status == 0
        assert gtk.shows(text * count)


@pytest.mark.parametrize("text", TEXTS[:1])
def test_s4_on_a_toolkit_that_does_not_answer_exact_or_said_to_be_unconfirmed(
    openbox_display: XServer, tk: ToolkitWindow, text: str
) -> None:
    answer = act(openbox_display, {"action": "type", "text": text})
    result = answer.json["results"][0]
    if answer.status == 0 and result.get("confirmed", True):
        assert tk.shows(text)


# ---- S5: left down

HOLDER = """
import sys
from deskhand.hand.hand import Hand
hand = Hand(sys.argv[1])
hand.act({"actions": [{"action": "key_down", "keys": "shift"}, {"action": "key_down", "keys": "ctrl"},
                      {"action": "mouse_down", "x": 600, "y": 600}]})
print("held", flush=True)
sys.stdin.read()
"""


def test_s5_what_a_killed_process_held_is_released_by_the_next(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, openbox_display.display], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    assert len(pressed(openbox_display)) == 3
    holder.kill()
    holder.communicate()
    answer = act(openbox_display, {"action": "type", "text": "abc1"})
    assert len(answer.json["released"]) == 3
    assert gtk.shows("abc1")
    assert pressed(openbox_display) == []


@pytest.mark.parametrize("keys", ["ctrl+shift+k", "shift", "é", "super+alt+f"])
def test_s5_killed_in_the_middle_of_a_chord(way: Way, openbox_display: XServer, gtk: ToolkitWindow, keys: str) -> None:
    process = start(
        openbox_display,
        "act",
        "--json",
        "--session",
        "a",
        stdin={"actions": [{"action": "hold_key", "keys": keys, "seconds": 50}]},
    )
    assert gtk.until(lambda w: bool(pressed(openbox_display)))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    if way.over_http:  # computerd lives on, and sees its client go
        assert gtk.until(lambda w: pressed(openbox_display) == [])
    else:
        assert pressed(openbox_display), "nothing can release it yet"
    assert act(openbox_display, {"action": "type", "text": "abc1"}).status == 0
    assert pressed(openbox_display) == []
    assert gtk.until(lambda w: w.text.endswith("abc1"))


def test_s5_killed_in_the_middle_of_a_text_the_keyboard_is_as_before(
    openbox_display: XServer, gtk: ToolkitWindow
) -> None:
    """The keycodes borrowed for what the keyboard lacks are given back as well."""
    from deskhand.hand.x11 import Connection, core

    def map_now() -> list[tuple[int, ...]]:
        with Connection.open(openbox_display.display) as conn:
            return core.get_keyboard_mapping(conn, 8, 248)

    before = map_now()
    process = start(
        openbox_display, "act", "--json", stdin={"actions": [{"action": "type", "text": "日本語éñ" * 3000}]}
    )
    assert gtk.until(lambda w: len(w.text) > 5)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert act(openbox_display, {"action": "move", "x": 1, "y": 1}).status == 0
    assert pressed(openbox_display) == []
    assert map_now() == before


def test_s5_a_failed_batch_releases(openbox_display: XServer, gtk: ToolkitWindow) -> None:
    answer = act(
        openbox_display,
        {"action": "key_down", "keys": "shift"},
        {"action": "mouse_down", "x": 5, "y": 5},
        {"action": "wait_window", "title": "none", "timeout": 0.05},
    )
    assert answer.status == 3
    assert pressed(openbox_display) == []
