"""The environment's patch: ``computer-1`` itself on an existing desktop, for processes that can name nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from deskhand.harbor.settings import PREFIX, VARIABLES, BadSetting, Settings

_applied: Settings | None = None


def apply_existing_desktop(environment: Mapping[str, str] | None = None) -> bool:
    """Make ``computer-1`` of this process use the desktop that its sandbox runs already, as ``HARBOR_CUA_*`` say.

    Once for each process; the whole process is changed. Without ``HARBOR_CUA_DESKTOP`` nothing is: Harbor is not even
    imported. Gives whether it is applied.

    Raises:
        BadSetting: A variable has a value that it can not have, other than those it was applied with before, or this
            Harbor is not one that we know.
    """
    global _applied
    found = os.environ if environment is None else environment
    settings = Settings.from_environment(found)
    if settings is None or _applied is not None:
        if settings not in (None, _applied):
            raise BadSetting("this process uses the desktop with other HARBOR_CUA_* already: set them before it starts")
        return _applied is not None
    from deskhand.extras import needs

    with needs("Harbor", "harbor", "harbor", "litellm"):
        from deskhand.harbor.patching import patch_harbor
    patch_harbor(settings)
    _applied = settings
    _warn_of_unknown(found)
    return True


def _warn_of_unknown(found: Mapping[str, str]) -> None:
    unknown = sorted(name for name in found if name.startswith(PREFIX) and name not in VARIABLES)
    if unknown:
        from harbor.utils.logger import logger

        logger.warning("deskhand knows no %s: see docs/how-to/harbor.md for the variables there are", unknown)


def applied_settings() -> Settings | None:
    """The settings that this process has been patched with."""
    return _applied
