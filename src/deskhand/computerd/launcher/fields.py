"""One JSON object that may be anything: its fields, each checked and bounded when it is read."""

from __future__ import annotations

import json
import re
from typing import Any

#: Characters of a text, and of a sentence for people.
_LONGEST_TEXT, _LONGEST_SENTENCE = 4096, 2000
#: Linux, PID_MAX_LIMIT.
_MOST_PID = 1 << 22
_MOST_PIDS = 20000
_MARK = re.compile(r"[0-9a-f]{32}")


class NotAnAnswer(Exception):
    """It is not what was asked for. The words follow "the launcher ...": which field, never what stood there."""


class Fields:
    """The fields of one object. Every method raises ``NotAnAnswer`` when its field is missing or not of its kind."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise NotAnAnswer("gave something that is no answer of its")
        self._values = values

    @classmethod
    def of(cls, line: bytes) -> Fields:
        try:
            return cls(json.loads(line.decode("utf-8")))
        except (ValueError, RecursionError):
            raise NotAnAnswer("gave something that is no answer of its") from None

    def _value(self, name: str, kind: type, what: str) -> Any:
        value = self._values.get(name)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise NotAnAnswer(f"gave an answer whose {name} is no {what}")
        return value

    def has(self, name: str) -> bool:
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """Whole characters, cut where it is endless."""
        return _whole(self._value(name, str, "text"))

    def text_or_none(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def sentence(self, name: str) -> str:
        """One line for people: printable, not endless."""
        text = self.text(name)[:_LONGEST_SENTENCE]
        return "".join(character if character.isprintable() else " " for character in text).strip()

    def flag(self, name: str) -> bool:
        return bool(self._value(name, bool, "true or false"))

    def number(self, name: str, least: int, most: int) -> int:
        value: int = self._value(name, int, "number")
        if not least <= value <= most:
            raise NotAnAnswer(f"gave an answer whose {name} is out of range")
        return value

    def pid(self, name: str) -> int:
        """A process that is not the first, which is everybody's ancestor."""
        return self.number(name, 2, _MOST_PID)

    def pids(self) -> set[int]:
        found = self._items("pids", _MOST_PIDS)
        if not all(type(pid) is int and 1 < pid <= _MOST_PID for pid in found):
            raise NotAnAnswer("gave an answer whose pids are no processes")
        return set(found)

    def mark(self, name: str) -> str:
        value = self.text(name)
        if not _MARK.fullmatch(value):
            raise NotAnAnswer(f"gave an answer whose {name} is none")
        return value

    def exit(self, name: str) -> tuple[int, int, int] | None:
        """pid, status and signal; None where there is none."""
        if not self.has(name):
            return None
        found = self._items(name, 3)
        if len(found) != 3 or not all(type(one) is int and 0 <= one <= _MOST_PID for one in found):
            raise NotAnAnswer(f"gave an answer whose {name} is none")
        return found[0], found[1], found[2]

    def fields(self, name: str) -> Fields:
        return Fields(self._values.get(name))

    def rows(self, name: str, most: int) -> list[Fields]:
        return [Fields(row) for row in self._items(name, most)]

    def texts(self, name: str, most: int) -> list[str]:
        found = self._items(name, most)
        if not all(isinstance(one, str) for one in found):
            raise NotAnAnswer(f"gave an answer whose {name} are no texts")
        return [_whole(one) for one in found]

    def _items(self, name: str, most: int) -> list[Any]:
        found: list[Any] = self._value(name, list, "list")
        if len(found) > most:
            raise NotAnAnswer(f"gave an answer with more than {most} {name}")
        return found


def _whole(text: str) -> str:
    # JSON can hold half of a surrogate pair, which whoever reads our answers can not take.
    return text[:_LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
