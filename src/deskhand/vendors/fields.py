"""The fields of a model's call, read one by one: a wrong type, a missing or an unknown field is refused in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from deskhand.errors import BatchRefused

Default = TypeVar("Default")
MISSING: Any = object()
#: No call of any vendor is nested deeper, in its whole reply; what stands below can only be refused.
_DEEPEST = 64
_TOO_DEEP = "(nested too deep)"


def plain(value: Any, depth: int = 0) -> Any:
    """A vendor's object as plain JSON values, fields that are None left out; plain values as they are.

    Every SDK here is built on pydantic, so ``model_dump`` gives them. A list or an object more than 64 levels down
    becomes a word that says so.
    """
    if hasattr(value, "model_dump"):
        value = value.model_dump(warnings=False)
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if depth == _DEEPEST:
        return _TOO_DEEP
    if isinstance(value, Mapping):
        return {key: plain(item, depth + 1) for key, item in value.items() if item is not None}
    return [plain(item, depth + 1) for item in value]


class Fields:
    """What a call of ``verb`` came with. Every reader raises BatchRefused, worded for the model."""

    def __init__(self, verb: str, given: Any) -> None:
        self.verb = verb
        given = {} if given is None else plain(given)
        if not isinstance(given, dict):
            raise self.refusal("its input must be an object with named fields")
        self._given: dict[str, Any] = given
        self._read: set[str] = set()

    def refusal(self, text: str) -> BatchRefused:
        """The error that says so of this verb."""
        return BatchRefused(f"{self.verb}: {text}")

    def has(self, name: str) -> bool:
        """Whether the call came with that field."""
        return self._given.get(name) is not None

    def take(self, name: str, default: Any = MISSING) -> Any:
        """The field as it came."""
        self._read.add(name)
        value = self._given.get(name)
        if value is None:
            if default is MISSING:
                raise self.refusal(f"{name} is missing")
            return default
        return value

    def string(self, name: str, default: Any = MISSING) -> Any:
        """Text."""
        value = self.take(name, default)
        if value is not default and not isinstance(value, str):
            raise self.refusal(f"{name} must be a string, not {_kind(value)}")
        return value

    def number(self, name: str, default: Any = MISSING, low: float = -1e9, high: float = 1e9) -> Any:
        """A number from ``low`` to ``high``."""
        value = self.take(name, default)
        return value if value is default else self._number(name, value, low, high)

    def integer(self, name: str, default: Any = MISSING, low: float = -1e9, high: float = 1e9) -> Any:
        """A whole number from ``low`` to ``high``."""
        value = self.take(name, default)
        return value if value is default else self._integer(name, value, low, high)

    def boolean(self, name: str, default: Any = MISSING) -> Any:
        """True or false."""
        value = self.take(name, default)
        if value is not default and not isinstance(value, bool):
            raise self.refusal(f"{name} must be true or false, not {_kind(value)}")
        return value

    def one_of(self, name: str, allowed: Sequence[str], default: Any = MISSING) -> Any:
        """One of the words ``allowed``."""
        value = self.take(name, default)
        if value is not default and (not isinstance(value, str) or value not in allowed):
            raise self.refusal(f"{name} must be one of {', '.join(allowed)}, not {str(value)[:40]!r}")
        return value

    def strings(self, name: str, default: Any = MISSING) -> Any:
        """A list of strings, at least one."""
        value = self.take(name, default)
        if value is default:
            return value
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            raise self.refusal(f"{name} must be a list of strings, at least one")
        return value

    def integers(self, name: str, count: int) -> list[int]:
        """A list of exactly ``count`` whole numbers."""
        value = self.take(name)
        if not isinstance(value, list) or len(value) != count:
            raise self.refusal(f"{name} must be a list of {count} whole numbers, not {_kind(value)}")
        return [self._integer(name, item, -1e9, 1e9) for item in value]

    def pair(self, name: str, default: Any = MISSING) -> Any:
        """A position ``[x, y]`` of whole numbers, as ``{"x", "y"}``; ``{}`` by default ``None``."""
        if default is None and not self.has(name):
            self._read.add(name)
            return {}
        x, y = self.integers(name, 2)
        return {"x": x, "y": y}

    def at(self, x: str = "x", y: str = "y") -> dict[str, Any]:
        """A position in two fields of whole numbers, as ``{"x", "y"}``."""
        return {"x": self.integer(x), "y": self.integer(y)}

    def finish(self) -> None:
        """Refuse what was not read: a field that would be left out silently may be what the model meant."""
        unknown = [name for name in self._given if name not in self._read]
        if unknown:
            known = ", ".join(sorted(self._read)) or "none"
            raise self.refusal(f"it has no field {str(unknown[0])[:40]!r}; its fields are: {known}")

    def _integer(self, name: str, value: Any, low: float, high: float) -> int:
        number = self._number(name, value, low, high, "a whole number")
        if number != int(number):
            raise self.refusal(f"{name} must be a whole number, not {number:g}")
        return int(number)

    def _number(self, name: str, value: Any, low: float, high: float, kind: str = "a number") -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise self.refusal(f"{name} must be {kind}, not {_kind(value)}")
        if not low <= value <= high:
            raise self.refusal(f"{name} must be from {low:g} to {high:g}, not {_number_in_words(value)}")
        return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return f"the string {value[:40]!r}"
    if isinstance(value, (int, float)):
        return _number_in_words(value)
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else type(value).__name__


def _number_in_words(value: float) -> str:
    # JSON has whole numbers that no float holds.
    return f"{value:g}" if isinstance(value, float) or abs(value) < 10**15 else "a number that long"
