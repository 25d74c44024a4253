"""What people and models call keys, and the keysyms meant: the one alias table.

It takes xdotool's names (keysym names), browsers' (``KeyboardEvent.key`` and ``code``), pyautogui's and the model
vendors', whatever their case; a single character of any script is the key that types it. Nothing here needs a display.
"""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Tuple

from .x11 import keysyms

#: Canonical keysym name, then the other names of that key. They are compared in lower case without the ``_``, ``-``
#: and spaces between their words, so "Page_Up", "page up" and "PAGEUP" are one name.
_ALIASES = """
Shift_L: shift leftshift lshift shiftleft
Shift_R: rightshift rshift shiftright
Control_L: ctrl control ctl ctrll leftctrl leftcontrol lctrl lcontrol ctrlleft controlleft primary controlormeta
           commandorcontrol cmdorctrl
Control_R: ctrlr rightctrl rightcontrol rctrl rcontrol ctrlright controlright
Alt_L: alt option opt leftalt lalt altleft optionleft
Alt_R: rightalt ralt altright optionright
ISO_Level3_Shift: altgr altgraph level3
Super_L: super cmd command win window windows meta os gui leftmeta lmeta metaleft leftwin lwin winleft osleft superleft
         lsuper winl winkey windowskey superkey
Super_R: rightmeta rmeta metaright rightwin rwin winright osright superright rsuper winr
Hyper_L: hyper
Caps_Lock: capslock caps
Num_Lock: numlock
Scroll_Lock: scrolllock scrlk
Return: return enter newline
Escape: escape esc
BackSpace: backspace bksp
Tab: tab
ISO_Left_Tab: backtab
space: space spacebar
Delete: delete del
Insert: insert ins
Home: home
End: end
Prior: pageup pgup prior
Next: pagedown pgdn pgdown next
Left: left arrowleft leftarrow
Right: right arrowright rightarrow
Up: up arrowup uparrow
Down: down arrowdown downarrow
Print: printscreen print prtsc prtscr prtscn prntscrn snapshot
Pause: pause
Break: break
Menu: menu apps app contextmenu
Clear: clear
Help: help
Select: select
Execute: execute
Undo: undo
Redo: redo again
Find: find
Cancel: cancel
Sys_Req: sysrq
Multi_key: compose
Mode_switch: modechange
Henkan: convert
Muhenkan: nonconvert
Hangul: hanguel hangulmode lang1
Hangul_Hanja: hanja hanjamode lang2
Hiragana_Katakana: kana kanamode
Zenkaku_Hankaku: zenkakuhankaku
Eisu_toggle: eisu alphanumeric
Kanji: kanjimode
Katakana: lang3
Hiragana: lang4
MultipleCandidate: allcandidates
ISO_First_Group: groupfirst
ISO_Last_Group: grouplast
ISO_Next_Group: groupnext
ISO_Prev_Group: groupprevious
plus: plus
minus: minus dash hyphen
equal: equal equals
underscore: underscore
comma: comma
period: period dot fullstop
slash: slash forwardslash
backslash: backslash
semicolon: semicolon
colon: colon
apostrophe: apostrophe quote singlequote
quotedbl: doublequote dblquote
grave: grave backquote backtick
asciitilde: tilde
asciicircum: caret circumflex
exclam: exclamation exclamationmark
at: at
numbersign: hash pound
dollar: dollar
percent: percent
ampersand: ampersand
asterisk: asterisk star
question: questionmark
bar: pipe
bracketleft: leftbracket openbracket lbracket
bracketright: rightbracket closebracket rbracket
parenleft: leftparen openparen
parenright: rightparen closeparen
braceleft: leftbrace openbrace lbrace
braceright: rightbrace closebrace rbrace
less: intlbackslash lessthan
greater: greaterthan
EuroSign: euro
yen: intlyen
KP_Enter: numpadenter kpenter enternumpad
KP_Add: add numpadadd kpplus numpadplus
KP_Subtract: subtract numpadsubtract kpminus numpadminus
KP_Multiply: multiply numpadmultiply kpasterisk
KP_Divide: divide numpaddivide kpslash
KP_Decimal: decimal numpaddecimal kpperiod kpdot
KP_Separator: separator numpadcomma kpcomma
KP_Equal: numpadequal kpequals
XF86AudioPlay: playpause mediaplaypause mediaplay audioplay
XF86AudioPause: mediapause
XF86AudioStop: mediastop mediatrackstop audiostop
XF86AudioNext: nexttrack mediatracknext audionext
XF86AudioPrev: prevtrack previoustrack mediatrackprevious audioprev
XF86AudioRewind: mediarewind
XF86AudioForward: mediafastforward
XF86AudioRecord: mediarecord
XF86AudioMute: volumemute audiovolumemute mute audiomute
XF86AudioLowerVolume: volumedown audiovolumedown
XF86AudioRaiseVolume: volumeup audiovolumeup
XF86AudioMicMute: microphonemute microphonemutetoggle micmute
XF86Back: browserback
XF86Forward: browserforward
XF86Refresh: browserrefresh
XF86Stop: browserstop
XF86Search: browsersearch
XF86Favorites: browserfavorites
XF86HomePage: browserhome
XF86Mail: launchmail mailkey
XF86AudioMedia: launchmediaselect mediaselect launchmediaplayer
XF86Calculator: calculator launchcalculator launchapp2 launchapplication2
XF86MyComputer: launchapp1 launchapplication1
XF86MonBrightnessUp: brightnessup
XF86MonBrightnessDown: brightnessdown
XF86Eject: eject
XF86Sleep: sleep standby
XF86PowerOff: power poweroff
XF86LogOff: logoff
XF86Hibernate: hibernate
XF86WakeUp: wakeup
XF86Fn: fn
XF86Copy: copy
XF86Cut: cut
XF86Paste: paste
XF86Open: open
XF86New: new
XF86Save: save
XF86Close: close
XF86Spell: spellcheck
XF86Reply: mailreply
XF86MailForward: mailforward
XF86Send: mailsend
XF86ZoomIn: zoomin
XF86ZoomOut: zoomout
"""

