"""Take text that was typed with ``secret: true`` out of everything that is recorded."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

#: Stands for a secret of any length.
MASK = "•••"

# A hole of one to three characters in a sentence tells what was there ("f•••le"), so a string that holds a secret
# this short is masked whole.
_SHORT = 4
# An error quotes the first 37 characters of what is wrong, or some more: the beginning of a secret gives it away too.
_BEGINNING = 24

# The words of the envelope and the answer. A secret that happens to be one of them ("ok", "type") must neither make
# the record unreadable nor be given away by the holes.
_FIELD_LIST = "action status sent settle mode format space button modifiers method unit event outcome picture"
_WORD_LIST = """
    click move mouse_down mouse_up drag scroll type key hold_key key_down key_up wait wait_window launch quit focus
    close resize clipboard_set clipboard_get zoom cursor_position screenshot ok failed skipped none all part unknown
    settled timeout animating quiet fixed png jpeg webp screen left middle right back forward ctrl shift alt super meta
    keys paste notches pixels done stopped"""
_KEY_LIST = """
    actions expect sequence window timeout strict max_edge region x y count path dx dy text secret repeat seconds title
    app focused keep_open force results error point settled settle_ms moving width height scale time hash name id rect
    grid expected found goal facts checks class pid"""
_WORD_FIELDS = frozenset(_FIELD_LIST.split())
_WORDS = frozenset(_WORD_LIST.split())
_KEYS = _WORD_FIELDS | frozenset(_KEY_LIST.split())

_BRACKET = re.compile(r"[{\[]")
_TEXT_FIELD = re.compile(r'\\*"text\\*"\s*:')
#: Places in one text where JSON may begin that are looked at.
_PLACES = 200
#: Nothing that a desktop can do is nested deeper; what stands below is not recorded.
_DEEPEST = 64
_TOO_DEEP = "(nested too deep)"
#: Bits of a whole number that a float, and so a browser, still holds.
_LONGEST_NUMBER = 1023


class Redactor:
    """Knows the secrets of one trace and masks every occurrence of them.

    A picture can still show a secret: a screen that displays what was typed is outside of what this can take out.
    """

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._long: re.Pattern[str] | None = None
        self._cut: list[str] = []
        self._short: re.Pattern[str] | None = None

    def learn(self, value: Any) -> bool:
        """Learn the secrets of every action in ``value``, however deep; True when there is one that was not known.

        Actions stand in an envelope, and before that in a model's reply, often as JSON in a text.
        """
        fresh = {
            form
            for action in secret_actions(value)
            for name, item in action.items()
            if not _is_public(name, item)
            for text in (*_strings(item), *([name] if isinstance(name, str) and name not in _KEYS else []))
            for form in _forms(text)
        } - self._secrets
        if not fresh:
            return False
        self._secrets |= fresh
        self._long = _pattern(form for form in self._secrets if len(form) >= _SHORT)
        self._short = _pattern(form for form in self._secrets if len(form) < _SHORT)
        self._cut = [form for form in self._secrets if len(form) > _BEGINNING]
        return True

    def clean(self, value: Any, field: str = "", numbers: bool = True, depth: int = 0) -> Any:
        """A copy of ``value`` made of JSON types only, without secrets.

        ``field`` is the key that ``value`` stands under. ``numbers`` also masks a number that reads as a secret; a
        batch leaves it off, as its numbers are positions. ``depth`` is how deep ``value`` stands.
        """
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
            return "(a number that long)"
        if depth > _DEEPEST and isinstance(value, (Mapping, list, tuple, set, frozenset)):
            return _TOO_DEEP
        if isinstance(value, (int, float)):
            if numbers and str(value) in self._secrets:
                return MASK
            # JSON has no NaN and no infinity; a browser would refuse the whole page for one.
            return value if math.isfinite(value) else str(value)
        if isinstance(value, Mapping):
            if _is_secret(value):
                return {
                    self._key(str(name)): (
                        self.clean(item, str(name), numbers, depth + 1) if _is_public(name, item) else _masked(item)
                    )
                    for name, item in value.items()
                }
            return {
                self._key(str(name)): self.clean(item, str(name), numbers, depth + 1) for name, item in value.items()
            }
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.clean(item, field, numbers, depth + 1) for item in value]
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"({len(bytes(value))} bytes)"
        text = str(value)
        if field in _WORD_FIELDS and text in _WORDS:
            return text
        return self.clean_text(without_cut_secret(self._clean_json_in(text, numbers)))

    def _clean_json_in(self, text: str, numbers: bool) -> str:
        """``text`` with the JSON that holds secret actions written anew: however it was escaped, nothing is left."""
        if "secret" not in text:
            return text
        cleaned, at = "", 0
        for start, end, found in _json_in(text):
            if any(secret_actions(found)):
                cleaned += text[at:start] + json.dumps(self.clean(found, "", numbers), ensure_ascii=False)
                at = end
        return cleaned + text[at:]

    def clean_text(self, text: str) -> str:
        """``text`` with every secret masked; masks that touch are one, so their number tells nothing."""
        if self._short is not None and self._short.search(text):
            return MASK
        return self._without_beginnings(self._long.sub(MASK, text)) if self._long is not None else text

    def _without_beginnings(self, text: str) -> str:
        """``text`` without the secrets that it quotes cut short."""
        for secret in self._cut:
            while (start := text.find(secret[:_BEGINNING])) >= 0:
                same = _BEGINNING
                while text[start + same : start + same + 1] == secret[same : same + 1] != "":
                    same += 1
                text = text[:start] + MASK + text[start + same :]
        return text

    def _key(self, key: str) -> str:
        if self._long is None or key in _KEYS:
            return key
        return self._without_beginnings(self._long.sub(MASK, key))


def secret_actions(value: Any) -> Iterator[Mapping[str, Any]]:
    """The actions marked secret in ``value``, also where they stand in a text as JSON."""
    waiting = [value]  # no recursion: what is given may be nested deeper than Python calls
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if _is_secret(value):
                yield value
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, str) and "secret" in value:
            waiting += (found for _, _, found in _json_in(value))


def _json_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """The JSON objects and lists in a text with their places, outermost only; of very many brackets, the first ones."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_PLACES):
        start = _BRACKET.search(text, at)
        if start is None:
            return
        try:
            found, at = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
        else:
            yield start.start(), at, found


