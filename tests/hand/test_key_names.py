"""Names of keys, read without a display."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.hand import key_names
from deskhand.hand.key_names import parse_chord
from deskhand.hand.keyboard import Key, parse_keys


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Return", ["Return"]),
        ("enter", ["Return"]),
        ("ENTER", ["Return"]),
        ("esc", ["Escape"]),
        ("plus", ["plus"]),
        ("+", ["plus"]),
        ("ctrl++", ["Control_L", "plus"]),
        ("ctrl + +", ["Control_L", "plus"]),
        ("ctrl+plus", ["Control_L", "plus"]),
        ("ctrl+-", ["Control_L", "minus"]),
        ("minus", ["minus"]),
        ("hyphen", ["minus"]),
        ("cmd+a", ["Super_L", "a"]),
        ("win", ["Super_L"]),
        ("Meta", ["Super_L"]),
        ("Meta_L", ["Meta_L"]),
        ("option+x", ["Alt_L", "x"]),
        ("AltGraph", ["ISO_Level3_Shift"]),
        ("ControlOrMeta+c", ["Control_L", "c"]),
        ("CommandOrControl+c", ["Control_L", "c"]),
        ("Win_L", ["Super_L"]),
        ("ZoomIn", ["XF86ZoomIn"]),
        ("rbrace", ["braceright"]),
        ("ctrl+shift+t", ["Control_L", "Shift_L", "t"]),
        ("CTRL+SHIFT+T", ["Control_L", "Shift_L", "t"]),
        ("ctrl + c", ["Control_L", "c"]),
        ("a", ["a"]),
        ("A", ["A"]),
        ("a+B", ["a", "B"]),
        ("ctrl+A", ["Control_L", "a"]),
        ("é", ["eacute"]),
        ("É", ["Eacute"]),
        ("ctrl+É", ["Control_L", "eacute"]),
        ("ж", ["Cyrillic_zhe"]),
        ("漢", ["U6F22"]),
        ("U20AC", ["EuroSign"]),
        ("u20ac", ["EuroSign"]),
        ("EuroSign", ["EuroSign"]),
        (" ", ["space"]),
        ("ctrl+ ", ["Control_L", "space"]),
        ("space", ["space"]),
        ("\n", ["Return"]),
        ("\t", ["Tab"]),
        ("PageUp", ["Prior"]),
        ("page_up", ["Prior"]),
        ("Page Up", ["Prior"]),
        ("Prior", ["Prior"]),
        ("PgUp", ["Prior"]),
        ("ArrowLeft", ["Left"]),
        ("ARROWLEFT", ["Left"]),
        ("leftarrow", ["Left"]),
        ("left", ["Left"]),
        ("kp_0", ["KP_0"]),
        ("Numpad0", ["KP_0"]),
        ("num0", ["KP_0"]),
        ("KP_Enter", ["KP_Enter"]),
        ("f1", ["F1"]),
        ("F35", ["F35"]),
        ("XF86AudioPlay", ["XF86AudioPlay"]),
        ("xf86audioplay", ["XF86AudioPlay"]),
        ("XK_Return", ["Return"]),
        ("xk_return", ["Return"]),
        ("browserback", ["XF86Back"]),
        ("del", ["Delete"]),
        ("capslock", ["Caps_Lock"]),
        ("numlock", ["Num_Lock"]),
        ("printscreen", ["Print"]),
        ("menu", ["Menu"]),
        ("apps", ["Menu"]),
        ("KeyA", ["a"]),
        ("Digit1", ["1"]),
        ("ControlLeft+KeyC", ["Control_L", "c"]),
        ("shiftright", ["Shift_R"]),
        ("BracketLeft", ["bracketleft"]),
        ("Backquote", ["grave"]),
        ("ctrl+Eacute", ["Control_L", "Eacute"]),
        ("EACUTE", ["eacute"]),
    ],
)
def test_names_of_every_vendor(text: str, names: list[str]) -> None:
    assert parse_chord(text) == names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ctrl+nosuch", "unknown key 'nosuch' in 'ctrl+nosuch'"),
        ("Enterr", "nearest are 'enter'"),
        ("ctrl+", "a key is missing"),
        ("+a", "a key is missing"),
        ("++", "a key is missing"),
        ("a++b", "a key is missing"),
        ("", "no key is named"),
        ("  ", "a key is missing"),
        ("ctrl+ctrl", "twice"),
        ("ctrl+control", "twice"),
        ("a+a", "twice"),
        ("f36", "unknown key"),
        ("f0", "unknown key"),
        ("ctrl c", "join the keys of a chord with '+'"),
        ("ctrl-c", "join the keys of a chord with '+'"),
        ("\x00", "control character"),
        ("\ud800", "control character"),
        ("UD800", "unknown key"),
        ("U110000", "unknown key"),
        ("x" * 5000, "unknown key"),
    ],
)
def test_what_is_no_key_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (what it says is looked at below)
        parse_keys(text)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@given(st.text(max_size=12))
def test_any_text_is_a_chord_or_a_one_line_refusal(text: str) -> None:
    refused = ""
    keys: tuple[Key, ...] = ()
    try:
        keys = parse_keys(text).keys
    except ValueError as error:
        refused = str(error)
    assert bool(refused) != bool(keys)
    assert refused.isprintable()
    assert all(key.keysym > 0 for key in keys)


@given(st.characters(exclude_categories=["Cc", "Cs"]))
def test_every_character_is_a_key(character: str) -> None:
    (key,) = parse_keys(character).keys
    assert key_names.character_of(key.keysym) == character
    assert key.keysym in key_names.equivalents(key_names.keysym_of(character))


def test_every_keysym_name_is_understood_and_names_its_keysym() -> None:
    signs = set(key_names._SIGNS)
    for name, number in key_names._table().items():
        (key,) = parse_keys(name).keys
        assert key.keysym == number or name in signs, name


def test_every_alias_leads_to_a_keysym() -> None:
    for alias, name in key_names._known_aliases().items():
        assert name in key_names._table(), (alias, name)


def test_keysyms_agree_with_python_xlib() -> None:
    xk = pytest.importorskip("Xlib.XK")
    for name in ("Return", "Escape", "F12", "eacute", "EuroSign", "Cyrillic_zhe", "KP_Enter", "ISO_Level3_Shift"):
        xk.load_keysym_group("xkb")
        theirs = xk.string_to_keysym(name)
        assert theirs in (0, key_names.keysym(name)), name


def test_nothing_needs_a_display() -> None:
    import subprocess

    code = "from deskhand.hand.keyboard import Key, parse_keys; print(parse_keys('ctrl++').keys[1].name)"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": "src"}, capture_output=True, check=True)
    assert done.stdout == b"plus\n"


@pytest.mark.parametrize("text", ["--help", "-help", "_return", "ctrl+--help", "return-"])
def test_a_word_with_an_edge_of_dashes_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="unknown key"):
        key_names.parse_chord(text)
