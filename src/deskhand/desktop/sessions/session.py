"""What one kind of desktop needs beyond what all desktops get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


def _no_files() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Session:
    """One kind of desktop: how it is started, with which settings, and by what it is known to be up.

    ``command`` is run as the desktop's account; it is the part "session", and the desktop ends with it.
    ``environment`` is added to that of every process. ``files`` gives paths below HOME and their contents.
    ``gsettings`` are (schema, key, value as GVariant text), set before ``command``; a schema that is not installed
    does not matter. ``asides`` are programs that set something on the display and end. ``own_windows`` are the types
    (EWMH, _NET_WM_WINDOW_TYPE) of windows that it shows when it is up; one that shows none is asked to show a window of
    ours. ``paints``: what it draws is waited for. ``own_system_bus``: it can not do without a system bus, and gets one
    with nobody on it.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Callable[[], dict[str, str]] = _no_files
    gsettings: tuple[tuple[str, str, str], ...] = ()
    asides: tuple[tuple[str, ...], ...] = ()
    own_windows: tuple[str, ...] = ()
    paints: bool = True
    own_system_bus: bool = False