def without_cut_secret(text: str) -> str:
    """``text`` without what follows the first ``"text"`` of a JSON object that breaks off: it may be marked secret
    further on, where nobody can read it any more (a reply that ran out of tokens).
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        found = _TEXT_FIELD.search(text)
        return text if found is None else text[: found.end()] + MASK
    return text


def _is_secret(action: Any) -> bool:
    # Any value but false counts: an envelope that preflight refuses ("secret": "yes") is recorded too.
    return isinstance(action, Mapping) and action.get("secret") not in (None, False)


def _is_public(name: Any, value: Any) -> bool:
    # Everything else in a secret action is masked: the text may stand in a field of the wrong name.
    if name == "secret":
        return isinstance(value, bool)
    return name in ("action", "method") and isinstance(value, str) and value in _WORDS


def _masked(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) else MASK


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value
        elif isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
            continue
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield str(value)


def _forms(secret: str) -> Iterator[str]:
    """The secret as other texts may repeat it: one line, one of its lines, quoted for Python, JSON, HTML or a URL."""
    unix = secret.replace("\r\n", "\n")
    lines = [line for line in unix.splitlines() if len(line) >= _SHORT]
    for text in (secret, unix, secret.strip(), " ".join(secret.split("\n")), " ".join(secret.split()), *lines):
        for form in (
            text,
            repr(text)[1:-1],
            ascii(text)[1:-1],
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
            html.escape(text),
            quote(text, safe="", errors="replace"),
        ):
            if form.strip():
                yield form


def _pattern(forms: Iterator[str]) -> re.Pattern[str] | None:
    longest_first = sorted(forms, key=len, reverse=True)
    return re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})+") if longest_first else None
