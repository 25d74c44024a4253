"""Deskhand gives an agent the Linux desktop somebody already runs.

::

    async with Session(LocalDisplay(":71")) as session:
        outcome = await session.act({"actions": [{"action": "launch", "app": "Mousepad"}], "picture": True})

Names are imported when they are first used, so that ``import deskhand`` costs next to nothing and needs no display.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deskhand.backends import (
        E2B,
        Backend,
        Daemon,
        Finished,
        Guest,
        LocalDisplay,
        Memory,
        Outcome,
        OwnScreen,
        Transport,
        transports,
    )
    from deskhand.desktop import DesktopState, list_desktops, start_desktop, stop_desktop
    from deskhand.errors import (
        ActionError,
        ActionFailed,
        BackendError,
        BatchRefused,
        BudgetSpent,
        CaptureFailed,
        DeskhandError,
        DesktopInUse,
        DisplayLost,
        DisplayTimeout,
        ModelUnavailable,
        NoDisplay,
        RequestFailed,
        SetupError,
        Unsupported,
    )
    from deskhand.session import Session
    from deskhand.trace import TraceRecorder

__all__ = [
    "E2B",
    "ActionError",
    "ActionFailed",
    "Backend",
    "BackendError",
    "BatchRefused",
    "BudgetSpent",
    "CaptureFailed",
    "Daemon",
    "DeskhandError",
    "DesktopInUse",
    "DesktopState",
    "DisplayLost",
    "DisplayTimeout",
    "Finished",
    "Guest",
    "LocalDisplay",
    "Memory",
    "ModelUnavailable",
    "NoDisplay",
    "Outcome",
    "OwnScreen",
    "RequestFailed",
    "Session",
    "SetupError",
    "TraceRecorder",
    "Transport",
    "Unsupported",
    "list_desktops",
    "start_desktop",
    "stop_desktop",
    "transports",
]

_HOME = {
    "Backend": "deskhand.backends",
    "Daemon": "deskhand.backends",
    "E2B": "deskhand.backends",
    "Finished": "deskhand.backends",
    "Guest": "deskhand.backends",
    "LocalDisplay": "deskhand.backends",
    "Memory": "deskhand.backends",
    "Outcome": "deskhand.backends",
    "OwnScreen": "deskhand.backends",
    "Transport": "deskhand.backends",
    "transports": "deskhand.backends",
    "DesktopState": "deskhand.desktop",
    "list_desktops": "deskhand.desktop",
    "start_desktop": "deskhand.desktop",
    "stop_desktop": "deskhand.desktop",
    "Session": "deskhand.session",
    "TraceRecorder": "deskhand.trace",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME.get(name, "deskhand.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
