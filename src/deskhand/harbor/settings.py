"""What can be set, from an agent's keyword arguments or from the environment, checked before anything runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from deskhand.errors import SetupError

#: The grid of ``coordinate_space="normalized_0_999"``.
NORMALIZED = "normalized_0_999"
#: Seconds that a wait for the screen may be bounded by, as in a batch's envelope.
LONGEST_SETTLE = 60.0


class BadSetting(SetupError, ValueError):
    """A setting has a value that it can not have, or two do not go together. Raised before any trial begins."""


@dataclass(frozen=True)
class Settings:
    """How a trial uses its image's desktop.

    Args:
        display: The display's name in the sandbox.
        xauthority: The cookie file there; None: that of the session which runs on the display is found.
        driver: ``hand``, ``tools``, or None: ``hand`` where the sandbox has ``python3``, else ``tools``.
        settle: ``quiet`` waits until the screen has stopped changing; ``fixed`` waits ``settle_sec``.
        settle_sec: Seconds; the bound of ``quiet``.
        screenshot_size: ``(width, height)`` of the pictures the model gets; None: the screen's own.
        keep_screenshots: Pictures a request to the model holds at most; None: all.
        coordinate_space: ``normalized_0_999``, or None: pixels.
        desktop_size: ``(width, height)`` that Miles' binding tells computer-1; None: computer-1's own.
        blocked_keys: Whether the key combinations that Harbor refuses because of a browser's developer tools are.
    """

    display: str = ":1"
    xauthority: str | None = None
    driver: str | None = None
    settle: str = "quiet"
    settle_sec: float = 2.0
    screenshot_size: tuple[int, int] | None = None
    keep_screenshots: int | None = None
    coordinate_space: str | None = None
    desktop_size: tuple[int, int] | None = None
    blocked_keys: bool = False

    @classmethod
    def of(cls, **given: Any) -> Settings:
        """Checked settings; what is None is as if it were not given.

        Raises:
            BadSetting: Names the setting, what it was and what it can be.
        """
        return _checked(cls(), {name: (name, value) for name, value in given.items()})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings | None:
        """The settings that ``HARBOR_CUA_*`` ask for; None where ``HARBOR_CUA_DESKTOP`` is not set.

        Raises:
            BadSetting: Names the variable, what it was and what it can be.
        """
        # What is set to nothing is not set.
        found = {
            name: value.strip() for name, value in environment.items() if name.startswith(PREFIX) and value.strip()
        }
        desktop = found.pop("HARBOR_CUA_DESKTOP", None)
        if desktop is None:
            return None
        if desktop != "existing":
            raise BadSetting(f"HARBOR_CUA_DESKTOP={desktop!r}: the only value is 'existing'; unset it for Harbor's own")
        named = {setting: (name, found[name]) for name, setting in _SETTINGS.items() if name in found}
        return _checked(cls(driver="tools", settle="fixed", blocked_keys=True), named)


PREFIX = "HARBOR_CUA_"
_SETTINGS = {
    "HARBOR_CUA_DRIVER": "driver",
    "HARBOR_CUA_DISPLAY": "display",
    "HARBOR_CUA_XAUTHORITY": "xauthority",
    "HARBOR_CUA_SETTLE": "settle",
    "HARBOR_CUA_SETTLE_SEC": "settle_sec",
    "HARBOR_CUA_SCREENSHOT_SIZE": "screenshot_size",
    "HARBOR_CUA_KEEP_SCREENSHOTS": "keep_screenshots",
    "HARBOR_CUA_COORDINATE_SPACE": "coordinate_space",
    "HARBOR_CUA_DESKTOP_SIZE": "desktop_size",
}
#: Every variable, in the order of the documentation's table.
VARIABLES = ("HARBOR_CUA_DESKTOP", *_SETTINGS)


def _checked(defaults: Settings, given: Mapping[str, tuple[str, Any]]) -> Settings:
    """``given`` maps a field to what its giver calls it, and the value."""
    known = {field.name for field in fields(Settings)}
    values: dict[str, Any] = {}
    for field, (called, value) in given.items():
        if field not in known:
            raise BadSetting(f"there is no setting {called}: use one of {', '.join(sorted(known))}")
        if value is None:
            continue
        try:
            values[field] = _CHECKS[field](value)
        except ValueError as error:
            raise BadSetting(f"{called}={_shown(value)}: {error}") from None
    return replace(defaults, **values)


def _shown(value: Any) -> str:
    """The beginning of a value, as a refusal quotes it."""
    try:
        shown = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a number that long"
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _one_of(*names: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in names:
            raise ValueError(f"use {' or '.join(repr(name) for name in names)}")
        return str(value)

    return check


def _display(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r":[0-9]{1,5}(\.[0-9]{1,3})?", value):
        raise ValueError("use the name of a display in the sandbox, such as ':1'")
    return value


def _path(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise ValueError("use the absolute path of a cookie file in the sandbox")
    return value


def _seconds(value: Any) -> float:
    try:
        if isinstance(value, bool) or (isinstance(value, str) and not re.fullmatch("[-+.0-9eE]+", value)):
            raise ValueError
        seconds = float(value)
        if not (math.isfinite(seconds) and 0 <= seconds <= LONGEST_SETTLE):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"use a number of seconds from 0 to {LONGEST_SETTLE:g}") from None
    return seconds


def _size(value: Any) -> tuple[int, int]:
    wrong = ValueError("use WIDTHxHEIGHT in pixels, each from 16 to 16384, such as '1280x720'")
    if isinstance(value, str):
        match = re.fullmatch(r"([0-9]{1,5})[xX]([0-9]{1,5})", value)
        if match is None:
            raise wrong
        value = (int(match[1]), int(match[2]))
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise wrong
    if not all(isinstance(edge, int) and not isinstance(edge, bool) and 16 <= edge <= 16384 for edge in value):
        raise wrong
    return int(value[0]), int(value[1])


def _count(value: Any) -> int:
    wrong = ValueError("use a whole number of pictures, 1 or more: the current one counts")
    try:
        text = str(value)
    except ValueError:  # of more digits than Python writes
        raise wrong from None
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,6}", text) or int(text) < 1:
        raise wrong
    return int(text)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("use true or false")
    return value


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "display": _display,
    "xauthority": _path,
    "driver": _one_of("hand", "tools"),
    "settle": _one_of("quiet", "fixed"),
    "settle_sec": _seconds,
    "screenshot_size": _size,
    "keep_screenshots": _count,
    "coordinate_space": _one_of(NORMALIZED),
    "desktop_size": _size,
    "blocked_keys": _boolean,
}
