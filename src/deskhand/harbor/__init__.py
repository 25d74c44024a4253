"""Harbor's computer-1 on the desktop that its image already runs: no second desktop, no browser, one exec a step.

Two ways in: an agent by import path, ``harbor run --agent deskhand.harbor:ExistingDesktop``; and
``apply_existing_desktop()``, for processes that can only name ``computer-1``, which does something only where
``HARBOR_CUA_DESKTOP=existing`` is set. Harbor itself is imported when one of them is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deskhand.harbor.errors import DisplayDied, SandboxLost
    from deskhand.harbor.existing_desktop import ExistingDesktop
    from deskhand.harbor.patch import apply_existing_desktop
    from deskhand.harbor.settings import BadSetting, Settings

__all__ = ["BadSetting", "DisplayDied", "ExistingDesktop", "SandboxLost", "Settings", "apply_existing_desktop"]

_MODULES = {
    "BadSetting": "settings",
    "DisplayDied": "errors",
    "ExistingDesktop": "existing_desktop",
    "SandboxLost": "errors",
    "Settings": "settings",
    "apply_existing_desktop": "patch",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from deskhand.extras import needs

    with needs("Harbor", "harbor", "harbor", "litellm"):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