_MODIFIERS = (
    "Shift_L Shift_R Control_L Control_R Alt_L Alt_R Meta_L Meta_R Super_L Super_R Hyper_L Hyper_R ISO_Level3_Shift"
    " ISO_Level5_Shift Mode_switch"
)
#: Keys to take instead, in this order, when the keyboard has none of that keysym.
_SUBSTITUTES = {
    "Shift_L": "Shift_R",
    "Shift_R": "Shift_L",
    "Control_L": "Control_R",
    "Control_R": "Control_L",
    "Alt_L": "Alt_R Meta_L",
    "Alt_R": "Alt_L",
    "Super_L": "Super_R",
    "Super_R": "Super_L",
    "ISO_Level3_Shift": "Mode_switch Alt_R",
    "ISO_Left_Tab": "Tab",
}
#: Keysyms of signs (a soft hyphen, a multiplication cross) whose names are always meant as the alias instead.
_SIGNS = ("hyphen", "caret", "multiply", "leftarrow", "rightarrow", "uparrow", "downarrow")
_CONTROL_CHARACTERS = {"\n": "Return", "\r": "Return", "\t": "Tab", "\x1b": "Escape", "\x08": "BackSpace"}

_aliases: Dict[str, str] = {}
_numbers: Dict[str, int] = {}
_lower: Dict[str, str] = {}
_names: Dict[int, str] = {}
_characters: Dict[int, int] = {}
_legacy: Dict[int, int] = {}


def parse_chord(text: str) -> List[str]:
    """The canonical keysym names of keys joined with ``+``: ``"ctrl++"`` gives ``["Control_L", "plus"]``.

    A single letter keeps its case, unless a modifier other than Shift stands in the chord: ``"ctrl+A"`` is Ctrl and a.

    Raises:
        ValueError: a key is not known, named twice or missing; one line, with the nearest names.
    """
    parts = _split(text)
    names = [_key(part, text) for part in parts]
    modifiers = set(_MODIFIERS.split())
    if len(names) > 1 and modifiers.intersection(names):
        names = [_key(part.strip().lower(), text) if _is_letter(part.strip()) else n for part, n in zip(parts, names)]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ValueError(f"the key {parts[index].strip()!r} is named twice in {_short(text)}: name each key once")
    return names


def is_modifier(name: str) -> bool:
    """Whether that canonical keysym name is a key that is held for what it does to others."""
    return name in _MODIFIERS.split()


def substitutes(name: str) -> List[str]:
    """What to press when the keyboard has no key of that canonical name."""
    return _SUBSTITUTES.get(name, "").split()


def keysym(name: str) -> int:
    """The number of a canonical keysym name (``"Return"``, ``"XF86AudioPlay"``, ``"U20AC"``)."""
    number = _table().get(name)
    return number if number is not None else 0x1000000 + int(name[1:], 16)


def name_of(number: int) -> str:
    """The canonical name of a keysym; ``"0x..."`` when it has none."""
    if not _names:
        for name, value in _table().items():
            _names.setdefault(value, name)
    if number in _names:
        return _names[number]
    return f"U{number - 0x1000000:04X}" if 0x1000100 <= number <= 0x110FFFF else f"{number:#x}"


def keysym_of(character: str) -> int:
    """The keysym that stands for a character (X11 Protocol, Appendix A, KEYSYM Encoding)."""
    point = ord(character)
    return point if 0x20 <= point <= 0x7E or 0xA0 <= point <= 0xFF else 0x1000000 + point


def character_of(number: int) -> Optional[str]:
    """The character a keysym stands for; None for Return, F1 and the like, and for the keypad's keys."""
    if 0x20 <= number <= 0x7E or 0xA0 <= number <= 0xFF:
        return chr(number)
    if 0x1000000 <= number <= 0x110FFFF:
        return chr(number - 0x1000000)
    _load_characters()
    return chr(_characters[number]) if number in _characters else None


def equivalents(number: int) -> Tuple[int, ...]:
    """That keysym and the others that stand for the same character, as keymaps use old and new ones."""
    character = character_of(number)
    if character is None:
        return (number,)
    point = ord(character)
    if point <= 0x7E:
        return (point, 0x1000000 + point)
    _load_characters()
    found = [keysym_of(character), 0x1000000 + point]
    if point in _legacy:
        found.append(_legacy[point])
    return tuple(dict.fromkeys([number, *found]))


# -- reading a chord ------------------------------------------------------------------------------------------------


def _split(text: str) -> List[str]:
    if not text:
        raise ValueError("no key is named: name one, such as 'Return' or 'ctrl+s'")
    # A plus sign that ends the chord is the key itself: "+", "ctrl++", "ctrl + +".
    last = re.fullmatch(r"(?s)(?:(?P<before>.*?[^+\s])\s*\+\s*)?\+\s*", text)
    if last:
        before = last["before"]
        return [*(_split(before) if before else []), "+"]
    parts = text.split("+")
    if any(len(part) != 1 and not part.strip() for part in parts):
        raise ValueError(f"a key is missing in {_short(text)}: join keys with one '+'; the plus key itself is 'plus'")
    return parts


def _key(part: str, text: str) -> str:
    if len(part) == 1 and part in _CONTROL_CHARACTERS:
        return _CONTROL_CHARACTERS[part]
    name = part if len(part) == 1 else part.strip()
    if len(name) == 1:
        if ord(name) < 0x20 or 0x7F <= ord(name) < 0xA0 or 0xD800 <= ord(name) <= 0xDFFF:
            raise ValueError(f"no key types the control character U+{ord(name):04X}")
        return _of_character(name)
    alias = _known_aliases().get(_folded(name))
    if alias is not None and (name not in _table() or name in _SIGNS):
        return alias
    if name in _table():
        return name
    found = _by_pattern(name) or _by_any_case(name)
    if found is None:
        raise ValueError(_unknown(name, text))
    return found


def _of_character(character: str) -> str:
    keysym = keysym_of(character)
    return name_of(next((number for number in equivalents(keysym) if number < 0x1000000), keysym))


def _by_pattern(name: str) -> Optional[str]:
    folded = _folded(name)
    match = re.fullmatch(r"key([a-z])|(?:digit|key)([0-9])|(?:numpad|kp|num)([0-9])|f([1-9][0-9]?)", folded)
    if match:
        letter, digit, pad, function = match.groups()
        if function:
            return f"F{function}" if int(function) <= 35 else None
        return f"KP_{pad}" if pad else str(letter or digit)
    match = re.fullmatch(r"[Uu]([0-9A-Fa-f]{4,6})", name)
    if match:
        point = int(match[1], 16)
        if point < 0x110000 and not 0xD800 <= point <= 0xDFFF and chr(point).isprintable():
            return _of_character(chr(point))
    return None


def _by_any_case(name: str) -> Optional[str]:
    if name[:3].upper() == "XK_":
        name = name[3:]
        if name in _table():
            return name
    if not _lower:
        for known in _table():
            folded = _folded(known)
            # Of "Eacute" and "eacute" the plain one is meant by "EACUTE".
            if folded not in _lower or known.islower():
                _lower[folded] = known
    return _lower.get(_folded(name))


def _unknown(name: str, text: str) -> str:
    import difflib  # 5 ms, wanted only here

    known = list(_known_aliases()) + [f"f{number}" for number in range(1, 36)]
    near = difflib.get_close_matches(_folded(name)[:40], known, 3, 0.55)
    if not near:
        near = difflib.get_close_matches(_folded(name)[:40], list(_lower), 3, 0.6)
    where = f" in {_short(text)}" if text.strip() != name else ""
    tail = f"nearest are {', '.join(repr(n) for n in near)}" if near else "a key is a character or a name like 'Return'"
    if "+" not in text and re.search(r"\S[\s,-]+\S", text.strip()):
        tail += "; join the keys of a chord with '+'"
    return f"unknown key {_short(name)}{where}: {tail}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _folded(name: str) -> str:
    # Only between words: "--help" is no key.
    return re.sub(r"(?<=[^\W_])[\s_-]+(?=[^\W_])", "", name).lower()


def _is_letter(part: str) -> bool:
    return len(part) == 1 and part.isalpha() and len(part.lower()) == 1


# -- the tables, read when first needed ------------------------------------------------------------------------------


def _known_aliases() -> Dict[str, str]:
    if not _aliases:
        for line in re.sub(r"\n +", " ", _ALIASES).split("\n"):
            name, _, others = line.partition(":")
            for other in others.split():
                _aliases[other] = name
    return _aliases


def _table() -> Dict[str, int]:
    if not _numbers:
        for line in keysyms.NAMES.splitlines():
            name, number = line.split()
            _numbers[name] = int(number, 16)
    return _numbers


def _load_characters() -> None:
    if not _characters:
        for line in keysyms.CHARACTERS.splitlines():
            number, point = line.split()
            _characters[int(number, 16)] = int(point, 16)
            _legacy.setdefault(int(point, 16), int(number, 16))
